package reproduction

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report"
)

// Kind tells figures from tables.
type Kind string

// The kinds of exhibits, as flags name them.
const (
	FigureKind Kind = "figure"
	TableKind  Kind = "table"
)

// Exhibit is a figure or a table of a paper.
type Exhibit struct {
	Kind   Kind
	Number int
	Shows  string
	WhyNot string // why it can't be computed anew; empty: it can

	sections []string
	// rows matches the findings that it has, by their names. Its groups say how they are drawn: a chart for
	// each "panel", a "line" in it over "x"; without x a bar for each finding, named by "line".
	rows     *regexp.Regexp
	x        string // what its horizontal axis is
	families string // of traces that the PWR+FGD paper shows, besides the default one
}

// Name returns the exhibit's name in the paper.
func (e *Exhibit) Name() string {
	if e.Kind == TableKind {
		return "Table " + strconv.Itoa(e.Number)
	}
	return "Figure " + strconv.Itoa(e.Number)
}

// Sections returns in which sections of the paper the exhibit's findings are computed.
func (e *Exhibit) Sections() []string { return e.sections }

// NeedsLists reports whether only the trace's own lists have what the exhibit shows.
func (e *Exhibit) NeedsLists() bool { return e.families != "" }

// Has reports whether a finding is one of the exhibit's.
func (e *Exhibit) Has(f *Finding) bool {
	return e.WhyNot == "" && slices.Contains(e.sections, f.Section) && e.rows.MatchString(f.What)
}

// Exhibits returns the figures and tables of the paper, tables first.
func (p *Paper) Exhibits() []Exhibit { return exhibits[p.Name] }

// Exhibit returns a figure or table, or the error that says which there are.
func (p *Paper) Exhibit(kind Kind, number string) (*Exhibit, error) {
	var have, not []string
	for i, e := range p.Exhibits() {
		switch own := strconv.Itoa(e.Number); {
		case e.Kind != kind:
		case own == number && e.WhyNot != "":
			return nil, fmt.Errorf("it can't be computed anew: %s", e.WhyNot)
		case own == number:
			return &p.Exhibits()[i], nil
		case e.WhyNot != "":
			not = append(not, own)
		default:
			have = append(have, own)
		}
	}
	text := "want some of " + strings.Join(have, ", ")
	if len(not) > 0 {
		text += fmt.Sprintf("; %s can't be computed anew (epplab reproduce --list)", strings.Join(not, ", "))
	}
	return nil, fmt.Errorf("the paper has no such %s, %s", kind, text)
}

// Shown returns which figures and tables have a finding: "Table 1, Figures 5, 8".
func (p *Paper) Shown(f *Finding) string {
	numbers := map[Kind][]string{}
	for i := range p.Exhibits() {
		if e := &p.Exhibits()[i]; e.Has(f) {
			numbers[e.Kind] = append(numbers[e.Kind], strconv.Itoa(e.Number))
		}
	}
	var parts []string
	for _, kind := range []Kind{TableKind, FigureKind} {
		if list := numbers[kind]; len(list) > 0 {
			name := strings.ToUpper(string(kind[:1])) + string(kind[1:])
			if len(list) > 1 {
				name += "s"
			}
			parts = append(parts, name+" "+strings.Join(list, ", "))
		}
	}
	return strings.Join(parts, ", ")
}

// ExhibitsTable lists the figures and tables of some papers.
func ExhibitsTable(papers []*Paper) *report.Table {
	type row struct {
		of *Paper
		Exhibit
	}
	var all []row
	for _, p := range papers {
		for _, e := range p.Exhibits() {
			all = append(all, row{p, e})
		}
	}
	return report.TableOf(all, func(r *report.Row, e *row) {
		r.Add(report.Column{Key: "of", Head: "of", Left: true}, report.Text(cmp.Or(e.of, &Paper{}).Name))
		r.Add(report.Column{Key: "name", Head: "name", Left: true}, report.Text(e.Name()))
		r.Add(report.Column{Key: "shows", Head: "shows", Left: true}, report.Text(e.Shows))
		r.Add(report.Column{Key: "sections", Head: "sections", Left: true},
			report.NonEmpty(strings.Join(e.sections, ", ")))
		r.Add(report.Column{Key: "why_not", Head: "why it isn't computed", Left: true}, report.NonEmpty(e.WhyNot))
	})
}

// Reasons why an exhibit can't be computed anew.
const (
	noNumbers  = "a drawing, without numbers"
	inWords    = "text or symbols, without results"
	inputData  = "what the experiments are given, not a result"
	noTrace    = "needs series of the traces that the paper doesn't publish"
	noHardware = "measured on the paper's GPU"
	noModel    = "needs the paper's language model and its programs"
)

func not(kind Kind, number int, shows, why string) Exhibit {
	return Exhibit{Kind: kind, Number: number, Shows: shows, WhyNot: why}
}

func table(number int, shows, section string) Exhibit {
	return Exhibit{
		Kind: TableKind, Number: number, Shows: shows, sections: []string{section}, rows: regexp.MustCompile(""),
	}
}

func figure(number int, shows, sections, rows string) Exhibit {
	return Exhibit{
		Kind: FigureKind, Number: number, Shows: shows, sections: strings.Split(sections, ","),
		rows: regexp.MustCompile(rows),
	}
}

// over returns the figure with lines over a quantity.
func (e Exhibit) over(x string) Exhibit {
	e.x = x
	return e
}

// ofFamilies returns the figure for other traces than the default one.
func (e Exhibit) ofFamilies(families string) Exhibit {
	e.families = families
	e.rows = regexp.MustCompile("^(?P<panel>" + families + "), ")
	return e
}

const (
	offlinePolicies = `(?P<line>edl:1|edf-bf|edf-wf|lpt-ff)`
	ofDefault       = `^(?P<panel>default|synthetic), `
	mixesWithFGD    = `(pwr|(fgd ahead of )?pwr and the mixes|pwr\+fgd:[0-9.]+|fgd)[ ,]`
)

// exhibits are the figures and tables of each paper, by its name.
var exhibits = map[string][]Exhibit{ //nolint:gochecknoglobals // constant
	"edl": {
		not(TableKind, 1, "related work", inWords),
		not(TableKind, 2, "notation", inWords),
		table(3, "five tasks at their optimum", "table3"),
		not(FigureKind, 1, "the cluster", noNumbers),
		not(FigureKind, 2, "an example of a schedule", noNumbers),
		not(FigureKind, 3, "theorem 1", noNumbers),
		figure(4, "saving of single applications", "single", `(?P<line>.*)`),
		figure(5, "energy saved over utilisation, l 1", "offline", `^`+offlinePolicies+`, U (?P<x>[0-9.]+), l 1$`).
			over("utilisation"),
		figure(6, "idle energy without DVFS", "offline", `^(?P<line>.* without DVFS, .*)`),
		figure(7, "servers in use over utilisation, l 1", "figure7", `^(?P<line>.*), U (?P<x>[0-9.]+)$`).
			over("utilisation"),
		figure(8, "energy saved over utilisation, servers of several pairs", "offline",
			`^`+offlinePolicies+`, U (?P<x>[0-9.]+), (?P<panel>l (4|16))$`).over("utilisation"),
		figure(9, "energy saved with θ-readjustment", "offline",
			`^(?P<line>edl:[0-9.]+|lpt-ff), U (?P<x>[0-9.]+), (?P<panel>l [0-9]+)$`).over("utilisation"),
		figure(10, "energy of a day", "online", `^(?P<line>run energy.*|total, .*, l 16)$`),
		figure(11, "idle energy of a day", "online", `^(?P<line>idle, .*)`),
		figure(12, "energy of a day with θ-readjustment", "online", `^total, (?P<line>edl:[0-9.]+), l (?P<x>[0-9]+)$`).
			over("l, pairs per server"),
		figure(13, "energy of a day saved with θ-readjustment", "figure13", `^(?P<line>edl:[0-9.]+), l (?P<x>[0-9]+)$`).
			over("l, pairs per server"),
	},
	"pwr": {
		not(TableKind, 1, "tasks of the default trace", inputData),
		not(TableKind, 2, "GPU models of the trace", inputData),
		figure(1, "power of FGD", "power", ofDefault+`(?P<line>.*)`),
		figure(2, "power saved, and GRAR, of PWR and its mixes with FGD", "savings,grar", ofDefault+mixesWithFGD),
		figure(3, "power saved, default trace", "savings", ofDefault),
		figure(4, "power saved, shared GPUs", "savings", "").ofFamilies("gpushare100"),
		figure(5, "power saved, several GPUs", "savings", "").ofFamilies("multigpu20|multigpu50"),
		figure(6, "power saved, GPU models named", "savings", "").ofFamilies("gpuspec10|gpuspec33"),
		figure(7, "GRAR, default trace", "grar", ofDefault),
		figure(8, "GRAR, shared GPUs", "grar", "").ofFamilies("gpushare40|gpushare100"),
		figure(9, "GRAR, several GPUs", "grar", "").ofFamilies("multigpu20|multigpu50"),
		figure(10, "GRAR, GPU models named", "grar", "").ofFamilies("gpuspec10|gpuspec33"),
	},
	"predict": {
		table(1, "waiting, running time and energy", "table1"),
		table(2, "the value rule tuned for one aim", "table2"),
		not(FigureKind, 1, "the method", noNumbers),
		not(FigureKind, 2, "the prediction", noNumbers),
		not(FigureKind, 3, "the model", noNumbers),
		figure(4, "Greedy and the value rule against Simple; without 4a, the arrivals", "table1,figure4",
			`^(?P<line>.* saved(, coupled energy)?)$`),
		not(FigureKind, 5, "the extended pipeline", noNumbers),
		not(FigureKind, 6, "distances of representations", noModel),
		figure(7, "the value rule tuned for one aim", "table2", `^(?P<line>simple|value tuned for [a-z ]+): `+
			`(?P<panel>(total waiting time|jobs that wait|total running time|energy)(, coupled energy)?)$`),
	},
	"cats": {
		table(1, "times to solve the optimisation problem", "table1"),
		table(2, "times of a correlation", "table2"),
		not(TableKind, 3, "GPUs of the testbed", inputData),
		not(TableKind, 4, "tasks of the testbed", inputData),
		not(FigureKind, 1, "power and time by frequency", noHardware),
		not(FigureKind, 2, "correlations of the Philly trace's tasks", noTrace),
		not(FigureKind, 3, "memory of the PAI trace's tasks", noTrace),
		not(FigureKind, 4, "the framework", noNumbers),
		not(FigureKind, 5, "two tasks that fit together", noNumbers),
		not(FigureKind, 6, "an example of consolidation", noNumbers),
		figure(7, "power on the testbed (7a)", "testbed", `^mean of both stages: (?P<line>.*)`),
		figure(8, "GPUs, power and times, PAI trace", "pai", simulated(`cats|hotcloud|first`)),
		figure(9, "GPUs, power and times, Philly trace", "philly", simulated(`cats|hotcloud|first`)),
		figure(10, "power and times of other consolidations, Philly trace", "philly", simulated(`cats|fgd|bf|dp`)),
	},
}

func simulated(policies string) string {
	return `^(?P<line>` + policies + `): (?P<panel>GPUs on|power|completion time.*)$`
}
