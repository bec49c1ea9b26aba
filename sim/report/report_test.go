package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"hash/maphash"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"varve/faultfs"
	"varve/sim"
	"varve/tiers/disk"
)

// story runs a seed.
func story(t testing.TB, seed uint64) (*Story, *sim.Schedule) {
	t.Helper()
	s := new(sim.Schedule)
	sim.Expand(s, seed, 30)
	return Tell(sim.NewWorld(), s), s
}

func write(t testing.TB, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A story has the moments, the lives and the acks of its run, and tracks in one order.
func TestTell(t *testing.T) {
	struck := 0
	for seed := range uint64(20) {
		s, schedule := story(t, seed)
		want := sim.NewWorld().Run(schedule)
		if s.Result.Hash != want.Hash {
			t.Fatalf("seed %d: hash %016x, without a report %016x", seed, s.Result.Hash, want.Hash)
		}
		count := map[string]int{}
		for i, m := range s.Moments {
			count[m.Kind]++
			struck += len(m.Faults)
			if m.Track < 0 || m.Track >= len(s.Tracks) {
				t.Fatalf("seed %d: moment %d is on track %d of %d", seed, i, m.Track, len(s.Tracks))
			}
			if strings.HasPrefix(m.Text, "append ") && m.Kind == "acked" && !strings.HasPrefix(s.Tracks[m.Track], "client ") {
				t.Errorf("seed %d: an ack is on the track of %s", seed, s.Tracks[m.Track])
			}
		}
		if count["started"] != want.Lives || count["acked"] != want.Acked {
			t.Errorf("seed %d: %d lives, %d acked, want %d, %d", seed, count["started"], count["acked"], want.Lives, want.Acked)
		}
		if s.Tracks[0] != "world" || len(s.History.Calls) < want.Acked {
			t.Errorf("seed %d: tracks %q, %d calls", seed, s.Tracks, len(s.History.Calls))
		}
	}
	if struck == 0 {
		t.Error("no fault in 20 stories")
	}
}

// What the page is told of the disk, change by change, is what the disk holds.
func TestChangesAddUp(t *testing.T) {
	d := faultfs.New()
	d.Reset(faultfs.Params{LogDir: true})
	fs := d.FS(0)
	var r rows
	var s Story
	seed := maphash.MakeSeed()
	type file struct {
		change
		cells map[int][3]int
	}
	page := map[string]*file{}
	look := func(when string) {
		t.Helper()
		states := d.States(nil)
		for _, c := range r.changes(states, &s, seed) {
			name := s.Files[c.File]
			if c.Gone {
				delete(page, name)
				continue
			}
			f := page[name]
			if f == nil {
				f = &file{cells: map[int][3]int{}}
				page[name] = f
			}
			f.change = c
			for _, x := range c.Sectors {
				f.cells[x[0]] = [3]int{x[1], x[2], x[3]}
			}
		}
		if len(page) != len(states) {
			t.Fatalf("%s: %d files, the disk has %d", when, len(page), len(states))
		}
		for i := range states {
			x := &states[i]
			name := x.Name
			if !x.Live {
				name += " (on the device only)"
			}
			f := page[name]
			if f == nil || f.Live != x.Live || f.Durable != x.Durable || f.Kernel != len(x.Kernel) || f.Device != len(x.Device) {
				t.Fatalf("%s: %s is %+v", when, name, f)
			}
			for at := 0; at < max(len(x.Kernel), len(x.Device)); at += faultfs.Sector {
				part := func(b []byte) []byte { return b[min(at, len(b)):min(at+faultfs.Sector, len(b))] }
				k, v := part(x.Kernel), part(x.Device)
				got := f.cells[at/faultfs.Sector]
				if same := bytes.Equal(k, v); same != (got[0] == got[1]) || len(k) == 0 != (got[0] == beyond) || got[2] != int(x.State(int64(at/faultfs.Sector))) {
					t.Errorf("%s: sector %d of %s is %v", when, at/faultfs.Sector, name, got)
				}
			}
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a, err := fs.Open("a", disk.Create)
	must(err)
	look("created")
	fill := func(n int64, b byte) {
		_, err := a.WriteAt([][]byte{bytes.Repeat([]byte{b}, faultfs.Sector)}, n*faultfs.Sector)
		must(err)
	}
	fill(0, 1)
	fill(2, 2)
	look("written")
	must(a.Sync())
	must(fs.SyncDir(disk.DirLog))
	look("synced")
	fill(0, 3)
	look("written again")
	must(a.Truncate(faultfs.Sector))
	look("cut")
	must(fs.Rename("a", "b"))
	look("renamed")
	must(fs.Remove("b"))
	look("removed")
	must(fs.SyncDir(disk.DirLog))
	look("and synced")
	if len(page) != 0 {
		t.Errorf("files are left: %v", page)
	}
}

// What a run says is only ever text in the page.
func TestPageEscapes(t *testing.T) {
	s, schedule := story(t, 3)
	const hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028'\"`${x}"
	s.Moments[0].Text = hostile
	s.Files[0] = hostile
	s.Result.Violation, s.Result.Check, s.Stack = hostile, "K9", hostile
	p := &Page{
		Story: s, Schedule: schedule, Replay: hostile, History: "<p>" + hostile,
		Overview: Overview{
			Run:     &RunFigures{Seeds: 1, Marks: map[string]int64{"disk " + hostile: 1}, Hash: hostile},
			Mutants: Mutants{{Name: hostile, What: hostile, Failure: hostile, Checks: map[string]uint64{hostile: 1}}},
		},
	}
	text := write(t, p)
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img src=x") {
		t.Error("content of a run is markup")
	}
	if n := strings.Count(text, "<script"); n != 2 {
		t.Errorf("%d scripts, want the data and the page's own", n)
	}
	_, data, _ := strings.Cut(text, `<script type="application/json" id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var back Story
	if err := json.Unmarshal([]byte(data), &back); err != nil || back.Moments[0].Text != hostile || back.Files[0] != hostile {
		t.Errorf("the data came back as %q, %v", back.Moments[0].Text, err)
	}
}

// The page asks for nothing from elsewhere, and its policy allows its own script and no other.
func TestPageIsSelfContained(t *testing.T) {
	s, schedule := story(t, 3)
	text := write(t, &Page{Story: s, Schedule: schedule, Replay: "varve-sim replay 3"})
	for _, m := range regexp.MustCompile(`(?i)https?://[^\s"')]+|(?:src|href|action)="[^#"][^"]*"|@import|url\(`).FindAllString(text, -1) {
		if m != "http://www.w3.org/2000/svg" {
			t.Errorf("the page refers to %s", m)
		}
	}
	script := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(text, -1)
	if len(script) != 1 {
		t.Fatalf("%d scripts, want 1", len(script))
	}
	sum := sha256.Sum256([]byte(script[0][1]))
	if want := "script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'\""; !strings.Contains(text, want) {
		t.Errorf("the policy does not end with %s", want)
	}
	for _, want := range []string{"default-src 'none'", "Seed 3: good", "varve-sim replay 3", "config.0 "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if n := strings.Count(text, "Not given"); n != 4 {
		t.Errorf("%d parts are not given, want history, seeds, planted bugs and bound", n)
	}
}

// Every property of TESTING.md has words, and no other.
func TestProperties(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "TESTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "\n## Checkers\n")
	table, _, _ = strings.Cut(table, "\n## ")
	seen := map[string]bool{"panic": true}
	for _, m := range regexp.MustCompile("(?m)^\\| `?([A-Za-z0-9]+)`? \\|").FindAllStringSubmatch(table, -1) {
		if m[1] == "id" {
			continue
		}
		seen[m[1]] = true
		if Properties[m[1]] == "" {
			t.Errorf("no words for %s", m[1])
		}
	}
	for id := range Properties {
		if !seen[id] {
			t.Errorf("TESTING.md has no %s", id)
		}
	}
}
