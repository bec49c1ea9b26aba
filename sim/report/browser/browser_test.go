package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"varve/sim/mutants"
)

const root = "../../.."

// What the overview is made of. One name is hostile.
const (
	mutantsJSON = `[{"name": "01-early", "what": "acks early", "seeds": 120, "first_seed": 3, "detections": 20, "rate": 1666.7, "rate_low": 1050,
		"rate_high": 2500, "checks": {"K1": 15, "K9": 5}, "marks": {"disk D17.clean": 20, "sim power": 4}},
		{"name": "<b onclick=alert(1)>02</b>", "seeds": 1000, "detections": 0, "failure": "survives"}]`
	boundJSON = `{"ops": 2, "operations": ["append", "roll"], "configurations": ["none"], "whole": true, "sequences": 91, "sequences_done": 91}`
)

// given are the files that a test shows.
type given struct {
	page  string
	seed  uint64
	marks int
}

// prepare builds the simulator with a planted bug, finds a seed that it violates a property in, and
// writes the report of that seed.
func prepare(t *testing.T) given {
	t.Helper()
	abs, err := filepath.Abs(root)
	must(t, err)
	list, err := mutants.Load(os.DirFS(filepath.Join(abs, filepath.FromSlash(mutants.Dir))))
	must(t, err)
	dir := t.TempDir()
	b := mutants.Builder{Root: abs, Command: "./cmd/varve-sim", Dir: dir}
	program, _, err := b.Build(t.Context(), list[0])
	must(t, err)
	figures, err := exec.Command(program, "run", "--seeds", "300", "--ops", "20", "--all", "--workers", "1", "--json").Output()
	if err == nil {
		t.Fatalf("no violation with the bug %s", list[0].Name)
	}
	var run struct {
		Marks   map[string]int `json:"marks"`
		Missing []string       `json:"marks_missing"`
		First   struct {
			Seed     uint64 `json:"seed"`
			Property string `json:"property"`
		} `json:"first_violation"`
	}
	must(t, json.Unmarshal(figures, &run))
	if run.First.Property != "K1" {
		t.Fatalf("the bug %s violates %q, want K1", list[0].Name, run.First.Property)
	}
	files := map[string]string{"run": string(figures), "mutants": mutantsJSON, "exhaust": boundJSON}
	g := given{page: filepath.Join(dir, "report.html"), seed: run.First.Seed, marks: len(run.Marks) + len(run.Missing)}
	args := []string{"report", fmt.Sprint(g.seed), "--ops", "20", "--out", g.page}
	for name, text := range files {
		file := filepath.Join(dir, name+".json")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		args = append(args, "--"+name, file)
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return g
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tab is an open page, and what went wrong in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	wrongs []string
}

// open opens a page in a browser of its own.
func open(t *testing.T, page string) *tab {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Fatalf("this test drives a real browser: %v; install it: apt-get install chromium", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.ExecPath("chromium"),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-features", "IsolateSandboxedIframes,Translate")) // a frame within reach of history
	allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocated)
	t.Cleanup(closeTab)
	b := &tab{t: t, ctx: ctx}
	must(t, chromedp.Listen(ctx, b.listen))
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate("file://"+page), chromedp.WaitReady(chromedp.CSS("#steps li")))
	return b
}

// listen notes errors, refused scripts, and requests: the page must make none.
func (b *tab) listen(event any) {
	wrong := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		wrong = "exception: " + e.ExceptionDetails.Text
	case *log.EventEntryAdded:
		wrong = "log: " + e.Entry.Text
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "file://") && !strings.HasPrefix(e.Request.URL, "about:") {
			wrong = "request: " + e.Request.URL
		}
	}
	if wrong != "" {
		b.mu.Lock()
		b.wrongs = append(b.wrongs, wrong)
		b.mu.Unlock()
	}
}

// limit bounds one action.
const limit = 30 * time.Second

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	must(b.t, chromedp.Do(ctx, actions...))
}

// get runs an action that has a value.
func get[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	must(b.t, err)
	return value
}

// call runs a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	value, err := chromedp.Call(ctx, command, params)
	must(b.t, err)
	return value
}

// text evaluates an expression to text.
func (b *tab) text(expression string) string {
	b.t.Helper()
	return get(b, chromedp.Evaluate[string]("String("+expression+")"))
}

func (b *tab) number(expression string) int {
	b.t.Helper()
	return int(get(b, chromedp.Evaluate[float64]("Number("+expression+")")))
}

func (b *tab) count(selector string) int {
	b.t.Helper()
	return b.number(fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

func (b *tab) want(what, expression, want string) {
	b.t.Helper()
	if got := b.text(expression); !strings.Contains(got, want) {
		b.t.Errorf("%s: %q, want %q in it", what, got, want)
	}
}

// step is the step that the page shows, from 0.
func (b *tab) step() int { return b.number("document.getElementById('slider').value") }

// sectors is the map of sectors as its classes.
func (b *tab) sectors() string {
	return b.text("[...document.querySelectorAll('#files .cell')].map((c) => c.className).join()")
}

func TestReport(t *testing.T) {
	g := prepare(t)
	b := open(t, g.page)
	b.want("title", "document.title", fmt.Sprintf("Seed %d violates K1", g.seed))
	b.want("property", "document.getElementById('property').innerText", "K1 An acked record is there after every recovery")
	b.want("violation", "document.getElementById('violation').innerText", "K1")
	b.want("replay", "document.getElementById('replay').innerText", fmt.Sprintf("varve-sim replay %d --ops 20", g.seed))
	b.want("schedule", "document.getElementById('text').innerText", fmt.Sprintf("seed %d", g.seed))
	b.timeline(t)
	b.stepping(t)
	b.history(t)
	b.overview(t, g)
	b.looks(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, wrong := range b.wrongs {
		t.Error(wrong)
	}
}

func (b *tab) timeline(t *testing.T) {
	lanes := b.number("JSON.parse(document.getElementById('data').textContent).tracks.length")
	if n := b.count("#names div"); n != lanes || n < 5 {
		t.Errorf("%d lanes, the story has %d", n, lanes)
	}
	b.want("lanes", "document.getElementById('names').innerText", "world\nlog\nTail")
	b.want("it begins at the violation", "document.getElementById('now').innerText", "VIOLATION of K1")
	if n := b.count("#picture .violated"); n != 1 {
		t.Errorf("%d signs of a violation in the picture", n)
	}
	last := b.number("document.getElementById('slider').max")
	b.do(chromedp.KeyEvent(kb.Home))
	b.want("first step", "document.getElementById('now').innerText", "step 1 of")
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	if n := b.step(); n != 1 {
		t.Errorf("an arrow key leads to step %d", n)
	}
	b.do(chromedp.Click(chromedp.CSS("#last")))
	if n := b.step(); n != last {
		t.Errorf("the last step is %d of %d", n, last)
	}
	b.do(chromedp.Click(chromedp.CSS("#first")), chromedp.Click(chromedp.CSS("#next")), chromedp.Click(chromedp.CSS("#next")), chromedp.Click(chromedp.CSS("#back")))
	if n := b.step(); n != 1 {
		t.Errorf("first, next, next, back lead to step %d", n)
	}
	b.do(chromedp.Click(chromedp.CSS("#jump")))
	if n := b.step(); n <= 1 {
		t.Errorf("no trouble after step 1: %d", n)
	}
	at := b.number("document.querySelector('#steps li:last-child').dataset.step")
	b.do(chromedp.Click(chromedp.CSS("#steps li:last-child")))
	if n := b.step(); n != at {
		t.Errorf("a click on step %d leads to %d", at, n)
	}
	b.do(chromedp.KeyEvent(kb.Home))
	for range last { // to the first ack
		b.do(chromedp.KeyEvent(kb.ArrowRight))
		if b.text("document.querySelector('#steps [aria-current]').className") == "acked" {
			break
		}
	}
	b.want("an ack", "document.getElementById('now').innerText", "acked")
	if bars, acks := b.count("#picture .bar"), b.count("#picture .acked"); bars == 0 || acks == 0 {
		t.Errorf("%d bars, %d acks", bars, acks)
	}
}

// stepping shows a write in the kernel alone, and that nothing but the step at hand is framed.
func (b *tab) stepping(t *testing.T) {
	b.do(chromedp.Click(chromedp.CSS("#first")))
	last := b.number("document.getElementById('slider').max")
	maps, framed, dirty := map[string]bool{}, 0, 0
	for range min(last, 60) {
		maps[b.sectors()] = true
		framed += b.count("#files .sector.changed")
		dirty += b.count("#files .cell.dirty")
		b.do(chromedp.KeyEvent(kb.ArrowRight))
	}
	if len(maps) < 5 || framed == 0 || dirty == 0 {
		t.Errorf("stepping shows %d maps, %d frames, %d sectors that are in the kernel only", len(maps), framed, dirty)
	}
	forward := b.sectors()
	b.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft))
	if b.sectors() != forward {
		t.Error("two steps on and two back lead to another map")
	}
	b.want("a file", "document.getElementById('files').innerText", "super.0")
	b.want("words for a file", "document.querySelector('#files .cells').getAttribute('aria-label')", "sectors:")
}

// history wants porcupine's picture, drawn by its own script inside the frame.
func (b *tab) history(t *testing.T) {
	b.do(chromedp.ScrollIntoView(chromedp.CSS("#porcupine")))
	shapes := 0
	for range 50 {
		all, pierce := int64(-1), true
		top := call(b, dom.GetDocument, dom.GetDocumentParams{Depth: &all, Pierce: &pierce})
		if shapes = shapesInFrames(top.Root, false); shapes > 4 { // the legend has two
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("%d rectangles in porcupine's picture", shapes)
}

func shapesInFrames(n *cdp.Node, inside bool) int {
	found := 0
	if inside && n.LocalName == "rect" {
		found++
	}
	for _, c := range n.Children {
		found += shapesInFrames(c, inside)
	}
	if n.ContentDocument != nil {
		found += shapesInFrames(n.ContentDocument, true)
	}
	return found
}

func (b *tab) overview(t *testing.T, g given) {
	if n := b.count(".bars tbody tr"); n != g.marks {
		t.Errorf("%d marks, want %d", n, g.marks)
	}
	if rates, checks, faults := b.count("#rates tbody tr"), b.count("#bychecks thead th"), b.count("#byfaults thead th"); rates != 2 || checks != 3 || faults != 3 {
		t.Errorf("%d planted bugs, %d and %d columns, want 2, 3, 3", rates, checks, faults)
	}
	b.want("a hostile name", "document.querySelector('#rates tbody tr:last-child th').innerText", "<b onclick=alert(1)>02</b>")
	b.want("bound", "document.getElementById('overview').innerText", "whole: all 91 sequences")
}

// looks wants no sideways scrolling at any width, and takes pictures if it is asked to.
func (b *tab) looks(t *testing.T) {
	shots := os.Getenv("VARVE_SCREENSHOTS")
	paper := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			b.do(chromedp.EmulateViewport(width, 900), chromedp.KeyEvent("j"))
			if over := b.number("document.scrollingElement.scrollWidth"); over > int(width) {
				t.Errorf("%s, %d pixels wide: the page is %d wide", scheme, width, over)
			}
			if n := b.number("document.getElementById('scroll').clientWidth"); n < int(width)/2 {
				t.Errorf("%d pixels wide: the timeline has %d", width, n)
			}
			paper[b.text("getComputedStyle(document.body).backgroundColor")] = true
			if shots != "" {
				png := get(b, chromedp.FullScreenshot(100))
				must(t, os.WriteFile(filepath.Join(shots, fmt.Sprintf("%s-%d.png", scheme, width)), png, 0o600))
			}
		}
	}
	if len(paper) != 2 {
		t.Errorf("light and dark have the colours %v", paper)
	}
}
