package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// JUnit XML, as far as build servers read it. A run is a suite with a case for each kind of failure,
// or one for all seeds if there is none, and one for the marks.
type junitSuites struct {
	XMLName xml.Name   `xml:"testsuites"`
	Suite   junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Failure *junitResult `xml:"failure,omitempty"`
	Error   *junitResult `xml:"error,omitempty"`
}

type junitResult struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

const junitClass = "varve-sim.disk"

// junit writes the report. A run that ended for another reason than a violation or marks, such as an
// interrupt, is an error.
func (r *runReport) junit(file string, verdict error) error {
	suite := junitSuite{
		Name: "varve-sim run", Time: fmt.Sprintf("%.3f", r.wall.Seconds()),
		Properties: []junitProperty{
			{"seeds", fmt.Sprint(r.totals.seeds)},
			{"from", fmt.Sprint(r.from)},
			{"shard", r.shard.String()},
			{"ops", fmt.Sprint(r.job.ops)},
			{"hash", fmt.Sprintf("%016x", r.digest)},
			{"build", buildLine()},
		},
	}
	for _, g := range r.groups.list() {
		v := g.Lowest
		suite.Failures++
		suite.Cases = append(suite.Cases, junitCase{Class: junitClass, Name: signature(v.Check, v.Text), Failure: &junitResult{
			Message: fmt.Sprintf("%s violated by seed %d and %d more: %s", v.Check, v.Seed, g.Count-1, headline(v.Text)), Type: v.Check,
			Text: strings.Join([]string{v.Text, v.replay(r.job), v.Stack}, "\n"),
		}})
	}
	lost := r.lost()
	if suite.Failures == 0 {
		whole := junitCase{Class: junitClass, Name: "no seed violates a property"}
		if verdict != nil && len(lost) == 0 {
			whole.Error = &junitResult{Message: verdict.Error(), Type: "stopped"}
			suite.Errors++
		}
		suite.Cases = append(suite.Cases, whole)
	}
	marks := junitCase{Class: junitClass, Name: "every mark is reached"}
	if len(lost) > 0 {
		marks.Failure = &junitResult{Message: "not reached: " + strings.Join(lost, ", "), Type: "K21"}
		suite.Failures++
	}
	suite.Cases = append(suite.Cases, marks)
	suite.Tests = len(suite.Cases)
	text, err := xml.MarshalIndent(junitSuites{Suite: suite}, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(file, append([]byte(xml.Header), append(text, '\n')...))
}
