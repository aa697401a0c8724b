package planner

import (
	"fmt"
	"math"
)

// StageError says what a stage of a policy answered that no plan can hold: a
// fault of the stage, whatever the problem. Answers that a plan can hold but that
// break its rules, such as a GPU that is taken, are found by package check.
type StageError struct {
	Policy string // the policy's name
	Stage  string // tune, place, pick, park or improve
	Job    string // id of the job that it is about; empty: of none
	Msg    string
}

// Error names policy, stage and job.
func (e *StageError) Error() string {
	about := ""
	if e.Job != "" {
		about = fmt.Sprintf("job %q: ", e.Job)
	}
	return fmt.Sprintf("policy %q: %s: %s%s", e.Policy, e.Stage, about, e.Msg)
}

// Validate reports the first stage that a policy lacks.
func (policy *Policy) Validate() error {
	for _, stage := range [...]struct {
		name string
		is   bool
	}{
		{"tune", policy.Tune != nil},
		{"place", policy.Place != nil},
		{"pick", policy.Pick != nil},
		{"park", policy.Park != nil},
	} {
		if !stage.is {
			return &StageError{
				Policy: policy.Name, Stage: stage.name, Msg: "the policy has no such stage, want one of each",
			}
		}
	}
	return nil
}

// How long a Pick stage may go on without anything coming of it. What it may ask
// for with reason is far below.
const (
	maxRounds   = 10_000 // wakes in a row at one moment, with nothing placed
	waitsByTask = 8      // offers in a row that are put off, by task and node class
	maxWaits    = 10_000 // the same, where that is less
)

// answerCheck reports what stages answer that the engine can't go on with, and tells a Pick
// stage that thinks from one that goes round in circles.
type answerCheck struct {
	policy  *Policy
	view    *View
	refused error // why the stages can't plan, or what Park answered
	rounds  int   // wakes at one moment
	waits   int   // offers that were put off
}

// fault makes an error of a stage's answer.
func (c *answerCheck) fault(stage string, task int, format string, args ...any) error {
	err := &StageError{Policy: c.policy.Name, Stage: stage, Msg: fmt.Sprintf(format, args...)}
	if task >= 0 && task < len(c.view.Problem.Tasks) {
		err.Job = c.view.Problem.Tasks[task].ID
	}
	return err
}

// checkWake returns when Pick wants to be asked again, not before now.
func (c *answerCheck) checkWake(at float64) (float64, error) {
	if math.IsNaN(at) {
		return 0, c.fault("pick", -1, "wants to be woken at NaN s")
	}
	if at > c.view.Now {
		c.rounds = 0
		return at, nil
	}
	if c.rounds++; c.rounds > maxRounds {
		return 0, c.fault("pick", -1, "asks repeatedly to be woken at %v s, offers no task that can "+
			"be placed, and now is %v s", at, c.view.Now)
	}
	return c.view.Now, nil
}

// checkWait reports one offer too many that is put off while so many tasks wait.
func (c *answerCheck) checkWait(task, waiting int) error {
	classes := len(c.view.Problem.Cluster.Classes)
	if c.waits++; c.waits > max(maxWaits, waitsByTask*waiting*classes) {
		return c.fault("pick", task, "is offered again and again, and put off each time")
	}
	return nil
}

// offAt returns when Park has a node go off, not before its last task ends.
func (c *answerCheck) offAt(node int, at, lastEnd float64) float64 {
	if !(at >= lastEnd-DeadlineSlack*max(1, lastEnd)) { // so is NaN
		if c.refused == nil {
			c.refused = c.fault("park", -1, "node %d goes off at %v s, and its last task ends at %v s",
				node, at, lastEnd)
		}
		return lastEnd
	}
	return at
}

// placement reports a placement that the engine can't book.
func (c *answerCheck) placement(task int, pl *Placement) error {
	v, p := c.view, c.view.Problem
	t := &p.Tasks[task]
	if pl.Node < -1 || pl.Node >= len(v.calendar.nodes) {
		if len(v.calendar.nodes) == 0 {
			return c.fault("place", task, "node %d, want -1 for a new one: there is none yet", pl.Node)
		}
		return c.fault("place", task, "node %d, want one of %d, or -1 for a new one", pl.Node,
			len(v.calendar.nodes))
	}
	class := pl.Class
	if pl.Node >= 0 {
		class = int(v.calendar.nodes[pl.Node].class)
	}
	if class < 0 || class >= len(p.Cluster.Classes) {
		return c.fault("place", task, "node class %d of %d", class, len(p.Cluster.Classes))
	}
	if pl.Option < 0 || pl.Option >= len(t.Options) {
		return c.fault("place", task, "option %d of %d", pl.Option, len(t.Options))
	}
	gpus := p.Cluster.Classes[class].GPUs
	if v.PerGPUMode {
		gpus = 1
	}
	if nodes := t.Options[pl.Option].NodeCount(); 1+len(pl.More) != nodes {
		return c.fault("place", task, "is put on %d nodes, want %d", 1+len(pl.More), nodes)
	}
	want := t.Options[pl.Option].PerNode()
	if pl.GPUs.Len() != want || pl.GPUs>>uint(gpus) != 0 {
		return c.fault("place", task, "GPUs %v of a node that has %d, want %d of them",
			pl.GPUs.Indexes(), gpus, want)
	}
	for _, part := range pl.More {
		if part.Node < -1 || int(part.Node) >= len(v.calendar.nodes) ||
			(part.Node >= 0 && int(v.calendar.nodes[part.Node].class) != class) {
			return c.fault("place", task,
				"node %d among its nodes, want one of class %d, or -1 for a new one", part.Node, class)
		}
		if part.GPUs.Len() != want || part.GPUs>>uint(gpus) != 0 {
			return c.fault("place", task, "GPUs %v of a node that has %d, want %d of them",
				part.GPUs.Indexes(), gpus, want)
		}
	}
	if !(pl.Start >= 0) || math.IsInf(pl.Start, 1) {
		return c.fault("place", task, "starts at %v s, want a finite number of 0 or more", pl.Start)
	}
	if err := pl.Point.Validate(); err != nil {
		return c.fault("tune", task, "%v", err)
	}
	return nil
}
