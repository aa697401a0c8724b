package replay

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/queue"
)

func (h *historyReplay) writePage(w io.Writer, c *cli.Context, r *HistoryReport) error {
	last := r.lastPolicy()
	out := &page.Report{
		Title: "What " + setup.BatchName(h.name) + " would have cost", Lead: r.verdict(last),
		Foot: h.terminal.Provenance(h.setup.Inputs(c, h.name)...),
		Parts: []any{r.facts(), r.policyTable().Page("A row for each policy",
			fmt.Sprintf("Medians of %d draws of how workloads respond to clocks; between the bounds "+
				"are 90 %% of them. Saved is against the first row.", r.Draws), -1)},
	}
	if costs := r.costTable(); costs != nil {
		out.Parts = append(out.Parts, costs.Page(costCaption, "Medians of the draws.", -1))
	}
	if lines := queue.WarningLines(h.warnings, h.terminal.EveryWarning); len(lines) > 0 {
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
		t.More = report.Plural(n, "more isn't shown here",
			"more aren't shown here") + "; --json has all of them."
	}
	return t
}

// verdict returns the replay in words, by its last policy.
func (r *HistoryReport) verdict(p *historyPolicy) string {
	costs := ""
	if text := p.text(); text != "" {
		costs = " Its energy would have cost " + text + "; saved: " + p.savedText() + "."
	}
	return fmt.Sprintf("%s replayed. Under %s the cluster would have used %s less than at default clocks, "+
		"first come, first served: %s of the draws of how workloads respond say between %s and %s. Jobs "+
		"would have waited %s on average, and run %.3f times as long.",
		report.Plural(r.Jobs, "job"), p.Policy, report.FormatPercent(p.Saved.Value), "90 %",
		report.FormatPercent(p.Saved.Low), report.FormatPercent(p.Saved.High),
		report.FormatClock(p.MeanWait.Value), p.Stretch.Value) + costs +
		fmt.Sprintf(" At the best clocks that are "+
			"the same for all jobs of a GPU model it would have been %s less.",
			report.FormatPercent(r.Policies[1].Saved.Value)) + r.reservations()
}

// reservations are sentences on the cluster and the limits, where there is something to say.
func (r *HistoryReport) reservations() string {
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
func (r *HistoryReport) facts() page.Facts {
	return page.Facts{
		{Name: "Jobs", Text: report.Plural(r.Jobs, "job") + "; left out: " + r.Left.text()},
		{
			Name: "Responses",
			Text: fmt.Sprintf("%s of %s by their models, %s of %s by what workloads have in common",
				report.Plural(r.Left.KnownJobs, "job"), report.Plural(r.Left.KnownKinds, "workload"),
				report.Plural(r.Left.PriorJobs, "job"), report.Plural(r.Left.PriorKinds, "workload")),
		},
		{Name: "Workloads", Text: r.workloadsText()},
		{Name: "Energy", Text: r.energyText()},
		{Name: "Constant", Text: r.constantClocksText()},
		{Name: "Waiting", Text: r.waitingText()},
	}
}

func historyCaveats(r *HistoryReport) *page.Notice {
	n := &page.Notice{
		Kind: page.Info, Text: "The intervals cover how workloads respond to clocks, and nothing else.",
		Items: []string{
			"Jobs that have no model respond as workloads do on average, each draw somewhat otherwise.",
			"Users would have submitted the same jobs at the same times, whatever the queue did.",
		},
	}
	if r.Left.AtDefault > 0 {
		n.Items = append(n.Items,
			report.Plural(r.Left.AtDefault, "job that hit its limit runs", "jobs that hit their limits run")+
				" at default clocks: how much work was left nobody knows.")
	}
	if r.Left.NoPower > 0 {
		n.Items = append(n.Items,
			report.Plural(r.Left.NoPower, "job has", "jobs have")+" no energy in the log; power is assumed.")
	}
	return n
}
