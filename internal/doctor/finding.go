package doctor

import (
	"fmt"
	"strings"
)

// Grade is how a check ended.
type Grade string

// Grades. Only Bad keeps something from working.
const (
	OK      Grade = "ok"
	Warn    Grade = "warn"
	Bad     Grade = "bad"
	Skipped Grade = "not-applicable"
	Unknown Grade = "unknown" // it can't be told
)

// Fault is something that a check may find. Words in braces stand for what is
// found there.
type Fault struct {
	ID    string // unique, such as munge-down
	Grade Grade  // Warn or Bad
	What  string // is wrong
	Why   string // it matters
	Fix   Fix
}

// Fix is how a fault is mended: a line to put into a file, commands to type, or
// both in this order.
type Fix struct {
	File string `json:"file,omitempty"` // where Line goes, in place of one with the same name
	Line string `json:"line,omitempty"`
	Run  string `json:"run,omitempty"`
}

// String returns the fix in one line.
func (f Fix) String() string {
	switch {
	case f.Line == "":
		return f.Run
	case f.Run == "":
		return f.File + ": " + f.Line
	}
	return f.File + ": " + f.Line + "; then " + f.Run
}

// Finding is what a check says.
type Finding struct {
	Check string `json:"check"`
	Grade Grade  `json:"grade"`
	ID    string `json:"finding,omitempty"` // of the fault, where there is one
	What  string `json:"what"`
	Why   string `json:"why,omitempty"`
	Fix   *Fix   `json:"fix,omitempty"`
}

// finding returns the fault with its words filled in: name, value, name, value.
func (f *Fault) finding(words ...string) []Finding {
	pairs := make([]string, 0, len(words))
	for i := 0; i+1 < len(words); i += 2 {
		pairs = append(pairs, "{"+words[i]+"}", words[i+1])
	}
	fill := strings.NewReplacer(pairs...).Replace
	return []Finding{{
		Grade: f.Grade, ID: f.ID, What: fill(f.What), Why: fill(f.Why),
		Fix: &Fix{File: fill(f.Fix.File), Line: fill(f.Fix.Line), Run: fill(f.Fix.Run)},
	}}
}

func okFinding(format string, args ...any) []Finding {
	return []Finding{{Grade: OK, What: fmt.Sprintf(format, args...)}}
}

func skipFinding(format string, args ...any) []Finding {
	return []Finding{{Grade: Skipped, What: fmt.Sprintf(format, args...)}}
}

func unknownFinding(format string, args ...any) []Finding {
	return []Finding{{Grade: Unknown, What: fmt.Sprintf(format, args...)}}
}

// orOK returns what was found, or that all is well.
func orOK(found []Finding, format string, args ...any) []Finding {
	if len(found) > 0 {
		return found
	}
	return okFinding(format, args...)
}
