package planner

import (
	"cmp"
	"context"
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

// loopGuard tells a Pick stage that thinks from one that goes round in circles.
type loopGuard struct {
	rounds int
	waits  int
}

// stageError makes an error of a stage's answer.
func (e *engine) stageError(stage string, task int, format string, args ...any) error {
	fault := &StageError{Policy: e.policy.Name, Stage: stage, Msg: fmt.Sprintf(format, args...)}
	if task >= 0 && task < len(e.problem.Tasks) {
		fault.Job = e.problem.Tasks[task].ID
	}
	return fault
}

// nextWake is when Pick wants to be asked again, not before now.
func (e *engine) nextWake() (float64, error) {
	wake := e.picker.Wake()
	if math.IsNaN(wake) {
		return 0, e.stageError("pick", -1, "wants to be woken at NaN s")
	}
	if wake > e.view.Now {
		e.loops.rounds = 0
		return wake, nil
	}
	if e.loops.rounds++; e.loops.rounds > maxRounds {
		return 0, e.stageError("pick", -1, "wants to be woken at %v s again and again, offers nothing that "+
			"is placed, and it is %v s", wake, e.view.Now)
	}
	return e.view.Now, nil
}

// offer plays offers until Pick has none. Between two of them it looks whether
// the context has ended.
func (e *engine) offer(ctx context.Context) error {
	e.loops.waits = 0
	for {
		e.countWork()
		task, ok := e.picker.Next()
		if !ok {
			return e.refused
		}
		if err := cmp.Or(Cancelled(ctx), e.checkOffer(task)); err != nil {
			return err
		}
		if e.shared != nil {
			e.shared.setTolerance(e.view, task)
		}
		placement, verdict := e.placer.Place(task)
		switch verdict {
		case Start:
			if err := e.checkPlacement(task, &placement); err != nil {
				return err
			}
			e.commit(task, &placement)
			e.loops = loopGuard{}
		case Wait:
			if err := e.countPutOff(task); err != nil {
				return err
			}
			e.picker.Refused(task)
		case Reject:
			e.giveUp(task, "no node has room for it within its limit at the clocks that the policy sets",
				math.Inf(1))
		default:
			return e.stageError("place", task, "verdict %d, want start, wait or reject", verdict)
		}
	}
}

// countWork accounts for the work since it was called last, and says how far the plan is.
func (e *engine) countWork() {
	if e.monitor == nil {
		return
	}
	e.view.CountEvaluations(1)
	e.monitor.Count(e.view.evaluations)
	e.view.evaluations = 0
	const every = 1 << 6
	if e.placed%every == 0 && e.monitor.depth == 1 {
		e.monitor.SetPhase(e.policy.Name, e.placed, len(e.problem.Tasks))
	}
}

// checkOffer reports an offer of a task that doesn't wait.
func (e *engine) checkOffer(task int) error {
	switch {
	case task < 0 || task >= len(e.problem.Tasks):
		return e.stageError("pick", task, "offers task %d of %d", task, len(e.problem.Tasks))
	case e.view.taken[task]:
		return e.stageError("pick", task, "is offered again, and is placed")
	case e.givenUp[task]:
		return e.stageError("pick", task, "is offered again, and was rejected or can't be placed")
	case e.problem.Mode == Online && e.problem.Tasks[task].Arrival > e.view.Now:
		return e.stageError("pick", task, "is offered at %v s and arrives at %v s", e.view.Now,
			e.problem.Tasks[task].Arrival)
	}
	return nil
}

// countPutOff reports one offer too many that is put off.
func (e *engine) countPutOff(task int) error {
	waiting := e.next - e.placed - len(e.plan.Unplaced)
	if e.loops.waits++; e.loops.waits > max(maxWaits, waitsByTask*waiting*len(e.problem.Cluster.Classes)) {
		return e.stageError("pick", task, "is offered again and again, and put off each time")
	}
	return nil
}

// offAt is when a node goes off whose last task ends at the given time.
func (e *engine) offAt(node int, lastEnd float64) float64 {
	var at float64
	if e.idlePolicy != nil {
		at = e.idlePolicy.OffAt(node, lastEnd)
	} else {
		at = e.policy.Park.OffAt(&e.problem.Cluster, lastEnd)
	}
	if !(at >= lastEnd-DeadlineSlack*max(1, lastEnd)) { // so is NaN
		if e.refused == nil {
			e.refused = e.stageError("park", -1, "node %d goes off at %v s, and its last task ends at %v s",
				node, at, lastEnd)
		}
		return lastEnd
	}
	return at
}

// checkPlacement reports a placement that the engine can't book.
func (e *engine) checkPlacement(task int, pl *Placement) error {
	v, t := e.view, &e.problem.Tasks[task]
	if pl.Node < -1 || pl.Node >= len(v.nodes) {
		if len(v.nodes) == 0 {
			return e.stageError("place", task, "node %d, want -1 for a new one: there is none yet", pl.Node)
		}
		return e.stageError("place", task, "node %d, want one of %d, or -1 for a new one", pl.Node,
			len(v.nodes))
	}
	class := pl.Class
	if pl.Node >= 0 {
		class = v.ClassOf(pl.Node)
	}
	if class < 0 || class >= len(e.problem.Cluster.Classes) {
		return e.stageError("place", task, "node class %d of %d", class, len(e.problem.Cluster.Classes))
	}
	if pl.Option < 0 || pl.Option >= len(t.Options) {
		return e.stageError("place", task, "option %d of %d", pl.Option, len(t.Options))
	}
	gpus := e.problem.Cluster.Classes[class].GPUs
	if v.perGPUMode {
		gpus = 1
	}
	if nodes := t.Options[pl.Option].NodeCount(); 1+len(pl.More) != nodes {
		return e.stageError("place", task, "is put on %d nodes, want %d", 1+len(pl.More), nodes)
	}
	want := t.Options[pl.Option].PerNode()
	if pl.GPUs.Len() != want || pl.GPUs>>uint(gpus) != 0 {
		return e.stageError("place", task, "GPUs %v of a node that has %d, want %d of them",
			pl.GPUs.Indexes(), gpus, want)
	}
	for _, part := range pl.More {
		if part.Node < -1 || int(part.Node) >= len(v.nodes) ||
			(part.Node >= 0 && v.ClassOf(int(part.Node)) != class) {
			return e.stageError("place", task,
				"node %d among its nodes, want one of class %d, or -1 for a new one", part.Node, class)
		}
		if part.GPUs.Len() != want || part.GPUs>>uint(gpus) != 0 {
			return e.stageError("place", task, "GPUs %v of a node that has %d, want %d of them",
				part.GPUs.Indexes(), gpus, want)
		}
	}
	if !(pl.Start >= 0) || math.IsInf(pl.Start, 1) {
		return e.stageError("place", task, "starts at %v s, want a finite number of 0 or more", pl.Start)
	}
	if err := pl.Point.Validate(); err != nil {
		return e.stageError("tune", task, "%v", err)
	}
	return nil
}
