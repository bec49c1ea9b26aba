package main

import (
	"slices"
	"strconv"
)

// layer says what the package in a folder may import of this module, and of other modules. "x/..."
// stands for x and every folder below it, "..." for everything.
type layer struct {
	dir     string
	imports []string
	modules []string // packages of other modules
}

var (
	systemCalls = []string{"golang.org/x/sys/unix"} // no client: the calls that package syscall lacks
	anyModule   = []string{"..."}
)

// layers is the import rule of the module. The first entry that matches a folder counts. What
// ships never lists faultfs, model or sim: a product that can reach its own fault injector or its
// fakes might use them. Embedders pay for no client library, so only the bindings import any.
var layers = []layer{
	{dir: "core/segment"},
	{dir: "core/manifest", imports: []string{"core/segment"}},
	{dir: "core/warmentry", imports: []string{"core/segment"}},
	{dir: "core/topics", imports: []string{"core"}},
	{dir: "core", imports: []string{"core/segment", "core/manifest", "core/warmentry"}},

	{dir: "tiers", imports: []string{"core/..."}},
	{dir: "tiers/disk", imports: []string{"core/...", "tiers"}},
	{dir: "tiers/disk/osfs", imports: []string{"tiers/disk"}, modules: systemCalls},
	{dir: "tiers/cold", imports: []string{"core/...", "tiers", "tiers/disk"}}, // the simulator runs it
	{dir: "tiers/cold/scrub", imports: []string{"core/...", "tiers", "tiers/cold", "tiers/disk"}},
	{dir: "tiers/dirbucket", imports: []string{"core/...", "tiers"}},
	{dir: "tiers/valkey", imports: []string{"core/...", "tiers"}}, // the simulator runs it
	{dir: "tiers/valkey/client", imports: []string{"core/...", "tiers", "tiers/valkey"}, modules: anyModule},
	{dir: "tiers/warm", imports: []string{"core/...", "tiers/disk", "tiers/valkey"}}, // the simulator runs it
	{dir: "tiers/s3", imports: []string{"core/...", "tiers"}, modules: anyModule},
	{dir: "tiers/s3/s3test", modules: anyModule},         // servers for tests
	{dir: "tiers/valkey/valkeytest", modules: anyModule}, // the same
	{dir: "tiers/tiertest", imports: []string{"core/...", "tiers", "tiers/disk", "tiers/valkey"}},

	{dir: "", imports: []string{
		"core/...", "tiers", "tiers/cold", "tiers/disk", "tiers/disk/osfs", "tiers/dirbucket", "tiers/valkey", "tiers/warm",
	}, modules: systemCalls},
	{dir: "broker/kafka/batch"},
	{dir: "broker/kafka/verdict", imports: []string{"core", "broker/kafka/batch"}}, // the simulator runs it
	{dir: "broker/kafka", imports: []string{"", "core", "broker", "broker/kafka/batch", "broker/kafka/verdict"}, modules: anyModule},
	{dir: "broker/...", imports: []string{"", "core/...", "tiers", "tiers/disk", "tiers/disk/osfs", "broker/..."}, modules: anyModule},
	{dir: "cmd/varve", imports: []string{"", "core/...", "tiers/...", "broker/..."}, modules: anyModule},

	{dir: "faultfs/passthrough", imports: []string{"core/...", "faultfs", "tiers/..."}},
	{dir: "faultfs", imports: []string{"core/segment", "tiers/disk"}},
	{dir: "model/porcupine", imports: []string{"core/...", "model"}, modules: anyModule},
	{dir: "model/ideal", imports: []string{"core/...", "model"}},
	{dir: "model/node"},
	{dir: "model", imports: []string{"core/..."}},
	{dir: "sim/...", imports: []string{
		"core/...", "tiers", "tiers/cold", "tiers/disk", "tiers/valkey", "tiers/warm", "faultfs/...", "model/...", "sim/...", "broker/kafka/batch", "broker/kafka/verdict",
	}},
	{dir: "cmd/varve-sim", imports: []string{"..."}, modules: anyModule},
	{dir: "fuzz/...", imports: []string{"..."}},
	{dir: "cmd/tidy"},
}

// checkLayers reports imports against the direction that layers gives. Tests may import more: they
// do not ship.
func checkLayers(t *tree) []finding {
	var out []finding
	for _, p := range t.packages {
		rule := layerOf(p.dir)
		for _, f := range p.files {
			if f.test {
				continue
			}
			if rule == nil {
				out = append(out, t.find(f.ast.Package, "layers",
					"folder %q has no entry in cmd/tidy/layers.go: say what it may import", p.dir))
				break
			}
			for _, spec := range f.ast.Imports {
				name, err := strconv.Unquote(spec.Path.Value)
				if err == nil && !rule.allows(t, name) {
					out = append(out, t.find(spec.Pos(), "layers", "%s may not import %s", p.path, name))
				}
			}
		}
	}
	return out
}

// layerOf returns the rule for a folder, nil if there is none.
func layerOf(dir string) *layer {
	for i := range layers {
		if covers(layers[i].dir, dir) {
			return &layers[i]
		}
	}
	return nil
}

// allows reports whether the layer may import a path.
func (l *layer) allows(t *tree, name string) bool {
	if t.standard(name) {
		return true
	}
	allowed := l.modules
	dir, ours := t.local(name)
	if ours {
		name, allowed = dir, l.imports
	}
	return slices.ContainsFunc(allowed, func(pattern string) bool { return covers(pattern, name) })
}

// covers reports whether a pattern of the table stands for a folder.
func covers(pattern, dir string) bool {
	if pattern == "..." {
		return true
	}
	if n := len(pattern) - len("/..."); n > 0 && pattern[n:] == "/..." {
		return within(dir, pattern[:n])
	}
	return pattern == dir
}
