package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/queue"
)

// Setup is what a batch is planned with.
type Setup struct {
	Config         *config.Config
	Models         *config.Models   // nil: none
	Profiles       *config.Profiles // that may be named; before configure, further ones or nil
	Scaling        dvfsmodel.Range
	Problem        *planner.Problem
	Batch          *queue.Batch
	Warnings       []error           // about the batch and what is planned with it
	SlurmQueue     *slurmqueue.Batch // Slurm's queue, if that is planned
	NodePartitions [][]string        // partitions of node classes, where these are Slurm's; nil: they aren't
	Paper          bool              // --cluster paper
	Label          string            // of the batch in a comparison of several
	Params         policy.Params
	flagParams     []string // numbers of the policy that flags say, such as theta
	Seed           uint64
	QueueAt        time.Time      // when Slurm's queue was what is planned; zero: it is a file
	clocked        bool           // something asked for when the batch's second 0 is
	Rates          *factors.Rates // what energy costs; nil: nobody says
}

// Read reads the batch and everything that it is planned with.
func Read(t *terminal.Terminal, c *cli.Context, name string) (*Setup, error) {
	s := &Setup{Paper: c.String("cluster") == "paper", Seed: c.Uint64("seed")}
	if err := s.CheckPaperFlags(c); err != nil {
		return nil, err
	}
	format, err := queue.ParseFormat(c.String("format"))
	if err != nil {
		return nil, terminal.Usagef("--format: %v", err)
	}
	if err := s.Configure(t, c); err != nil {
		return nil, err
	}
	if s.Models, err = ReadModels(t, c); err != nil {
		return nil, err
	}
	columns, err := BatchOptions(c, format)
	if err != nil {
		return nil, err
	}
	s.Batch, err = terminal.ParseFile(t, name, func(r io.Reader, name string) (*queue.Batch, error) {
		return joblog.ReadBatch(r, name, format, columns)
	})
	if err != nil {
		return nil, fmt.Errorf("read batch: %w", WithColumnHint(err))
	}
	if !s.Paper && !s.Config.HasNodes() {
		missing := "no --cluster"
		if name := c.String("config"); name != "" {
			missing = name + " has no [[cluster.nodes]]"
		}
		k := s.Config.Cluster().Classes[0]
		t.Notef("%s: as many nodes as it takes, each with %d %s", missing, k.GPUs, k.Model)
	}
	return s, nil
}

// CheckPaperFlags reads the flags of the paper's cluster, which mean nothing
// on another one.
func (s *Setup) CheckPaperFlags(c *cli.Context) (err error) {
	for _, flag := range []string{"range", "gpus-per-node"} {
		if c.IsSet(flag) && !s.Paper {
			return terminal.Usagef("--%s is a property of --cluster paper, want that too", flag)
		}
	}
	name := c.String("range")
	if name == "" {
		name = "wide"
	}
	if s.Scaling, err = dvfsmodel.RangeByName(name); err != nil {
		return terminal.Usagef("--range: %v", err)
	}
	return nil
}

// ReadProblem is setup with the problem joined, for commands with one cluster.
func ReadProblem(t *terminal.Terminal, c *cli.Context, name string) (*Setup, error) {
	s, err := Read(t, c, name)
	if err != nil {
		return nil, err
	}
	return Complete(t, c, s)
}

// Complete checks the numbers that flags gave policies, and joins the problem.
func Complete(t *terminal.Terminal, c *cli.Context, s *Setup) (*Setup, error) {
	for flag, to := range map[string]*float64{
		"theta": &s.Params.Theta, "rho": &s.Params.Rho,
		"effort": &s.Params.Effort, "pace": &s.Params.Pace,
	} {
		if c.IsSet(flag) {
			*to, s.flagParams = c.Float64(flag), append(s.flagParams, flag)
		}
	}
	if effort := s.Params.Effort; c.IsSet("effort") && !(effort > 0 && effort <= maxEffort) {
		return nil, terminal.Usagef("--effort %v, want a number above 0 and up to %d", effort, maxEffort)
	}
	if err := CheckParams(s.Params); err != nil {
		return nil, err
	}
	return s, s.Join(t, c, c.Int("gpus-per-node"))
}

// maxEffort is the most that --effort may ask for: days, for a few hundred jobs.
const maxEffort = 10_000

// CheckParams reports a number of a policy that is out of its range.
func CheckParams(p policy.Params) error {
	if !(p.Theta > 0 && p.Theta <= 1) {
		return terminal.Usagef("--theta %v, want a number above 0 and up to 1", p.Theta)
	}
	if !(p.Rho >= 0) {
		return terminal.Usagef("--rho %v, want 0 or more", p.Rho)
	}
	return nil
}

// Configure reads configuration and cluster, and takes the policy's numbers.
func (s *Setup) Configure(t *terminal.Terminal, c *cli.Context) error {
	t.EveryWarning = c.String(warningsFlag) == allWarnings
	profiles, err := ReadProfiles(t, c.String("profiles"))
	if err != nil {
		return err
	}
	if s.Profiles != nil {
		profiles = profiles.With(s.Profiles)
	}
	s.Profiles = profiles
	if err := useFoundConfig(t, c); err != nil {
		return err
	}
	name := c.String("config")
	if cluster := c.String("cluster"); cluster != "" && !s.Paper {
		if name != "" {
			return terminal.Usagef("--config and --cluster FILE are both given, want one: a configuration " +
				"has its cluster in it")
		}
		name = cluster
	}
	if name == "" {
		s.Config = config.Default()
	} else {
		if s.Config, err = readConfig(t, name, profiles); err != nil {
			return err
		}
		if c.String("config") == "" && !s.Config.HasNodes() {
			return NoNodesError(name)
		}
	}
	s.Params = s.Config.Policy.Params()
	return nil
}

// readConfig reads a configuration, which may name the profiles beside its own.
func readConfig(t *terminal.Terminal, name string, profiles *config.Profiles) (*config.Config, error) {
	c, err := terminal.ParseFile(t, name, func(r io.Reader, name string) (*config.Config, error) {
		return config.Load(r, name, profiles)
	})
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return c, nil
}

// Join makes the problem of batch, cluster and models.
func (s *Setup) Join(t *terminal.Terminal, c *cli.Context, gpusPerNode int) error {
	cluster, margins := s.Config.Cluster(), join.Margins{
		Limit: s.Config.Safety.LimitMargin, Deadline: s.Config.Safety.DeadlineMargin,
	}
	if s.Paper {
		if gpusPerNode < 1 || gpusPerNode > planner.MaxGPUs {
			return terminal.Usagef("--gpus-per-node %d, want 1 to %d", gpusPerNode, planner.MaxGPUs)
		}
		cluster, margins = config.PaperCluster(gpusPerNode), join.Margins{}
	}
	stretch := s.Config.Safety.MaxTurnaround
	if c.IsSet("stretch") {
		stretch = c.Float64("stretch")
	}
	if !(stretch >= 1 && stretch <= config.MaxFactor) {
		return terminal.Usagef("--stretch %v, want 1 to %.0f", stretch, float64(config.MaxFactor))
	}
	if pace := s.Params.Pace; c.IsSet("pace") && !(pace >= 1 && pace <= stretch) {
		return terminal.Usagef("--pace %v, want 1 to %v (max_turnaround)", pace, stretch)
	}
	if err := s.contention(t, c, &cluster); err != nil {
		return err
	}
	if _, err := s.RunOn(c); err != nil {
		return err
	}
	known := NewCatalog(s.Config.SiteProfiles(), s.Models, &s.Scaling)
	if c.Bool(priorFlag) {
		known.UsePrior()
	}
	if c.Bool(capsFlag) || !c.IsSet(capsFlag) && s.Config.Live.Cap.IsChosenEverywhere() {
		known.UseCaps()
	}
	tasks, warnings, err := join.Tasks(s.Batch, &cluster, known, margins)
	estimates := config.EstimateWarnings(&cluster, s.Config.Profiles())
	s.Warnings = slices.Concat(s.Batch.Warnings, warnings, estimates)
	// Nobody states power there, and a prediction or a limit is of wherever a job runs.
	if c.Bool("from-slurm") {
		s.Warnings = queue.WithoutWarnings(s.Warnings, queue.WarnPower, queue.WarnRunTime,
			queue.WarnNoRunTime)
	}
	t.Warn(s.Warnings)
	if err != nil {
		return WithRunTimeHint(err)
	}
	noteUnused(t, c, tasks)
	s.noteBudget(t, c)
	s.Problem = &planner.Problem{Cluster: cluster, Tasks: tasks, Mode: planner.ModeOf(tasks)}
	goal := s.Config.Goal()
	goal.ApplyTo(s.Problem)
	if s.SlurmQueue != nil {
		if err := s.SlurmQueue.AddRunning(s.Problem); err != nil {
			return err
		}
	}
	if s.Problem.Mode == planner.Online && c.Bool("clairvoyant") {
		s.Problem.Mode = planner.Clairvoyant
	}
	if err := s.setStart(c.String("start")); err != nil {
		return err
	}
	return policy.ImplyDue(c.Context, s.Problem, stretch)
}

// noteUnused notes flags that change nothing.
func noteUnused(t *terminal.Terminal, c *cli.Context, tasks []planner.Task) {
	if c.Bool(priorFlag) && !slices.ContainsFunc(tasks, func(t planner.Task) bool {
		return slices.ContainsFunc(t.Options, func(o planner.Option) bool { return o.Prior })
	}) {
		t.Notef("--%s changes nothing: no job without a model may run on a GPU model with models "+
			"of %d workloads or more", priorFlag, pooled.MinKnown)
	}
	if c.Bool(capsFlag) && !slices.ContainsFunc(tasks, func(t planner.Task) bool { return t.CanBeCapped() }) {
		t.Notef("--%s changes nothing: no job has a model of power caps on a GPU model whose limits are "+
			"known, for the power that it states", capsFlag)
	}
}

// WithRunTimeHint adds to an error about run times of GPU models what a batch, or a flag, can say.
func WithRunTimeHint(err error) error {
	var wrong interface{ Ways() string }
	if errors.As(err, &wrong) {
		return terminal.WithHint(err, wrong.Ways())
	}
	return err
}

// RunOn says of which GPU model run times are where the batch doesn't, and how fast GPU models are: by the
// flags, else by the configuration.
func (s *Setup) RunOn(c *cli.Context) (model string, err error) {
	if s.Batch.Speeds = s.Config.Speeds(); c.IsSet(SpeedFlag) {
		if s.Batch.Speeds, err = queue.ParseSpeeds(c.String(SpeedFlag)); err != nil {
			return "", terminal.Usagef("--%s: %v", SpeedFlag, err)
		}
	}
	for i := range s.Batch.Speeds {
		profile, err := s.Config.Profiles().Lookup(s.Batch.Speeds[i].Model)
		if err != nil {
			return "", terminal.Usagef("--%s: %v", SpeedFlag, err)
		}
		s.Batch.Speeds[i].Model = profile.Name
	}
	if model = s.Config.RuntimeModel(); c.String(RuntimeModelFlag) != "" {
		model = c.String(RuntimeModelFlag)
		if _, err := s.Config.Profiles().Lookup(model); err != nil && model != queue.AnyModel {
			return "", terminal.Usagef("--%s: %v", RuntimeModelFlag, err)
		}
	}
	if model != "" {
		s.Batch.RunOn(model)
	}
	return model, nil
}

// contention has the cluster count what sharing a GPU costs by the curve of
// --contention, or of the configuration.
func (s *Setup) contention(t *terminal.Terminal, c *cli.Context, cluster *planner.Cluster) error {
	name := c.String("contention")
	if cluster.Sharing == nil {
		if name != "" {
			return terminal.Usagef("--contention is about GPUs that jobs share, and no nodes of the cluster " +
				"have share = true, want some or the flag left out")
		}
		return nil
	}
	if name == "" {
		name = s.Config.Contention()
	}
	if name == "" {
		return nil
	}
	curve, err := terminal.ParseFile(t, name, sharing.ReadCurve)
	if err != nil {
		return fmt.Errorf("read contention: %w", err)
	}
	cluster.Sharing.Contention = curve
	return nil
}

// WithFileLocation adds to an error of a policy where the file says what it is about.
func WithFileLocation(c *config.Config, err error) error {
	if wrong, ok := errors.AsType[*planner.ClassError](err); ok {
		if at := c.NodesAt(wrong.Class); at.Line > 0 {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return err
}

// setStart chooses the start rule: the flag's, the configuration's, or by mode
// on the paper's cluster.
func (s *Setup) setStart(flag string) (err error) {
	switch {
	case flag != "":
		if s.Problem.Start, err = planner.ParseStartRule(flag); err != nil {
			return terminal.Usagef("--start: %v", err)
		}
	case s.Paper && s.Problem.Mode == planner.Online:
		s.Problem.Start = planner.StartSlot
	case !s.Paper:
		s.Problem.Start = s.Config.Start(s.Problem.Mode)
	}
	if s.Problem.Start == planner.StartSlot && s.Problem.Cluster.Slot == 0 {
		return terminal.Usagef("--start slot needs a cluster with slots, want slot_s above 0 in its " +
			"[cluster]")
	}
	return nil
}

// Policy reads a policy string; empty is the configuration's, or the best one.
func (s *Setup) Policy(text string) (*planner.Policy, error) {
	if text == "" {
		text = s.Config.Policy.Offline
		if s.Problem.Mode == planner.Online {
			text = s.Config.Policy.Online
		}
	}
	params, pace, tolerance := s.Params, s.Params.Pace, 0.0
	if text == "" || text == config.Best {
		text, tolerance = policy.SearchPolicy, s.Config.Goal().Tolerance
		if s.Problem.Mode == planner.Online {
			text, pace, tolerance = policy.PacedPolicy, cmp.Or(pace, s.Config.Safety.Pace), 0
		}
	}
	full := policy.WithNumber(text, "tolerance", tolerance)
	if params.Pace = 0; policy.AcceptsNumber(text, "pace") {
		full = policy.WithNumber(full, "pace", pace)
	}
	p, err := ParsePolicy(full, params)
	if err != nil {
		return nil, err
	}
	if pace, most := policy.PaceOf(full), s.Problem.MaxTurnaround; most > 0 && pace > most {
		return nil, terminal.Usagef("policy %s: pace %v, want 1 to %v (max_turnaround)", full, pace, most)
	}
	return p, s.checkFlagUsed(text)
}

// Frontier returns what an online plan leaves to gain: by a slower pace, where its policy has one, and by
// knowing all jobs from the start; nothing of other plans, or of many jobs.
func (s *Setup) Frontier(ctx context.Context, plan *planner.Plan) (f planreport.Frontier, err error) {
	const step, most = 0.1, 500 // jobs
	p := s.Problem
	if p.Mode != planner.Online || p.Snapshot != nil || s.Paper || len(p.Tasks) > most {
		return f, nil
	}
	pace := policy.PaceOf(plan.Policy)
	f.Pace = min(math.Round((pace+step)*100)/100, p.MaxTurnaround)
	if pace > 0 && f.Pace > pace {
		slower, err := policy.Parse(policy.WithNumber(plan.Policy, "pace", f.Pace), s.Params)
		if err != nil {
			return f, err
		}
		if f.Slower, err = policy.SolveChecked(ctx, p, slower, nil); err != nil {
			return f, err
		}
	}
	f.Hindsight, err = policy.Hindsight(ctx, p, plan)
	return f, err
}

// checkFlagUsed reports a number that a flag says and the policy has no use for, or says
// itself.
func (s *Setup) checkFlagUsed(text string) error {
	for _, flag := range s.flagParams {
		switch {
		case policy.HasOption(text, flag):
			return terminal.Usagef("--%s and policy %s both say %s, want it once", flag, text, flag)
		case !policy.AcceptsNumber(text, flag) && !(flag == "theta" && s.Params.Theta == 1):
			return terminal.Usagef("--%s does nothing for policy %s, want it left out, or another policy: "+
				"%s takes it", flag, text, policyWithNumber(flag))
		}
	}
	return nil
}

// policyWithNumber returns a policy that a number acts on.
func policyWithNumber(flag string) string {
	switch flag {
	case "effort":
		return policy.SearchPolicy
	case "pace":
		return policy.PacedPolicy
	}
	return "edl"
}

// References returns what plans of the batch are held against: nothing on the paper's
// cluster, whose savings are against default clocks without any idle energy (EDL
// §5.3), whatever the schedule.
func (s *Setup) References(ctx context.Context, of *planner.Policy) (r policy.References, err error) {
	if !s.Paper {
		params := s.Params
		params.AlwaysOn = planner.NeverSleeps(of.Park, &s.Problem.Cluster)
		r, err = policy.NewReferences(ctx, s.Problem, params)
	}
	return r, err
}

// ResultOf returns a plan with what it is held against.
func (s *Setup) ResultOf(plan *planner.Plan, against policy.References) *planreport.Result {
	r := &planreport.Result{
		Problem: s.Problem, Plan: plan, Reference: against.FCFS, Easy: against.Easy,
		Constant: against.Constant, AlwaysOn: against.AlwaysOn,
		Bound: bound.Of(s.Problem, plan), QueueAt: s.QueueAt,
	}
	r.Rates = s.Rates
	if r.Baseline = planner.DefaultEnergy(s.Problem, plan); against.FCFS != nil {
		r.Baseline = against.FCFS.Ledger.Total()
	}
	return r
}
