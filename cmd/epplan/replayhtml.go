package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
)

func writeInflationPage(t *terminal, w io.Writer, in *inflation, runs [][]inflationRun) error {
	r := &page.Report{
		Title: "Replay of " + in.label, Lead: in.verdict(runs), Foot: t.provenance(in.inputs()...),
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
	"GPU allocation ratio": {"grar.svg", "The part of the GPUs asked for that was allocated. Where it falls " +
		"below 1, tasks are dropped."},
	"Expected fragmentation": {"fragmentation.svg", "GPUs that are free and that a task of the trace can't be " +
		"expected to use. Less is better."},
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
	text := fmt.Sprintf("%s for a trace of %s: %s. At an arrived load of %s, %s takes the "+
		"least power: %.1f kW",
		plural(len(in.policies), "placement policy", "placement policies"), plural(len(in.demands), "task"),
		in.streamsText(), loadText(highest),
		in.policies[best].Name, in.power(runs[best], highest).mean/1000)
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
			Name: "Trace", Text: fmt.Sprintf("%s: %s on %s", in.label, plural(len(in.trace.pods), "task"),
				plural(len(in.trace.rows), "node")),
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

func writeDeparturesPage(t *terminal, w io.Writer, d *departures) error {
	r := &page.Report{
		Title: "Replay of " + d.in.label + " with departures", Foot: t.provenance(d.in.inputs()...),
		Lead: fmt.Sprintf("%s that stay as long as they did in the trace, placed by %s; nodes without "+
			"tasks sleep by %s.",
			plural(len(d.durations), "task"), plural(len(d.in.policies), "policy", "policies"),
			plural(len(d.parks), "rule")),
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

func (h *historyReplay) writePage(w io.Writer, c *cli.Context, r *historyReport) error {
	last := r.lastPolicy()
	out := &page.Report{
		Title: "What " + batchName(h.name) + " would have cost", Lead: r.verdict(last),
		Foot: h.terminal.provenance(h.setup.inputs(c, h.name)...),
		Parts: []any{
			r.facts(), r.policyTable().Page("A row for each policy",
				fmt.Sprintf("Medians of %d draws of how workloads respond to clocks; between the bounds "+
					"are 90 %% of them. Saved is against the first row.", r.Draws), -1),
		},
	}
	if lines := queue.WarningLines(h.warnings, h.terminal.everyWarning); len(lines) > 0 {
		out.Parts = append(out.Parts, &page.Notice{Kind: page.Warn, Text: "The replay warns:", Items: lines})
	}
	savings := make([]report.Estimate, 0, len(r.Policies))
	for i := range r.Policies[1:] {
		p := &r.Policies[1+i]
		savings = append(savings,
			report.Estimate{
				Name: p.Policy, Note: "of the cluster", Value: p.Saved.Value, Low: p.Saved.Low,
				High: p.Saved.High,
			},
			report.Estimate{
				Name: p.Policy, Note: "of GPUs that run jobs", Value: p.JobSaved.Value, Low: p.JobSaved.Low,
				High: p.JobSaved.High,
			})
	}
	figure := report.EstimateFigure("saved",
		"What each policy would have saved of the energy at default clocks, with the bounds between which "+
			"90 % of the draws lie. What isn't to the right of 0 may be no saving.",
		"saved", report.Fraction, savings)
	out.Sections = append(out.Sections,
		page.Section{
			ID: "saved-by-policy", Heading: "What is saved, and how sure that is",
			Parts: []any{figure, historyCaveats(r)},
		})
	groups := last.groups()
	who, tables := make([]string, 0, len(groups)), make([]any, 0, len(groups))
	for _, group := range groups {
		who, tables = append(who, group.name+"s"), append(tables,
			groupPage(group.name, last.Policy, group.list))
	}
	if len(tables) > 0 {
		heading := strings.Join(who, " and ")
		out.Sections = append(out.Sections, page.Section{
			ID: "who", Heading: strings.ToUpper(heading[:1]) + heading[1:], Parts: tables,
		})
	}
	return page.WriteReport(w, out)
}

func groupPage(name, policy string, list []historyGroup) *page.Table {
	t := groupTable(name, list).Page("By "+name+", under "+policy, "Energy of GPUs that run jobs.", -1)
	if n := len(list) - len(t.Rows); n > 0 {
		t.More = plural(n, "more isn't shown here", "more aren't shown here") + "; --json has all of them."
	}
	return t
}

// verdict is the replay in words, by its last policy.
func (r *historyReport) verdict(p *historyPolicy) string {
	return fmt.Sprintf("%s replayed. Under %s the cluster would have used %s less than at default clocks, "+
		"first come, first served: %s of the draws of how workloads respond say between %s and %s. Jobs "+
		"would have waited %s on average, and run %.3f times as long.",
		plural(r.Jobs, "job"), p.Policy, report.FormatPercent(p.Saved.Value), "90 %",
		report.FormatPercent(p.Saved.Low), report.FormatPercent(p.Saved.High),
		report.FormatClock(p.MeanWait.Value), p.Stretch.Value) + fmt.Sprintf(" At the best clocks that are "+
		"the same for all jobs of a GPU model it would have been %s less.",
		report.FormatPercent(r.Policies[1].Saved.Value)) + r.reservations()
}

// reservations are sentences on the cluster and the limits, where there is something to say.
func (r *historyReport) reservations() string {
	text := ""
	if cluster := r.clusterText(); cluster != "" {
		text += " Cluster: " + cluster + "."
	}
	if limits := r.limitsText(); limits != "" {
		text += " Limits: " + limits + "."
	}
	return text
}

// facts say what was replayed, as the text output does.
func (r *historyReport) facts() page.Facts {
	return page.Facts{
		{Name: "Jobs", Text: plural(r.Jobs, "job") + "; left out: " + r.Left.text()},
		{
			Name: "Responses",
			Text: fmt.Sprintf("%s of %s by their models, %s of %s by what workloads have in common",
				plural(r.Left.KnownJobs, "job"), plural(r.Left.KnownKinds, "workload"),
				plural(r.Left.PriorJobs, "job"), plural(r.Left.PriorKinds, "workload")),
		},
		{Name: "Energy", Text: r.energyText()},
		{Name: "Constant", Text: r.constantClocksText()},
		{Name: "Waiting", Text: r.waitingText()},
	}
}

func historyCaveats(r *historyReport) *page.Notice {
	n := &page.Notice{
		Kind: page.Info, Text: "The intervals cover how workloads respond to clocks, and nothing else.",
		Items: []string{
			"Jobs that have no model respond as workloads do on average, each draw somewhat otherwise.",
			"Users would have submitted the same jobs at the same times, whatever the queue did.",
		},
	}
	if r.Left.AtDefault > 0 {
		n.Items = append(n.Items,
			plural(r.Left.AtDefault, "job that hit its limit runs", "jobs that hit their limits run")+
				" at default clocks: how much work was left nobody knows.")
	}
	if r.Left.NoPower > 0 {
		n.Items = append(n.Items,
			plural(r.Left.NoPower, "job has", "jobs have")+" no energy in the log; power is assumed.")
	}
	if r.Left.Learning > 0 {
		n.Items = append(n.Items,
			fmt.Sprintf("The first %d jobs of each workload run at default clocks until its "+
				"response is known.", r.Learning))
	}
	return n
}
