package slurmqueue

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/catalog"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// Order is in which order a policy would start what waits, given what runs.
type Order struct {
	Jobs []slurm.JobID // the first first; a record of an array by the first of its tasks
	// Without are tasks that have no place: they can't be planned, or are beyond
	// those that were.
	Without int
}

// MaxPlanned is how many tasks an order is made of at most: those that wait
// longest.
const MaxPlanned = 1000

// NewOrder plays the queue by a policy, from the present on, until everything
// has started, or the context ends. The cluster is the nodes that Slurm reports, all of them open to
// all jobs; jobs that run end when their workload's model says so, else at their
// limits. Starts are chosen for the goal of the terms, as far as the policy asks for it.
func NewOrder(
	ctx context.Context, q *epdapi.Queue, terms *PlanTerms, policy *planner.Policy,
) (*Order, error) {
	q, known := limitArrays(q, MaxPlanned), terms.Profiles
	further, err := Profiles(q)
	if err != nil {
		return nil, err
	}
	if further != nil {
		known = known.With(further)
	}
	nodes, known, err := assumeClocks(q.Nodes, known)
	if err != nil {
		return nil, err
	}
	c, _, _, err := Cluster(nodes, known)
	if err != nil {
		return nil, err
	}
	models, _, err := Models(q.Models, c.Profiles())
	if err != nil {
		return nil, err
	}
	cluster, catalog := c.Cluster(), catalog.New(c.Profiles(), models, nil)
	s := queueProblem{cluster: &cluster, waiting: NewBatch(q, &cluster, nil, catalog), catalog: catalog}
	if len(s.waiting.Jobs) == 0 {
		return &Order{Without: s.waiting.Left.total()}, nil
	}
	if err := s.setProblem(); err != nil {
		return nil, err
	}
	terms.Goal.ApplyTo(&s.problem)
	return s.playOrder(ctx, policy)
}

// limitArrays returns a queue without most of the tasks of arrays beyond so many tasks that there
// is room for: those that wait longest have some, every array keeps one. What can't be said
// of a job is taken as not known, so that it keeps no others from their places.
func limitArrays(q *epdapi.Queue, room int) *epdapi.Queue {
	out := *q
	out.Jobs = slices.Clone(q.Jobs)
	oldest := make([]*epdapi.QueuedJob, len(out.Jobs))
	for i := range out.Jobs {
		j := &out.Jobs[i]
		oldest[i] = j
		j.AgeS, j.RuntimeS, j.PowerW = orUnknown(j.AgeS), orUnknown(j.RuntimeS), orUnknown(j.PowerW)
		if j.Limit.Seconds() > maxValue {
			j.Limit = live.Limit{}
		}
		j.EndsS = orUnknown(j.EndsS)
	}
	slices.SortStableFunc(oldest, func(a, b *epdapi.QueuedJob) int {
		return cmp.Compare(b.AgeS.Or(0), a.AgeS.Or(0))
	})
	for _, j := range oldest {
		if j.State != string(slurm.Pending) || j.Held {
			continue
		}
		tasks := max(1, j.Tasks)
		j.Tasks = max(1, min(tasks, room))
		out.LeftOut += tasks - j.Tasks
		room -= j.Tasks
	}
	return &out
}

// maxValue is more seconds or watts than anything takes: a hundred years.
const maxValue = 3.2e9

// orUnknown returns a number that can be of a job, else not known.
func orUnknown(n live.Number) live.Number {
	if v, ok := n.Get(); !ok || !(v > 0) || v > maxValue {
		return live.Number{}
	}
	return n
}

// assumeClocks gives GPUs whose model or clocks aren't known one clock: for an order
// it is enough how many there are.
func assumeClocks(
	nodes []epdapi.QueueNode, known *config.Profiles,
) ([]epdapi.QueueNode, *config.Profiles, error) {
	nodes = slices.Clone(nodes)
	var b strings.Builder
	var made []string
	for i := range nodes {
		n := &nodes[i]
		n.GPUModel = cmp.Or(n.GPUModel, "gpu")
		if p, err := known.Lookup(n.GPUModel); err == nil {
			if _, err := p.Table(); err == nil {
				continue
			}
			n.GPUModel = p.Name
		}
		if slices.Contains(made, n.GPUModel) {
			continue
		}
		made = append(made, n.GPUModel)
		fmt.Fprintf(&b, "[[gpu]]\nname = %s\nidle_w = %d\ndefault_core_mhz = 1000\ndefault_mem_mhz = 1000\n"+
			"clocks = [{mem_mhz = [1000], core_mhz = [1000]}]\n", strconv.QuoteToASCII(n.GPUModel),
			assumedIdleW)
	}
	if len(made) == 0 {
		return nodes, known, nil
	}
	further, err := config.ReadProfiles(strings.NewReader(b.String()), "Slurm's GPUs")
	if err != nil {
		return nil, nil, fmt.Errorf("read profiles: %w", err)
	}
	return nodes, known.With(further), nil
}

// assumedIdleW only weighs jobs of unknown power among others.
const assumedIdleW = 50

func (l *Unplannable) total() int { return l.Held + l.Several + l.Endless + l.Many }

// queueProblem is a queue as a problem that goes on from the present.
type queueProblem struct {
	cluster     *planner.Cluster
	waiting     *Batch
	catalog     join.Catalog
	problem     planner.Problem
	records     []slurm.JobID // by task; those that run come last and have none
	unplannable int
}

// setProblem makes the problem: time 0 is when the oldest job was submitted or
// started.
func (s *queueProblem) setProblem() error {
	running, present := s.waiting.runningJobs, &planner.Snapshot{}
	for i := range running {
		present.Now = max(present.Now, running[i].elapsed)
	}
	jobs := make([]queue.Job, 0, min(len(s.waiting.Jobs), MaxPlanned))
	waits := s.byWait()
	for _, i := range waits {
		jobs = append(jobs, s.waiting.Jobs[i])
		s.records = append(s.records, s.waiting.RecordOf[i].ID)
		present.Now = max(present.Now, s.waiting.RecordOf[i].Waited)
	}
	tasks, _, err := join.Tasks(&queue.Batch{Jobs: jobs}, s.cluster, s.catalog, join.Margins{})
	if err != nil {
		return err
	}
	now := present.Now
	for i := range tasks {
		t := &tasks[i]
		t.Deadline = math.Inf(1) // what can't meet its own has a place all the same
		t.Arrival = now - s.waiting.RecordOf[waits[i]].Waited
		if t.Due += now; t.Due-now < minRunTime(t) {
			t.Due = math.Inf(1)
		}
	}
	for i := range running {
		r := &running[i]
		task, err := s.waiting.runningTask(r, r.elapsed+r.remaining)
		if err != nil {
			return err
		}
		task.Arrival = now - r.elapsed
		present.Running = append(present.Running, planner.RunningTask{
			Task: len(tasks), Class: r.class, Start: task.Arrival, End: now + r.remaining,
		})
		tasks = append(tasks, task)
	}
	s.problem = planner.Problem{Cluster: *s.cluster, Tasks: tasks, Mode: planner.Online, Snapshot: present}
	return nil
}

// minRunTime returns the least that a task can take.
func minRunTime(t *planner.Task) float64 {
	least := math.Inf(1)
	for i := range t.Options {
		least = min(least, t.Options[i].Response.MinTime())
	}
	return least
}

// byWait returns the tasks that have a place in an order: those that wait longest.
func (s *queueProblem) byWait() []int {
	all := s.waiting.byWait()
	s.unplannable = s.waiting.Left.total() + max(0, len(all)-MaxPlanned)
	return all[:min(len(all), MaxPlanned)]
}

// playOrder runs the policy and notes who starts when. If the context ends first, the
// order is that of those who had started by then.
func (s *queueProblem) playOrder(ctx context.Context, policy *planner.Policy) (*Order, error) {
	var started []int
	plan, err := planner.Solve(ctx, &s.problem, policy,
		&planner.Options{Started: func(task int) { started = append(started, task) }})
	switch {
	case err == nil:
		slices.SortStableFunc(started, func(a, b int) int {
			return cmp.Compare(plan.Assignments[a].Start, plan.Assignments[b].Start)
		})
	case ctx.Err() == nil || len(started) == 0:
		return nil, fmt.Errorf("play the queue: %w", err)
	}
	o := &Order{
		Without: s.unplannable + len(s.problem.Tasks) - len(s.problem.Snapshot.Running) - len(started),
	}
	seen := make(map[slurm.JobID]bool)
	for _, task := range started {
		if id := s.records[task]; !seen[id] {
			seen[id] = true
			o.Jobs = append(o.Jobs, id)
		}
	}
	return o, nil
}
