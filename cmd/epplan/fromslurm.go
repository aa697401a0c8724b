package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// fromSlurm is a setup with Slurm's queue as the batch; nil when nothing waits.
func (t *terminal) fromSlurm(c *cli.Context) (*setup, error) {
	for _, flag := range []string{"models", "format", "clairvoyant"} {
		if c.IsSet(flag) {
			return nil, usagef("--%s is about a batch file, want none with --from-slurm", flag)
		}
	}
	s := &setup{paper: c.String("cluster") == config.PaperModel, seed: c.Uint64("seed")}
	if s.paper {
		return nil, usagef("--cluster paper has no GPU models of Slurm's, want a file or none with --from-slurm")
	}
	if err := s.checkPaperFlags(c); err != nil {
		return nil, err
	}
	q, err := ask(c, publicFirst, func(ctx context.Context, epd *epdapi.Client) (*epdapi.Queue, error) { return epd.Queue(ctx) })
	if err != nil {
		return nil, err
	}
	if q.Profiles != "" {
		if s.profiles, err = config.ReadProfiles(strings.NewReader(q.Profiles), "epd's profiles"); err != nil {
			return nil, fmt.Errorf("read profiles: %w", err)
		}
	}
	if err := s.configure(t, c); err != nil {
		return nil, err
	}
	if c.String("config") == "" && c.String("cluster") == "" {
		if err := s.clusterOf(t, q.Nodes); err != nil {
			return nil, err
		}
	}
	if err := s.takeModels(t, q.Models); err != nil {
		return nil, err
	}
	waiting := waitingJobs{setup: s, catalog: newCatalog(s.config.Profiles(), s.models, &s.scaling)}
	for i := range q.Jobs {
		waiting.add(&q.Jobs[i])
	}
	waiting.left.many += q.LeftOut
	waiting.tell(t)
	if len(waiting.jobs) == 0 {
		return nil, nil
	}
	s.batch = &queue.Batch{Name: "Slurm's queue", Jobs: waiting.jobs}
	return t.joined(c, s)
}

// clusterOf takes the nodes that Slurm reports.
func (s *setup) clusterOf(t *terminal, nodes []epdapi.QueueNode) error {
	var b strings.Builder
	profiles := s.profiles
	b.WriteString("[cluster]\nname = \"slurm\"\n")
	found := false
	for i := range nodes {
		n := &nodes[i]
		profile, err := profiles.Lookup(n.GPUModel)
		if err == nil {
			_, err = profile.Table()
		}
		if err == nil && (n.GPUs < 1 || n.GPUs > planner.MaxGPUs) {
			err = fmt.Errorf("%d GPUs, want 1 to %d", n.GPUs, planner.MaxGPUs)
		}
		if err != nil {
			t.message("warning", fmt.Sprintf("%s with %s of type %q left out: %v", counted(n.Count, "node"), counted(n.GPUs, "GPU"), n.GPUModel, err))
			continue
		}
		found = true
		fmt.Fprintf(&b, "[[cluster.nodes]]\nname = %q\ngpu_model = %q\ngpus = %d\ncount = %d\n",
			strings.ToLower(profile.Name)+"x"+strconv.Itoa(n.GPUs), profile.Name, n.GPUs, max(1, n.Count))
	}
	if !found {
		return &hintedError{
			err:  errors.New("no node of Slurm's has GPUs of a known model"),
			hint: "describe the cluster with --cluster, or its GPU model with --profiles",
		}
	}
	var err error
	s.config, err = config.Load(strings.NewReader(b.String()), "Slurm's nodes", profiles)
	return err
}

// takeModels reads epd's models. One that says nothing about clocks of its GPU
// model's profile is left out.
func (s *setup) takeModels(t *terminal, text string) error {
	if text == "" {
		return nil
	}
	all, err := config.ReadModels(strings.NewReader(text), "epd's models")
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	var usable []config.Model
	for _, m := range all.All() {
		profile, err := s.config.Profiles().Lookup(m.GPUModel)
		if err == nil {
			_, err = m.Response(profile)
		}
		if err != nil {
			t.message("warning", fmt.Sprintf("the model of workload %s is left out: %v", m.Workload, err))
			continue
		}
		usable = append(usable, m)
	}
	s.models, err = config.NewModels(usable...)
	return err
}

// waitingJobs makes a batch of a queue.
type waitingJobs struct {
	setup   *setup
	catalog *catalog
	jobs    []queue.Job
	unknown int // jobs without a model
	left    struct{ held, several, endless, many int }
	running struct{ jobs, gpus int }
}

// add takes a job if it can be planned.
func (w *waitingJobs) add(q *epdapi.QueuedJob) {
	limit, limited := q.LimitS.Get()
	responses := w.responses(q)
	switch {
	case q.State != string(slurm.Pending):
		w.running.jobs++
		w.running.gpus += q.GPUs
		return
	case q.Held:
		w.left.held += max(1, q.Tasks)
		return
	case q.Nodes > 1:
		w.left.several += max(1, q.Tasks)
		return
	case len(responses) == 0 && !limited:
		w.left.endless += max(1, q.Tasks)
		return
	}
	job := queue.NewJob(strconv.FormatInt(q.ID, 10))
	job.User, job.Name = q.User, q.Name
	job.GPUs = []queue.GPUCount{{Model: q.GPUModel, Count: q.GPUs}}
	if limited {
		job.Limit = limit
	}
	if d, ok := q.DeadlineS.Get(); ok {
		job.Deadline = max(1, d) // one that is over can't be met
	}
	switch {
	case len(responses) == 0:
		job.Runtime = limit
		w.unknown += max(1, q.Tasks)
	case q.HandsOff:
		at := responses[0].Default()
		job.Runtime, job.Power = at.Time, float64(at.Power)
	default:
		job.Workload = q.Workload
	}
	if q.Tasks <= 1 {
		w.jobs = append(w.jobs, job)
		return
	}
	for i := range q.Tasks {
		task := job
		task.ID = fmt.Sprintf("%d/%d", q.ID, i+1)
		w.jobs = append(w.jobs, task)
	}
}

// responses are those of a job on the cluster's GPU models that it may use.
func (w *waitingJobs) responses(q *epdapi.QueuedJob) []dvfsmodel.Response {
	if q.Workload == "" || w.setup.models == nil {
		return nil
	}
	var all []dvfsmodel.Response
	var seen []string
	cluster := w.setup.config.Cluster()
	for i := range cluster.Classes {
		name := cluster.Classes[i].Model
		if slices.Contains(seen, name) || q.GPUModel != "" && q.GPUModel != name {
			continue
		}
		seen = append(seen, name)
		if r, err := w.catalog.Workload(q.Workload, name); err == nil && r != nil && !math.IsNaN(r.Default().Time) {
			all = append(all, r)
		}
	}
	return all
}

// tell says what the plan leaves out and assumes.
func (w *waitingJobs) tell(t *terminal) {
	if w.unknown > 0 {
		t.message("note", fmt.Sprintf("%d of %s without a model: default clocks for as long as the time limit", w.unknown, counted(len(w.jobs), "job")))
	}
	var parts []string
	for _, part := range []struct {
		n   int
		why string
	}{
		{w.left.held, "held or not due yet"},
		{w.left.several, "on several nodes"},
		{w.left.endless, "without model and time limit"},
		{w.left.many, "beyond what epd lists"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.why))
		}
	}
	if len(parts) > 0 {
		t.message("note", "left out: "+strings.Join(parts, ", "))
	}
	if w.running.jobs > 0 {
		t.message("note", fmt.Sprintf("%s %s; the plan begins as if they were free",
			counted(w.running.jobs, "running job holds", "running jobs hold"), counted(w.running.gpus, "GPU")))
	}
	if len(w.jobs) == 0 {
		t.message("note", "no job with GPUs waits that can be planned")
	}
}
