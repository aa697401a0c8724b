package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/planner/policy"
)

func writeInflationPage(t *terminal.Terminal, w io.Writer, in *inflation, runs [][]inflationRun) error {
	r := &page.Report{
		Title: "Replay of " + in.label, Lead: in.verdict(runs), Foot: t.Provenance(in.inputs()...),
		Parts: []any{in.table(runs).Page("A row for each policy", in.columnsInWords(), -1)},
	}
	curves := page.Section{ID: "curves", Heading: "Curves over the arrived load"}
	for i, c := range in.charts(runs) {
		curves.Parts = append(curves.Parts,
			report.ChartFigure("curve-"+strconv.Itoa(i+1), replayCharts[c.Title].words, &c))
	}
	r.Sections = append(r.Sections, curves, policySection(in))
	if warnings := in.unplaceableArrivals(runs); len(warnings) > 0 {
		notice := &page.Notice{Kind: page.Warn, Text: "Some tasks had no chance:"}
		for _, warning := range warnings {
			notice.Items = append(notice.Items, warning.Error())
		}
		r.Parts = append([]any{notice}, r.Parts...)
	}
	for _, note := range in.unequalWork(runs) {
		r.Parts = append(r.Parts, &page.Notice{Kind: page.Warn, Text: note})
	}
	return page.WriteReport(w, r)
}

// replayCharts are the files of a replay's charts, and what they show, by their titles.
var replayCharts = map[string]struct{ file, words string }{
	"Power": {"power.svg", "Power of the whole cluster as tasks arrive."},
	"Power saved": {"saving.svg", "By how much less power a policy's placement takes than the base's, as " +
		"tasks arrive. Above 0 is better."},
	"GPU allocation ratio": {
		"grar.svg",
		"The part of the GPUs asked for that was allocated. Where it falls " +
			"below 1, tasks are dropped.",
	},
	"Expected fragmentation": {
		"fragmentation.svg",
		"GPUs that are free and that a task of the trace can't be " +
			"expected to use. Less is better.",
	},
}

func (in *inflation) columnsInWords() string {
	text := "GRAR is the part of the GPUs asked for that was allocated, EOPC the power of the cluster."
	if in.base >= 0 {
		text = "Saved is against " + in.policies[in.base].Name + " at that load. " + text
	}
	if len(in.seeds) > 1 {
		text += fmt.Sprintf(" Means of %d streams ± standard deviations.", len(in.seeds))
	}
	return text
}

// verdict says which policy saves most at the highest load, or takes the least
// power.
func (in *inflation) verdict(runs [][]inflationRun) string {
	highest := in.loads[len(in.loads)-1]
	best := 0
	for p := range runs {
		if in.power(runs[p], highest).mean < in.power(runs[best], highest).mean {
			best = p
		}
	}
	text := fmt.Sprintf(
		"%s for a trace of %s: %s. At an arrived load of %s, %s takes the "+
			"least power: %.1f kW",
		report.Plural(len(in.policies), "placement policy", "placement policies"),
		report.Plural(len(in.demands), "task"),
		in.streamsText(),
		loadText(highest),
		in.policies[best].Name,
		in.power(runs[best], highest).mean/1000,
	)
	if in.base >= 0 && best != in.base {
		text += fmt.Sprintf(", %.1f %% less than %s", 100*in.saving(runs, best, highest).mean,
			in.policies[in.base].Name)
		if in.isUnequal(runs, best, highest) {
			text += " for other work"
		}
	}
	return text + fmt.Sprintf(". It allocates %.1f %% of the GPUs asked for by then.",
		100*in.ratio(runs[best], highest).mean)
}

func (in *inflation) inputs() []page.Fact {
	return []page.Fact{
		{
			Name: "Trace",
			Text: fmt.Sprintf("%s: %s on %s", in.label, report.Plural(len(in.trace.pods), "task"),
				report.Plural(len(in.trace.rows), "node")),
		},
		{Name: "Streams", Text: in.streamsText()},
	}
}

func policySection(in *inflation) page.Section {
	facts := make(page.Facts, len(in.policies))
	for i, p := range in.policies {
		facts[i] = page.Fact{Name: p.Name, Text: p.Name}
		name, _, _ := strings.Cut(strings.ToLower(p.Name), ":")
		if _, doc := policy.DescribePlacement(name); doc != "" {
			facts[i].Text = doc
		}
	}
	return page.Section{ID: "policies", Heading: "What the policies do", Parts: []any{facts}}
}

func writeDeparturesPage(t *terminal.Terminal, w io.Writer, d *departures) error {
	r := &page.Report{
		Title: "Replay of " + d.in.label + " with departures", Foot: t.Provenance(d.in.inputs()...),
		Lead: fmt.Sprintf("%s that stay as long as they did in the trace, placed by %s; nodes without "+
			"tasks sleep by %s.",
			report.Plural(len(d.durations), "task"), report.Plural(len(d.in.policies), "policy", "policies"),
			report.Plural(len(d.parks), "rule")),
		Parts: []any{d.table().Page("A row for each policy, load and rule for sleep",
			"EOPC is the mean power of the cluster while it is observed; by sleep is what sleep saves of "+
				"the same placement on nodes that never sleep.", -1)},
	}
	if len(d.in.loads) > 1 && !d.raw {
		s := page.Section{ID: "power", Heading: "Power by load"}
		for i := range d.parks {
			chart := d.powerChart(i)
			s.Parts = append(s.Parts, report.ChartFigure("park-"+strconv.Itoa(i+1),
				"Mean power of the cluster by its load. "+chart.Title+".", &chart))
		}
		r.Sections = append(r.Sections, s)
	}
	r.Sections = append(r.Sections, policySection(&d.in))
	return page.WriteReport(w, r)
}

// powerChart is power over load with a rule for sleep, a line for each policy.
func (d *departures) powerChart(parked int) report.Chart {
	c := report.Chart{
		X: "load, parts of the cluster's GPUs", Y: "EOPC, kW",
		Title: "Nodes sleep after " + d.parks[parked].name + " s",
	}
	if d.parks[parked].isNever() {
		c.Title = "Nodes never sleep"
	}
	for p := range d.in.policies {
		line := report.Series{Name: d.in.policies[p].Name}
		for i := range d.runsOf {
			if r := &d.runsOf[i]; r.policy == p && r.park == parked {
				power := meanSDOf(len(r.passages), func(s int) float64 {
					return meanPower(&r.passages[s]) / 1000
				})
				line.X, line.Y = append(line.X, d.in.loads[r.load]), append(line.Y, power.mean)
			}
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}
