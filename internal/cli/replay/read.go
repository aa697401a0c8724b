package replay

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/catalog"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
)

// Formats of a history.
const (
	AutoFormat  = "auto"
	formatSacct = "sacct"
	formatJobs  = "jobs"
)

type historyReplay struct {
	setup       *setup.Setup
	terminal    *terminal.Terminal
	name        string
	tally       *joblog.Tally
	begin       time.Time // the first submission of a job that is planned
	past        []record.HistoryJob
	kinds       map[string]*jobKind
	jobs        []historyJob // by task
	excluded    historyExclusions
	measuredJ   float64 // J of planned jobs, where known
	meteredJobs int     // planned jobs with a known energy
	policies    []*planner.Policy
	draws       int
	learning    int           // jobs of each workload at default clocks, before its response is known
	names       [][2]string   // patterns of job names, and their workloads
	unnamed     *join.Unnamed // where jobs ran that don't say it
	warnings    []error
	limits      *joblog.PowerLimits
	scale       float64 // of the cluster's nodes; 0: 1
	peaks       []peakUse
}

// historyExclusions counts jobs that aren't planned, and those that are planned in
// some special way.
type historyExclusions struct {
	NoGPUs     int `json:"without_gpus"`
	Elsewhere  int `json:"on_other_gpu_models"`
	NoTime     int `json:"without_run_time"`
	TooWide    int `json:"too_wide"`            // more GPUs by node than any node has
	TooMany    int `json:"too_many_nodes"`      // more nodes than there are
	Several    int `json:"several_nodes"`       // planned on several nodes that start together
	Uneven     int `json:"split_by_node"`       // other GPUs on each node: planned as one job for each
	AtDefault  int `json:"at_default_clocks"`   // that were stopped at their limit
	Learning   int `json:"learning"`            // at default clocks until their workload is known
	NoPower    int `json:"power_assumed"`       // no energy in the log
	KnownJobs  int `json:"jobs_by_models"`      // workload known
	PriorJobs  int `json:"jobs_by_prior"`       // workload not known
	KnownKinds int `json:"workloads_by_models"` //
	PriorKinds int `json:"workloads_by_prior"`  //
}

type historyJob struct {
	past  int     // index
	limit float64 // s, as it was asked for, +Inf: none
	span  float64 // s it ran at default clocks
	kind  *jobKind
}

// jobKind is jobs of one user whose names are of one kind: they respond alike to clocks.
type jobKind struct {
	model   string  // its workload in the models file, or ""
	energy  float64 // J, and
	seconds float64 // s of GPUs that it was measured over
	jobs    int
}

// Run tells what a past month would have cost.
func Run(t *terminal.Terminal, c *cli.Context) error {
	if name := c.Args().First(); terminal.IsDir(name) {
		return &terminal.UsageError{
			Msg:  name + " is a folder, want a file",
			Hint: "replays of traces are of the laboratory now: epplab replay " + name,
		}
	}
	if err := terminal.CheckHTML(c); err != nil {
		return err
	}
	switch c.String("format") {
	case AutoFormat, formatSacct, formatJobs:
	default:
		return terminal.Usagef("--format %q, want sacct or jobs", c.String("format"))
	}
	h := &historyReplay{
		terminal: t, name: c.Args().First(), kinds: make(map[string]*jobKind), draws: c.Int("draws"),
		learning: c.Int("learning"),
	}
	var times []flexTime
	if c.IsSet("flex") {
		if err := terminal.Refuse(c, "says nothing beside --flex", "html", "draws"); err != nil {
			return err
		}
		var err error
		if times, err = flexTimes(c); err != nil {
			return err
		}
	}
	if err := h.prepare(c); err != nil {
		return err
	}
	if err := h.read(c); err != nil {
		return err
	}
	if err := h.join(c); err != nil {
		return err
	}
	if times != nil {
		return h.flex(c, times)
	}
	runs, err := h.run(c)
	if err != nil {
		return err
	}
	end := 0.0
	for i := range runs {
		for k := range runs[i].draws {
			end = max(end, runs[i].draws[k].End)
		}
	}
	h.setup.WarnOfPrices(h.terminal, end, false)
	return h.print(c, runs)
}

func (h *historyReplay) prepare(c *cli.Context) (err error) {
	if c.String("cluster") == "" {
		return terminal.Usagef("no --cluster, want a file with the cluster that the jobs ran on")
	}
	if h.scale = c.Float64("scale-cluster"); !(h.scale > 0 && h.scale <= maxClusterScale) {
		return terminal.Usagef("--scale-cluster %v, want above 0 and up to %d", h.scale, maxClusterScale)
	}
	h.setup = &setup.Setup{Seed: c.Uint64("seed")}
	if err := h.setup.Configure(h.terminal, c); err != nil {
		return err
	}
	if h.setup.Models, err = setup.ReadModels(h.terminal, c); err != nil {
		return err
	}
	for _, text := range c.StringSlice("workload") {
		names, workload, ok := strings.Cut(text, "=")
		if _, err := path.Match(names, ""); !ok || err != nil || names == "" {
			return terminal.Usagef("--workload %q, want names=workload, such as train-*=resnet50", text)
		}
		if h.setup.Models == nil {
			return terminal.Usagef("--workload %q is of no use without --models", text)
		}
		if err := h.setup.Models.Check(workload); err != nil {
			return terminal.Usagef("--workload %q: %v", text, err)
		}
		h.names = append(h.names, [2]string{names, workload})
	}
	return nil
}

func (h *historyReplay) read(c *cli.Context) error {
	zone, err := setup.TimeZone(c.String("timezone"))
	if err != nil {
		return err
	}
	h.limits = joblog.NewPowerLimits(h.setup.Config.Profiles())
	reader, o := joblog.ReadAny, &joblog.Options{Zone: zone, Profiles: h.setup.Config.Profiles()}
	switch c.String("format") {
	case formatSacct:
		reader = joblog.ReadSacct
	case formatJobs:
		reader = joblog.ReadTable
	}
	err = h.terminal.Read(h.name, func(r io.Reader, name string) (err error) {
		h.tally, err = reader(setup.NewProgressReader(c.Context, r, nil), name, o,
			func(p *record.HistoryJob) error {
				if gpus, known := p.GPUs.Get(); !known || gpus < 1 {
					h.excluded.NoGPUs++
					return nil
				}
				h.past = append(h.past, *p)
				return nil
			})
		return err
	})
	if err != nil {
		return err
	}
	setup.WarnOfLog(h.terminal, h.tally)
	slices.SortStableFunc(h.past, func(a, b record.HistoryJob) int {
		return a.Submitted.Compare(b.Submitted)
	})
	return nil
}

func (h *historyReplay) join(c *cli.Context) error {
	cluster := h.cluster()
	batch := &queue.Batch{Name: h.name}
	h.setup.Batch = batch
	model, err := h.setup.RunOn(c)
	if err != nil {
		return err
	}
	h.unnamed = join.NewUnnamed(&cluster, h.modelName(model), batch.Speeds)
	for i := range h.past {
		h.add(batch, &cluster, i)
	}
	for i := range batch.Jobs { // without energy in the log, and not by a workload
		j, k := &batch.Jobs[i], h.jobs[i].kind
		if _, metered := h.past[h.jobs[i].past].EnergyJ.Get(); !metered && j.Workload == "" && k.seconds > 0 {
			j.Power = k.energy / k.seconds
		}
	}
	if err := h.unnamed.Err(len(h.past)); err != nil {
		return setup.WithRunTimeHint(fmt.Errorf("%s: %w", h.name, err))
	}
	if len(batch.Jobs) == 0 {
		return terminal.WithHint(
			fmt.Errorf("%s: no job can be planned: %s", h.name, h.excluded.text()),
			"GPUs come from sacct's columns AllocTRES or ReqTRES, or from gpus in a table, which is empty after epplan "+
				"import swf: fill it in; --cluster names the GPU models",
		)
	}
	if err := h.comparePeaks(c); err != nil {
		return err
	}
	for _, k := range h.kinds {
		switch {
		case k.jobs == 0: // all hit their limits
		case k.model != "":
			h.excluded.KnownKinds++
		default:
			h.excluded.PriorKinds++
		}
	}
	if h.setup.Problem, err = h.problemFor(nil); err != nil {
		return err
	}
	batch.Start = h.begin
	if err := h.setup.PriceEnergy(h.terminal, c); err != nil {
		return err
	}
	h.terminal.Warn(h.warnings)
	h.setup.Params = h.setup.Config.Policy.Params()
	if err := policy.ImplyDue(c.Context, h.setup.Problem, h.setup.Config.Safety.MaxTurnaround); err != nil {
		return err
	}
	return h.choosePolicies(c)
}

// choosePolicies takes the policies, each once. The baseline and constant clocks are played
// in any case.
func (h *historyReplay) choosePolicies(c *cli.Context) error {
	names := policy.SplitList(c.StringSlice("policy"))
	if len(names) == 0 {
		names = []string{"baseline,clocks=optimum"} // Slurm schedules, clocks are ours
	}
	taken := map[string]bool{baselinePolicy: true, policy.Constant: true}
	for _, name := range names {
		p, err := h.setup.Policy(name)
		if err != nil {
			return err
		}
		if p.Hindsight && !taken[p.Name] {
			return terminal.Usagef(
				"--policy %s: a history has constant clocks on Slurm's schedule, want %s alone, "+
					"or another policy",
				name,
				policy.Constant,
			)
		}
		if !taken[p.Name] {
			taken[p.Name] = true
			h.policies = append(h.policies, p)
		}
	}
	return nil
}

// problemFor returns the problem with responses as they are expected, or as one draw
// has them.
func (h *historyReplay) problemFor(drawn *pooled.ResponseDraw) (*planner.Problem, error) {
	cluster := h.cluster()
	catalog := &historyCatalog{
		Catalog: catalog.New(h.setup.Config.SiteProfiles(), h.setup.Models, &h.setup.Scaling),
		history: h, drawn: drawn,
	}
	catalog.shapes = make(map[[2]string]responseShape)
	margins := join.Margins{Limit: h.setup.Config.Safety.LimitMargin}
	tasks, warnings, err := join.Tasks(h.setup.Batch, &cluster, catalog, margins)
	if err != nil {
		return nil, err
	}
	if drawn == nil {
		h.warnings = append(
			h.warnings,
			queue.WithoutWarnings(warnings, queue.WarnPower, queue.WarnRunTime,
				queue.WarnNoRunTime)...)
	}
	p := &planner.Problem{Cluster: cluster, Tasks: tasks, Mode: planner.ModeOf(tasks)}
	goal := h.setup.Config.Goal()
	goal.ApplyTo(p)
	p.Start = h.setup.Config.Start(p.Mode)
	if drawn != nil {
		for i := range tasks {
			tasks[i].Due, tasks[i].Limit = h.setup.Problem.Tasks[i].Due, h.setup.Problem.Tasks[i].Limit
		}
	}
	return p, nil
}

// maxClusterScale is the most by which --scale-cluster multiplies nodes.
const maxClusterScale = 1000

// cluster returns that of --cluster, with as many nodes as --scale-cluster makes of them.
func (h *historyReplay) cluster() planner.Cluster {
	return scaledCluster(h.setup.Config.Cluster(), cmp.Or(h.scale, 1))
}

// comparePeaks holds the GPUs that the planned jobs had at once against those of the cluster. A cluster
// that can't have run them is refused, unless it is wanted.
func (h *historyReplay) comparePeaks(c *cli.Context) error {
	uses, seen, waited := make([]gpuUse, 0, len(h.jobs)), -1, false
	for i := range h.jobs {
		if at := h.jobs[i].past; at != seen {
			seen = at
			p := &h.past[at]
			waited = waited || p.Started.After(p.Submitted)
			uses = append(uses, gpuUse{
				From: p.Started, To: p.Ended, GPUs: int(p.GPUs.Or(0)), Model: h.modelName(p.GPUModel),
			})
		}
	}
	cluster, factor := h.cluster(), 0.0
	h.peaks = peakUses(uses, &cluster)
	for _, p := range h.peaks {
		factor = max(factor, float64(p.Log)/float64(max(1, p.Cluster)))
	}
	over := peaksBeyondCluster(h.peaks)
	if len(over) == 0 {
		return nil
	}
	text := "the log had " + strings.Join(terminal.TextsOf(over, peakUse.String), "; ")
	switch {
	case !waited:
		h.terminal.Message("warning", text+": no job of it waited, so that its starts may be its submissions")
		return nil
	case c.Bool("any-cluster"):
		h.terminal.Message("warning", text+": waits are those of this cluster, not the log's")
		return nil
	}
	return terminal.WithHint(fmt.Errorf("%s can't have run on this cluster: %s", h.name, text), fmt.Sprintf(
		"name the log's cluster with --cluster, multiply its nodes with --scale-cluster %.2f, or go on as it is with "+
			"--any-cluster",
		math.Ceil(factor*h.scale*100)/100,
	))
}
