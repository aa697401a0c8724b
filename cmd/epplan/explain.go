package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/spelling"
)

func explainCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "why a job of a batch, or of Slurm, gets its clocks",
		ArgsUsage: "JOB [BATCH]",
		Description: "A number alone is a Slurm job: shows what epd decided for it and why, the predictions at default clocks\n" +
			"and at the chosen ones, and the model. Only --socket and --json are accepted in this form.\n" +
			"With a batch: plans it as plan does and shows what was known of the job, its possible settings, and the\n" +
			"reason for its own. Due is when the plan wants it to end: its deadline less the margin, or what --stretch\n" +
			"implies for a job without one. Least energy counts the job's share of the node, whose watts by GPU are the\n" +
			"cluster's; powers and energies are those of the GPUs alone.\n" +
			"Example: epplan explain 4711\n" +
			"Example: epplan explain 18-cfd batch.csv --cluster cluster.toml --models models.toml",
		Flags: slices.Concat(setup.PlanningFlags(), shiftFlags(),
			[]cli.Flag{anySocketFlag(publicFirst), terminal.JSONFlag()}),
		Action: t.Runs(terminal.WithArgs(1, 2, "a job's id and a batch file", runExplain)),
	}
}

// explanationOf is what explain tells of a job. Values that don't exist are null.
// The limit is the job's own, without the safety margin. Due is when the plan
// wants it to end: the deadline less its margin, or what the stretch implies.
type explanation struct {
	ID       string        `json:"id"`
	Policy   string        `json:"policy"`
	Arrival  float64       `json:"arrival_s"`
	Deadline *float64      `json:"deadline_s"`
	Limit    *float64      `json:"limit_s"`
	Due      *float64      `json:"due_s"`
	Options  []modelChoice `json:"options"`
	Node     *int32        `json:"node"`
	GPUs     []int         `json:"gpus"`
	Nodes    []nodeGPUs    `json:"nodes,omitempty"` // all of them, of a job on several
	Start    *float64      `json:"start_s"`
	End      *float64      `json:"end_s"`
	Chosen   *jobSetting   `json:"chosen"`
	Reason   string        `json:"reason"`

	class string // of the node, for people
}

type nodeGPUs struct {
	Node int32 `json:"node"`
	GPUs []int `json:"gpus"`
}

type modelChoice struct {
	GPUModel string      `json:"gpu_model"`
	GPUs     int         `json:"gpus"`
	Nodes    int         `json:"nodes,omitempty"` // that have equal parts of them, of a job on several
	MinTime  float64     `json:"min_time_s"`
	Default  jobSetting  `json:"default"`
	Free     *jobSetting `json:"free_optimum"`
	Limited  *jobSetting `json:"in_time"`
}

// jobSetting is a point of the job as a whole: all its GPUs.
type jobSetting struct {
	V      float64 `json:"v"`
	Fc     float64 `json:"fc"`
	Fm     float64 `json:"fm"`
	Core   float64 `json:"core_mhz,omitempty"`
	Mem    float64 `json:"mem_mhz,omitempty"`
	Cap    float64 `json:"cap_w,omitempty"`
	Time   float64 `json:"time_s"`
	Power  float64 `json:"power_w"`
	Energy float64 `json:"energy_j"`
}

func newSetting(pt dvfsmodel.Point, weight float64) *jobSetting {
	return &jobSetting{
		V: float64(pt.Scaling.V), Fc: pt.Scaling.Fc, Fm: pt.Scaling.Fm, Core: float64(pt.Core),
		Mem: float64(pt.Mem), Cap: float64(pt.Cap),
		Time: pt.Time, Power: float64(pt.Power) * weight, Energy: float64(pt.Energy) * weight,
	}
}

func runExplain(t *terminal.Terminal, c *cli.Context) error {
	if c.NArg() == 1 {
		if _, err := slurm.ParseJobRef(c.Args().First()); err != nil {
			return &terminal.UsageError{
				Msg:  "1 arguments, want a job's id and a batch file",
				Hint: "a job of Slurm's is a number alone, or a task of an array such as 4_3",
			}
		}
		return explainLive(t, c)
	}
	s, err := setup.ReadProblem(t, c, c.Args().Get(1))
	if err != nil {
		return err
	}
	id := c.Args().First()
	task := slices.IndexFunc(s.Problem.Tasks, func(t planner.Task) bool { return t.ID == id })
	if task < 0 {
		return noSuchJob(s, c.Args().Get(1), id)
	}
	result, err := solvePlan(t, c, s)
	if err != nil {
		return err
	}
	e := explanationOf(s, task, result)
	return terminal.PrintAnswer(t, c, e, (*explanation).text)
}

func noSuchJob(s *setup.Setup, name, id string) error {
	ids := terminal.TextsOf(s.Problem.Tasks, func(t planner.Task) string { return t.ID })
	hint := fmt.Sprintf("its first job is %q", ids[0])
	if near := spelling.Nearest(id, ids); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return terminal.WithHint(fmt.Errorf("%s has no job %q", name, id), hint)
}

func explanationOf(s *setup.Setup, task int, r *planreport.Result) *explanation {
	t, a := &s.Problem.Tasks[task], &r.Plan.Assignments[task]
	e := &explanation{
		ID: t.ID, Policy: r.Plan.Policy, Arrival: t.Arrival,
		Deadline: terminal.FiniteOrNil(t.Deadline), Limit: terminal.FiniteOrNil(s.Batch.Jobs[task].Limit),
		Due: terminal.FiniteOrNil(t.Due), GPUs: []int{}, Options: []modelChoice{},
	}
	for i := range t.Options {
		e.Options = append(e.Options, choiceOf(s, t, &t.Options[i]))
	}
	if a.Node < 0 {
		for _, u := range r.Plan.Unplaced {
			if u.Task == task {
				e.Reason = u.Why
			}
		}
		return e
	}
	numbers := r.Plan.NodeNumbers()
	e.Node, e.GPUs, e.Start, e.End = &numbers[a.Node], a.GPUs.Indexes(), &a.Start, &a.End
	e.Chosen = newSetting(a.Point, gpuWeight(t, a.GPUCount()))
	if len(a.More) > 0 {
		for part := range a.Parts {
			e.Nodes = append(e.Nodes, nodeGPUs{numbers[part.Node], part.GPUs.Indexes()})
		}
	}
	e.Reason = a.Reason.String()
	e.class = s.Problem.Cluster.Classes[r.Plan.Nodes[a.Node].Class].Name
	return e
}

// choiceOf returns what the job would have on a GPU model, free and in time.
func choiceOf(s *setup.Setup, t *planner.Task, o *planner.Option) modelChoice {
	w := gpuWeight(t, o.GPUs)
	class := slices.IndexFunc(s.Problem.Cluster.Classes, func(k planner.NodeClass) bool {
		return k.Model == o.Model
	})
	objective := s.Problem.ClassObjective(class)
	c := modelChoice{
		GPUModel: o.Model, GPUs: o.GPUs, MinTime: o.Response.MinTime(),
		Default: *newSetting(o.Response.Default(), w),
	}
	if o.NodeCount() > 1 {
		c.Nodes = o.Nodes
	}
	if pt, err := o.Response.Optimum(objective, math.Inf(1)); err == nil {
		c.Free = newSetting(pt, w)
	}
	if pt, err := o.Response.Optimum(objective, t.TimeBudget()); err == nil {
		c.Limited = newSetting(pt, w)
	}
	return c
}

func gpuWeight(t *planner.Task, gpus int) float64 {
	if t.Share < 1 {
		return t.Share
	}
	return float64(gpus)
}

func (e *explanation) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Job       %s\nPolicy    %s\nArrives   %s\nDeadline  %s\nDue       %s\nLimit     %s\n",
		queue.Printable(e.ID), queue.Printable(e.Policy), report.FormatSeconds(e.Arrival),
		secondsText(e.Deadline), secondsText(e.Due), secondsText(e.Limit))
	for i := range e.Options {
		e.Options[i].write(&b)
	}
	if e.Node == nil {
		fmt.Fprintf(&b, "\nNot planned: %s\n", e.Reason)
		return b.String()
	}
	fmt.Fprintf(&b, "\nRuns on %s, from %s to %s\n  %-17s%s\nWhy: %s\n", e.placeText(),
		report.FormatSeconds(*e.Start), report.FormatSeconds(*e.End), "chosen", e.Chosen, e.Reason)
	return b.String()
}

// placeText returns the job's node, or nodes, and its GPUs there.
func (e *explanation) placeText() string {
	nodes := e.Nodes
	if len(nodes) == 0 {
		nodes = []nodeGPUs{{*e.Node, e.GPUs}}
	}
	return strings.Join(terminal.TextsOf(nodes, func(n nodeGPUs) string {
		return fmt.Sprintf("node %s/%d, GPUs %v", queue.Printable(e.class), n.Node, n.GPUs)
	}), "; ")
}

func (c *modelChoice) write(b *strings.Builder) {
	nodes := ""
	if c.Nodes > 1 {
		nodes = fmt.Sprintf(" on %d nodes", c.Nodes)
	}
	fmt.Fprintf(b, "\nOn %d × %s%s, at least %s:\n", c.GPUs, queue.Printable(c.GPUModel), nodes,
		report.FormatSeconds(c.MinTime))
	for _, row := range []struct {
		name string
		at   *jobSetting
	}{{"default clocks", &c.Default}, {"least energy", c.Free}, {"in time", c.Limited}} {
		text := "impossible"
		if row.at != nil {
			text = row.at.String()
		}
		fmt.Fprintf(b, "  %-17s%s\n", row.name, text)
	}
}

// String returns the setting on a line.
func (s *jobSetting) String() string {
	clocks := fmt.Sprintf("core ×%.3f, memory ×%.3f", s.Fc, s.Fm)
	if s.Core > 0 {
		clocks = fmt.Sprintf("core %.0f MHz, memory %.0f MHz", s.Core, s.Mem)
	}
	if s.Cap > 0 {
		clocks += fmt.Sprintf(", power at most %g W", s.Cap)
	}
	return fmt.Sprintf("%s: %s at %s = %s", clocks, report.FormatSeconds(s.Time),
		report.FormatWatts(s.Power), report.FormatJoules(s.Energy))
}

func secondsText(x *float64) string {
	if x == nil {
		return "none"
	}
	return report.FormatSeconds(*x)
}

// compareEqualWork plans references anew of the jobs that a plan places, if it leaves out others: savings are
// of equal work.
func compareEqualWork(
	ctx context.Context, s *setup.Setup, pol *planner.Policy, plan *planner.Plan, against *policy.References,
) (err error) {
	if against.FCFS == nil || len(plan.Unplaced) <= len(against.FCFS.Unplaced) {
		return nil
	}
	placed := *s
	placed.Problem = s.Problem.Placing(plan)
	*against, err = placed.References(ctx, pol)
	return err
}
