package report

import (
	"crypto/sha256"
	_ "embed" // for the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"

	"varve/sim"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// Page is what a report shows. Parts that are nil are said to be missing.
type Page struct {
	Story    *Story
	Schedule *sim.Schedule
	Replay   string // the line that runs it again
	History  string // porcupine's page about the run, "" if there is none
	Overview Overview
}

// view is a page with what the template needs beside it.
type view struct {
	*Page
	Policy template.HTMLAttr
	Style  template.CSS
	Script template.JS
}

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"group": group,
	"titled": func(title, id string, m *matrix) map[string]any {
		return map[string]any{"Title": title, "ID": id, "Of": m}
	},
}).Parse(pageHTML))

// Write writes the page.
func Write(w io.Writer, p *Page) error {
	v := &view{Page: p, Style: template.CSS(pageCSS), Script: template.JS(pageJS)}
	scripts := []string{pageJS}
	for _, m := range inlineScript.FindAllStringSubmatch(p.History, -1) {
		scripts = append(scripts, m[1])
	}
	// A frame made of srcdoc has the policy of the page around it.
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; frame-src 'self'; script-src"
	for _, s := range scripts {
		sum := sha256.Sum256([]byte(s))
		policy += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	v.Policy = template.HTMLAttr(`content="` + policy + `"`)
	return page.Execute(w, v)
}

var inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

// Subject is what the page is about, in a few words.
func (p *Page) Subject() string {
	if p.Story == nil {
		return "Overview"
	}
	seed := fmt.Sprintf("Seed %d", p.Schedule.Header.Seed)
	switch r := &p.Story.Result; {
	case r.Violation != "":
		return seed + " violates " + r.Check
	case r.Refused:
		return seed + ": damage, refused"
	}
	return seed + ": good"
}

// Verdict is how the run ended, for the style sheet.
func (p *Page) Verdict() string {
	switch {
	case p.Story == nil:
		return "none"
	case p.Story.Result.Violation != "":
		return "violated"
	case p.Story.Result.Refused:
		return "refused"
	}
	return "good"
}

// Promise is the violated property in words.
func (p *Page) Promise() string {
	if words := Properties[p.Story.Result.Check]; words != "" {
		return words
	}
	return "A property that this page has no words for."
}

// Text is the schedule as text.
func (p *Page) Text() string { return string(p.Schedule.AppendText(nil)) }

// Facts are the figures of the run.
func (p *Page) Facts() []fact {
	r := &p.Story.Result
	ops, appends := p.Schedule.Ops()
	faults := strings.Join(p.Story.Faults, ", ")
	if faults == "" {
		faults = "none"
	}
	return []fact{
		{"profile", p.Schedule.Header.Profile.String()},
		{"schedule", fmt.Sprintf("%d events, %d operations, %d appends", len(p.Schedule.Events), ops, appends)},
		{"ran", fmt.Sprintf("%d events", r.Events)},
		{"lives", fmt.Sprint(r.Lives)},
		{"acked", fmt.Sprintf("%d appends", r.Acked)},
		{"faults that struck", faults},
		{"hash", fmt.Sprintf("%016x", r.Hash)},
	}
}
