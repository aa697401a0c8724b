package queue

import (
	"cmp"
	"fmt"
	"slices"
)

// WarningKind says what a warning is about. The most dangerous kinds come first: those by which a plan
// promises what nobody knows.
type WarningKind int

// The kinds of warnings.
const (
	WarnRunTime       WarningKind = iota // a run time taken for another GPU model than it was measured on
	WarnNoRunTime                        // the time of a workload's measurements, as the job states none and others do
	WarnPowerLimit                       // a stated power that its board can't have, and isn't used
	WarnKilled                           // a job that takes longer than its limit allows
	WarnUnits                            // a unit that the file doesn't state
	WarnContradiction                    // a stated power that a model contradicts
	WarnWorkload                         // a workload without a model
	WarnEstimate                         // GPU models whose values are estimates
	WarnProfile                          // a profile that isn't used
	WarnPower                            // a power that nobody states
	WarnUnused                           // a part of the file that isn't used
	WarnOther                            // anything else; such warnings aren't counted together
)

// warningKinds are the names of kinds in JSON, and what several warnings of a kind say in one line, after
// the number of jobs, or of warnings that are about no single job.
var warningKinds = [...]struct{ name, one, many string }{
	WarnRunTime: {
		"run_time_assumed", "job may run on a GPU model on which its run time wasn't measured",
		"jobs may run on GPU models on which their run times weren't measured",
	},
	WarnNoRunTime: {
		"run_time_missing", "job states no run time: its workload's measured one is taken",
		"jobs state no run times: their workloads' measured ones are taken",
	},
	WarnPowerLimit: {
		"power_impossible", "job states a power that its board can't have, which isn't used",
		"jobs state powers that their boards can't have, which aren't used",
	},
	WarnKilled: {
		"killed_at_limit", "job will be killed at its limit", "jobs will be killed at their limits",
	},
	WarnUnits: {"unit_assumed", "unit assumed", "units assumed"},
	WarnContradiction: {
		"power_contradicted", "job states another power than its model",
		"jobs state other powers than their models",
	},
	WarnWorkload: {
		"workload_without_model", "job of a workload without a model", "jobs of workloads without a model",
	},
	WarnEstimate: {"estimates", "GPU model rests on estimates", "GPU models rest on estimates"},
	WarnProfile:  {"profile_unused", "job whose profile isn't used", "jobs whose profiles aren't used"},
	WarnPower: {
		"power_assumed", "job has no known power: one is assumed", "jobs have no known power: one is assumed",
	},
	WarnUnused: {"unused", "part of the file isn't used", "parts of the file aren't used"},
	WarnOther:  {"other", "further warning", "further warnings"},
}

// String returns the kind's name in JSON.
func (k WarningKind) String() string { return warningKinds[k].name }

// Warning is a warning about a batch, or about what a plan of it takes for granted.
type Warning struct { //nolint:errname // it goes where errors go, and is none
	Kind   WarningKind
	Job    string  // the job that it is about; empty: none in particular
	Weight float64 // how bad it is beside others of its kind
	Err    error   // what it says
}

// Error returns what the warning says.
func (w *Warning) Error() string { return w.Err.Error() }

// Unwrap returns the error with the position.
func (w *Warning) Unwrap() error { return w.Err }

// WarningGroup holds the warnings of one kind.
type WarningGroup struct {
	Kind  WarningKind
	Count int     // jobs, or warnings that are about no single job
	Worst error   // the one of the greatest weight, the first of several
	All   []error // in the order in which they came
}

// GroupWarnings gathers warnings by kind, the most dangerous kind first. Each warning of [WarnOther], or
// of no kind, is a group of its own.
func GroupWarnings(warnings []error) []WarningGroup {
	var groups []WarningGroup
	at := make(map[WarningKind]int)
	jobs := make(map[WarningKind]map[string]bool)
	weights := make(map[WarningKind]float64)
	for _, err := range warnings {
		w, ok := err.(*Warning) //nolint:errorlint // a warning that another one wraps is not of its kind
		if !ok {
			w = &Warning{Kind: WarnOther, Err: err}
		}
		i, known := at[w.Kind]
		if !known || w.Kind == WarnOther {
			i = len(groups)
			at[w.Kind], weights[w.Kind], jobs[w.Kind] = i, w.Weight, make(map[string]bool)
			groups = append(groups, WarningGroup{Kind: w.Kind, Worst: err})
		}
		g := &groups[i]
		g.All = append(g.All, err)
		if w.Job == "" || !jobs[w.Kind][w.Job] {
			jobs[w.Kind][w.Job] = true
			g.Count++
		}
		if w.Weight > weights[w.Kind] {
			weights[w.Kind], g.Worst = w.Weight, err
		}
	}
	slices.SortStableFunc(groups, func(a, b WarningGroup) int { return cmp.Compare(a.Kind, b.Kind) })
	return groups
}

// Text returns one line about all warnings of the group: how many there are, and the worst one.
func (g *WarningGroup) Text() string {
	if len(g.All) == 1 {
		return g.Worst.Error()
	}
	what := warningKinds[g.Kind].many
	if g.Count == 1 {
		what = warningKinds[g.Kind].one
	}
	return fmt.Sprintf("%d %s, such as %s", g.Count, what, g.Worst.Error())
}

// WithoutWarnings returns the warnings that are of none of the kinds.
func WithoutWarnings(warnings []error, kinds ...WarningKind) []error {
	return slices.DeleteFunc(slices.Clone(warnings), func(err error) bool {
		w, ok := err.(*Warning) //nolint:errorlint // as in GroupWarnings
		return ok && slices.Contains(kinds, w.Kind)
	})
}

// WarningSummary is a kind of warnings as JSON has it.
type WarningSummary struct {
	Kind    string   `json:"kind"`
	Count   int      `json:"count"`
	Text    string   `json:"text"`    // the line that people read
	Example string   `json:"example"` // the worst
	All     []string `json:"all,omitempty"`
}

// SummariseWarnings lists the kinds of warnings, the most dangerous first, on request with each warning.
func SummariseWarnings(warnings []error, every bool) []WarningSummary {
	groups := GroupWarnings(warnings)
	list := make([]WarningSummary, len(groups))
	for i := range groups {
		g := &groups[i]
		list[i] = WarningSummary{Kind: g.Kind.String(), Count: g.Count, Text: g.Text(), Example: g.Worst.Error()}
		for k := 0; every && k < len(g.All); k++ {
			list[i].All = append(list[i].All, g.All[k].Error())
		}
	}
	return list
}

// WarningLines are warnings as lines for people: one for each kind, and a few of those of no kind; or all of
// them.
func WarningLines(warnings []error, all bool) []string {
	const most = 5
	var lines []string
	others := 0
	for _, g := range GroupWarnings(warnings) {
		if g.Kind == WarnOther {
			others++
		}
		switch {
		case all:
			for _, w := range g.All {
				lines = append(lines, w.Error())
			}
		case others <= most:
			lines = append(lines, g.Text())
		}
	}
	if more := others - most; more > 0 && !all {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	return lines
}
