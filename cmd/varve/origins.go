package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"varve/core"
)

// configFlag is the file of settings of a command.
type configFlag struct {
	Config string `env:"VARVE_CONFIG" placeholder:"F" help:"YAML file of settings; a variable of the environment overrides it, a flag both."`
}

// tierFlags are the flags of a command that reads a log, in whatever tier it is.
type tierFlags struct {
	configFlag
	tierSettings
}

// origins knows where each setting has its value from: a flag, the environment, the file, or its
// default, in this order. It is the resolver of the parser: the one who is asked for what no flag sets.
type origins struct {
	loaded bool
	file   *configFile
	err    error // of the file
	flags  map[string]bool
}

// Validate implements kong.Resolver.
func (o *origins) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver: the value of a flag in the file, nil if it has none there.
func (o *origins) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !o.loaded {
		o.loaded = true
		o.load(ctx)
	}
	if o.file == nil {
		return nil, nil
	}
	for i := range table {
		if k := &table[i]; slices.Contains(flag.Envs, k.env) { // log append has a --dir, too, which is no setting
			if v, ok := o.file.values[k.name]; ok && !isSet(k.env) {
				return v.text, nil
			}
		}
	}
	return nil, nil
}

// strayVariable refuses a variable of the environment that is all but the name of a setting, as a file is
// refused for such a key. What resembles none may be somebody else's.
func strayVariable() error {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		own, ours := strings.CutPrefix(name, "VARVE_")
		if !ours || name == "VARVE_CONFIG" {
			continue
		}
		best, distance := "", 1+min(2, len(own)/3)
		for i := range table {
			if d := editDistance(name, table[i].env); d < distance {
				best, distance = table[i].env, d
			}
		}
		if best != "" && distance > 0 {
			return fmt.Errorf("%s: expected a setting that there is (%s?), found an unknown one; unset it", name, best)
		}
	}
	return nil
}

func isSet(env string) bool {
	_, ok := os.LookupEnv(env)
	return ok
}

func (o *origins) load(ctx *kong.Context) {
	o.flags = map[string]bool{}
	for _, p := range ctx.Path {
		if p.Flag != nil {
			o.flags[p.Flag.Name] = true
		}
	}
	for _, f := range ctx.Flags() {
		if !slices.Contains(f.Envs, "VARVE_CONFIG") {
			continue
		}
		path, _ := ctx.FlagValue(f).(string)
		if path == "" && o.flags[f.Name] {
			o.err = errors.New("--config is empty: want a file of settings")
		}
		if path != "" {
			o.file, o.err = readConfigFile(path)
		}
		if o.err == nil {
			o.err = strayVariable()
		}
	}
}

// source says where a setting has its value from, if it is not its default.
func (o *origins) source(name string) (string, bool) {
	k := keyNamed(name)
	switch {
	case k == nil:
		return "", false
	case o.flags[k.flag]:
		return "--" + k.flag, true
	case isSet(k.env):
		return k.env, true
	case o.file != nil:
		return o.file.source(name)
	}
	return "", false
}

var keyName = regexp.MustCompile(`[a-z]+[a-z_.]*`)

// explained says of a setting that cannot work where it comes from, and of the settings that it
// collides with, too.
func explained(err error, source func(name string) (string, bool)) error {
	var c *core.ConfigError
	if !errors.As(err, &c) {
		return err
	}
	value := c.Value
	if k, ns := keyNamed(c.Key), int64(0); k != nil && k.duration() {
		if ns, _ = value.(int64); ns > 0 {
			value = time.Duration(ns)
		}
	}
	where, set := source(c.Key)
	if !set {
		where = "the default"
	}
	text := fmt.Sprintf("%s, %s: expected %s, found %v", where, c.Key, c.Want, value)
	for _, other := range keyName.FindAllString(c.Want, -1) {
		if at, set := source(other); set {
			text += fmt.Sprintf("; %s is from %s", other, at)
		}
	}
	return usageError{errors.New(text)}
}
