package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/queue"
)

// HistoryReport is what a replay of a history prints as JSON. The baseline, at
// default clocks and first come, first served, is the first policy.
type HistoryReport struct {
	File        string            `json:"file"`
	Jobs        int               `json:"jobs"`
	Tasks       int               `json:"tasks"` // a job that is split is one for each of its nodes
	Left        historyExclusions `json:"left_out"`
	Draws       int               `json:"draws"`
	Learning    int               `json:"learning_jobs"`     // of each workload, at default clocks
	Measured    *float64          `json:"measured_energy_j"` // of the jobs below; null: of none
	MeasuredOf  int               `json:"measured_jobs"`
	LoggedWaitS float64           `json:"logged_mean_wait_s"`
	Log         *joblog.Tally     `json:"log"`       // how it was read
	Peaks       []peakUse         `json:"gpu_peaks"` // empty: the cluster has as many nodes as wanted
	Scale       float64           `json:"cluster_scale"`
	FarFromLog  bool              `json:"waits_far_beyond_log"`
	hourly      bool              // energy is priced by the hour
	Policies    []historyPolicy   `json:"policies"`

	Warnings []queue.WarningSummary `json:"warnings"`
}

type historyPolicy struct {
	Policy    string          `json:"policy"`
	JobEnergy report.Interval `json:"job_energy_j"` // of GPUs that run jobs
	Energy    report.Interval `json:"energy_j"`     // of the cluster
	Saved     report.Interval `json:"saved"`        // part of the baseline's energy of the cluster
	JobSaved  report.Interval `json:"job_saved"`    // part of the baseline's energy of jobs
	MeanWait  report.Interval `json:"mean_wait_s"`
	Longest   report.Interval `json:"longest_wait_s"`
	Stretch   report.Interval `json:"run_time_stretch"` // by run times at default clocks
	OverLimit report.Interval `json:"over_limit"`
	NotPlaced int             `json:"not_placed"`
	// NotPlacedJobs are the first jobs without a place, of the draw with most of them.
	NotPlacedJobs []string `json:"not_placed_jobs,omitempty"`
	footprint              // of the cluster's energy
	// Clocks are those of all jobs of a GPU model, where they are the same.
	Clocks     map[string]clockPair `json:"clocks,omitempty"`
	Users      []historyGroup       `json:"users"`
	Partitions []historyGroup       `json:"partitions"`
}

type clockPair struct {
	Core float64 `json:"core_mhz"`
	Mem  float64 `json:"mem_mhz"`
}

type historyGroup struct {
	Name      string          `json:"name"`
	Jobs      int             `json:"jobs"`
	Tasks     int             `json:"tasks"` // one for each node of a job that is split
	Energy    report.Interval `json:"job_energy_j"`
	Saved     report.Interval `json:"job_saved"`
	MeanWait  report.Interval `json:"mean_wait_s"`
	footprint                 // of Energy
}

type historyGroups struct {
	name string
	list []historyGroup
}

// groups returns those by what the log names.
func (p *historyPolicy) groups() []historyGroups {
	return slices.DeleteFunc([]historyGroups{{"user", p.Users}, {"partition", p.Partitions}},
		func(g historyGroups) bool {
			return !slices.ContainsFunc(g.list, func(one historyGroup) bool { return one.Name != "" })
		})
}

func (h *historyReplay) report(runs []historyRun) *HistoryReport {
	r := &HistoryReport{
		File: h.name, Tasks: len(h.jobs), Left: h.excluded, Draws: h.draws, Learning: h.learning,
		MeasuredOf: h.meteredJobs, Log: h.tally, Peaks: h.peaks, Scale: h.scale,
		Warnings: queue.SummariseWarnings(h.warnings, h.terminal.EveryWarning),
	}
	if h.meteredJobs > 0 {
		r.Measured = &h.measuredJ
	}
	seen := -1
	for i := range h.jobs {
		if p := h.jobs[i].past; p != seen {
			seen = p
			r.Jobs++
			r.LoggedWaitS += h.past[p].Started.Sub(h.past[p].Submitted).Seconds()
		}
	}
	r.LoggedWaitS /= float64(max(1, r.Jobs))
	for i := range runs {
		r.Policies = append(r.Policies, h.policyReport(&runs[i], &runs[0]))
	}
	r.FarFromLog = r.isFarFromLog()
	r.hourly = h.setup.Rates.Hourly()
	return r
}

func (h *historyReplay) policyReport(run, base *historyRun) historyPolicy {
	of := func(quantity func(c *historyCost) float64) report.Interval {
		return report.IntervalOf(h.draws, func(i int) float64 { return quantity(&run.draws[i]) })
	}
	saved := func(quantity func(c *historyCost) float64) report.Interval {
		return report.IntervalOf(h.draws, func(i int) float64 {
			return 1 - quantity(&run.draws[i])/quantity(&base.draws[i])
		})
	}
	jobs, total := func(c *historyCost) float64 { return c.Jobs }, func(c *historyCost) float64 {
		return c.Total
	}
	p := historyPolicy{
		Policy: run.name, JobEnergy: of(jobs), Energy: of(total), Saved: saved(total), JobSaved: saved(jobs),
		MeanWait:  of(func(c *historyCost) float64 { return c.Wait }),
		Longest:   of(func(c *historyCost) float64 { return c.Longest }),
		Stretch:   of(func(c *historyCost) float64 { return c.Stretch }),
		OverLimit: of(func(c *historyCost) float64 { return float64(c.OverLimit) }),
	}
	worst := slices.MaxFunc(run.draws, func(a, b historyCost) int { return cmp.Compare(a.Unplaced, b.Unplaced) })
	p.NotPlaced, p.NotPlacedJobs = worst.Unplaced, worst.UnplacedJobs
	p.footprint = h.footprint(run, base, func(c *historyCost) config.Footprint { return c.Spent })
	if run.clocks != nil {
		p.Clocks = make(map[string]clockPair, len(run.clocks))
		for model, at := range run.clocks {
			p.Clocks[model] = clockPair{float64(at.Core), float64(at.Mem)}
		}
	}
	for g, list := range [...]*[]historyGroup{byUser: &p.Users, byPartition: &p.Partitions} {
		for _, name := range slices.Sorted(maps.Keys(run.draws[0].Groups[g])) {
			*list = append(*list, h.group(run, base, g, name))
		}
		slices.SortStableFunc(*list, func(a, b historyGroup) int {
			return cmp.Compare(b.Energy.Value, a.Energy.Value)
		})
	}
	return p
}

func (h *historyReplay) group(run, base *historyRun, g int, name string) historyGroup {
	at := func(r *historyRun, draw int) groupCost { return r.draws[draw].Groups[g][name] }
	return historyGroup{
		footprint: h.footprint(run, base, func(c *historyCost) config.Footprint { return c.Groups[g][name].Spent }),
		Name:      name,
		Jobs:      at(run, 0).Jobs,
		Tasks:     at(run, 0).Tasks,
		Energy:    report.IntervalOf(h.draws, func(i int) float64 { return at(run, i).Joules }),
		Saved: report.IntervalOf(h.draws,
			func(i int) float64 { return 1 - at(run, i).Joules/at(base, i).Joules }),
		MeanWait: report.IntervalOf(h.draws, func(i int) float64 {
			one := at(run, i)
			return one.Wait / float64(one.Tasks)
		}),
	}
}

func (h *historyReplay) print(c *cli.Context, runs []historyRun) error {
	r := h.report(runs)
	return h.terminal.WithHTML(c, func(w io.Writer) error { return h.writePage(w, c, r) },
		func() error { return h.printReport(c, r) })
}

func (h *historyReplay) printReport(c *cli.Context, r *HistoryReport) error {
	if c.Bool("json") {
		return h.terminal.PrintJSON(r)
	}
	table := r.policyTable()
	if c.Bool("csv") {
		return h.terminal.PrintTable(c, table)
	}
	if err := h.terminal.PrintText(r.headText()); err != nil {
		return err
	}
	if err := h.terminal.PrintTable(c, table); err != nil {
		return err
	}
	if costs := r.costTable(); costs != nil {
		if err := h.terminal.PrintText("\n" + costCaption + ":\n"); err != nil {
			return err
		}
		if err := h.terminal.PrintTable(c, costs); err != nil {
			return err
		}
	}
	last := r.lastPolicy()
	for _, group := range last.groups() {
		if err := h.terminal.PrintText("\nBy " + group.name + ", under " + last.Policy + ":\n"); err != nil {
			return err
		}
		if err := h.terminal.PrintTable(c, groupTable(group.name, group.list)); err != nil {
			return err
		}
	}
	return nil
}

// lastPolicy returns the policy that was named last; the baseline where there are only the rows
// that are always there.
func (r *HistoryReport) lastPolicy() *historyPolicy {
	const always = 2 // the baseline and constant clocks
	if len(r.Policies) == always {
		return &r.Policies[0]
	}
	return &r.Policies[len(r.Policies)-1]
}

func (r *HistoryReport) headText() string {
	var b strings.Builder
	report.WriteRow(&b, "History", "%s of %s; left out: %s", report.Plural(r.Jobs, "job"),
		terminal.Printable(r.File), r.Left.text())
	if text := r.clusterText(); text != "" {
		report.WriteRow(&b, "Cluster", "%s", text)
	}
	report.WriteRow(
		&b,
		"Responses",
		"%s of %s by their models, %s of %s by what workloads have in common, %s at "+
			"default clocks",
		report.Plural(r.Left.KnownJobs, "job"),
		report.Plural(r.Left.KnownKinds, "workload"),
		report.Plural(r.Left.PriorJobs, "job"),
		report.Plural(r.Left.PriorKinds, "workload"),
		report.Plural(r.Left.AtDefault, "job that hit its limit",
			"jobs that hit their limits"),
	)
	report.WriteRow(&b, "Workloads", "%s", r.workloadsText())
	if r.Left.Several > 0 {
		report.WriteRow(&b, "Together", "%s on several nodes that start together",
			report.Plural(r.Left.Several, "job"))
	}
	if r.Left.Uneven > 0 {
		report.WriteRow(&b, "Split", "%s with other GPUs on each of several nodes, one for each node",
			report.Plural(r.Left.Uneven, "job"))
	}
	report.WriteRow(&b, "Energy", "%s", r.energyText())
	if text := r.costText(); text != "" {
		report.WriteRow(&b, "Cost", "%s", text)
	}
	report.WriteRow(&b, "Constant", "%s", r.constantClocksText())
	report.WriteRow(&b, "Waiting", "%s", r.waitingText())
	if text := r.limitsText(); text != "" {
		report.WriteRow(&b, "Limits", "%s", text)
	}
	b.WriteString("\n")
	return b.String()
}

// workloadsText says how workloads are told apart, and how many jobs were needed to learn them.
func (r *HistoryReport) workloadsText() string {
	return fmt.Sprintf("jobs of one user and name, digits and signs aside; %s of %s ran at default clocks to "+
		"learn, the first %d of each workload", report.FormatCount(r.Left.Learning), report.FormatCount(r.Jobs),
		r.Learning)
}

// energyText returns what jobs used by the log and by the model.
func (r *HistoryReport) energyText() string {
	measured := "not in the log"
	if r.Measured != nil {
		measured = report.EnergyText(*r.Measured) + " by the log, of " + report.Plural(r.MeasuredOf, "job")
	}
	return measured + "; " + report.EnergyText(
		r.Policies[0].JobEnergy.Value,
	) + " by the model, at default clocks"
}

func (r *HistoryReport) constantClocksText() string {
	clocks := r.Policies[1].Clocks
	pairs := terminal.TextsOf(slices.Sorted(maps.Keys(clocks)), func(model string) string {
		return fmt.Sprintf("%s %.0f/%.0f", model, clocks[model].Core, clocks[model].Mem)
	})
	if len(pairs) == 0 {
		return "default clocks"
	}
	return strings.Join(pairs, ", ") +
		" MHz for all jobs, the best by what is expected of them, first come, first served"
}

func kilowattHours(i report.Interval) report.Value {
	digits := 1
	if i.High < 100*dvfsmodel.JoulesPerKWh {
		digits = 3
	}
	return report.Text(i.Text(1/dvfsmodel.JoulesPerKWh, digits))
}

// waitingText returns how long jobs waited. In a job table an unknown wait is none.
func (r *HistoryReport) waitingText() string {
	if r.LoggedWaitS == 0 {
		return "none, or the log doesn't say"
	}
	return report.FormatClock(r.LoggedWaitS) + " on average by the log"
}

func (r *HistoryReport) policyTable() *report.Table {
	bounds := func(i report.Interval, factor float64, digits int) report.Value {
		return report.Text(i.Text(factor, digits))
	}
	return report.TableOf(r.Policies, func(row *report.Row, p *historyPolicy) {
		row.Add(report.Column{Key: "policy", Head: "policy", Left: true}, report.Text(p.Policy))
		row.Add(report.Column{Head: "energy", Note: "kWh"}, kilowattHours(p.Energy))
		row.Add(report.Column{Head: "saved", Note: "%"}, bounds(p.Saved, 100, 1))
		row.Add(report.Column{Head: "by jobs", Note: "%"}, bounds(p.JobSaved, 100, 1))
		row.Add(report.Column{Head: "mean wait", Note: "h:mm:ss"}, report.Text(p.MeanWait.Clock()))
		row.Add(report.Column{Head: "run times", Note: "× default"}, bounds(p.Stretch, 1, 3))
		row.Add(report.Column{Head: "over limit", Note: "jobs"}, bounds(p.OverLimit, 1, 0))
		row.Add(report.Column{Key: "not_placed", Head: "not placed", Note: "jobs"}, report.Count(p.NotPlaced))
		p.addKeys(row)
		row.Add(report.Column{Key: "energy_j"}, report.Number(p.Energy.Value))
		row.Add(report.Column{Key: "energy_low_j"}, report.Number(p.Energy.Low))
		row.Add(report.Column{Key: "energy_high_j"}, report.Number(p.Energy.High))
		row.Add(report.Column{Key: "saved"}, report.Number(p.Saved.Value))
		row.Add(report.Column{Key: "saved_low"}, report.Number(p.Saved.Low))
		row.Add(report.Column{Key: "saved_high"}, report.Number(p.Saved.High))
		row.Add(report.Column{Key: "mean_wait_s"}, report.Number(p.MeanWait.Value))
		row.Add(report.Column{Key: "over_limit"}, report.Number(p.OverLimit.Value))
	})
}

func groupTable(name string, list []historyGroup) *report.Table {
	const most = 20
	return report.TableOf(list[:min(len(list), most)], func(row *report.Row, g *historyGroup) {
		row.Add(report.Column{Head: name, Left: true, Max: 30}, report.Text(terminal.OrDash(g.Name)))
		row.Add(report.Column{Head: "jobs"}, report.Count(g.Jobs))
		row.Add(report.Column{Head: "energy", Note: "kWh"}, kilowattHours(g.Energy))
		row.Add(report.Column{Head: "saved", Note: "%"}, report.Text(g.Saved.Text(100, 1)))
		if g.Cost != nil {
			row.Add(report.Column{Head: "cost", Note: g.Currency}, report.Text(report.AmountText(*g.Cost)))
		}
		row.Add(report.Column{Head: "mean wait", Note: "h:mm:ss"}, report.Text(g.MeanWait.Clock()))
	})
}

// clusterText says how the cluster differs from the log's, "" if it needn't.
func (r *HistoryReport) clusterText() string {
	var parts []string
	if r.Scale != 1 {
		parts = append(parts, fmt.Sprintf("nodes × %.6g", r.Scale))
	}
	if over := peaksBeyondCluster(r.Peaks); len(over) > 0 {
		which := "not the log's, which had "
		if r.LoggedWaitS == 0 {
			which = "if jobs started when they were submitted, the log had "
		}
		parts = append(parts, which+strings.Join(terminal.TextsOf(over, peakUse.String), "; "))
	}
	if base := r.Policies[0].MeanWait.Value; r.isFarFromLog() {
		parts = append(
			parts,
			fmt.Sprintf("jobs wait far longer than in the log: %s at default clocks, %s by "+
				"the log", report.FormatClock(base), report.FormatClock(r.LoggedWaitS)),
		)
	}
	return strings.Join(parts, "; ")
}

// isFarFromLog reports whether the baseline's jobs wait ten times as long as those of the log did, and
// an hour longer.
func (r *HistoryReport) isFarFromLog() bool {
	const times, more = 10, 3600
	base := r.Policies[0].MeanWait.Value
	return r.LoggedWaitS > 0 && base > times*r.LoggedWaitS && base > r.LoggedWaitS+more
}

// limitsText says how many jobs lower clocks would have run over their limits, and how many a policy
// could not place, "" if none.
func (r *HistoryReport) limitsText() string {
	var over, unplaced, parts []string
	for i := range r.Policies {
		p := &r.Policies[i]
		if p.OverLimit.High > 0 {
			over = append(over, p.OverLimit.Text(1, 0)+" under "+p.Policy)
		}
		if p.NotPlaced > 0 {
			unplaced = append(unplaced, fmt.Sprintf("%d under %s (%s)", p.NotPlaced, p.Policy,
				report.NamesText(p.NotPlacedJobs, p.NotPlaced)))
		}
	}
	if len(over) > 0 {
		parts = append(parts, "jobs run over their time limits by lower clocks: "+strings.Join(over, ", "))
	}
	if len(unplaced) > 0 {
		parts = append(parts,
			"jobs not placed, so that savings are of unequal work: "+strings.Join(unplaced, ", "))
	}
	return strings.Join(parts, "; ")
}
