package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/queue"

	"github.com/epplan/epplan/internal/cli/inputs"
	"github.com/epplan/epplan/internal/cli/terminal"
)

func planningFlags() []cli.Flag {
	return append(problemFlags(),
		&cli.IntFlag{Name: "gpus-per-node", Usage: "`COUNT` of pairs on a node of --cluster paper", Value: 1},
		&cli.StringFlag{
			Name: "policy", Aliases: []string{"p"}, DefaultText: "the best one",
			Usage: "`POLICY`: NAME[:THETA][,KEY=VALUE]…; epplan compare --help lists them",
		},
		&cli.Float64Flag{Name: "theta", DefaultText: "1", Usage: "`PART` of its optimal time to which " +
			"θ-readjustment may shorten a job"},
		&cli.Float64Flag{Name: "effort", DefaultText: "1", Usage: "`FACTOR` of the usual search for a " +
			"better plan: 5 searches five times as long"},
		&cli.Float64Flag{Name: "rho", DefaultText: "2", Usage: "`SLOTS` (seconds where there are none) " +
			"that an idle node waits before it goes off"},
	)
}

func problemFlags() []cli.Flag {
	return append(slices.Concat(inputs.TableFlags("batches"),
		runtimeFlags("GPU `MODEL` that run times and powers of a batch are of which doesn't say; *: "+
			"the same on all")),
		&cli.StringFlag{
			Name: "format", Usage: "`FORMAT` of the batch: auto, csv, json or edl", Value: "auto",
		},
		&cli.StringFlag{
			Name: "config", Usage: "TOML `FILE` with cluster, objective, policy and safety margins",
		},
		&cli.StringFlag{Name: "cluster", Usage: "TOML `FILE` with the cluster, or paper: the EDL paper's"},
		inputs.ModelsFlag("TOML `FILE` with fitted workload models; repeat it for more", ""),
		inputs.ProfilesFlag(),
		inputs.ContentionFlag("the cluster's, or time is shared without loss"),
		&cli.StringFlag{
			Name: "range", DefaultText: "wide",
			Usage: "scaling `INTERVAL` of --cluster paper: wide or narrow",
		},
		&cli.StringFlag{
			Name: "start", DefaultText: "slot online, else continuous",
			Usage: "`RULE` by which queued jobs start: slot or continuous",
		},
		terminal.BoolFlag("clairvoyant", "use all jobs from the start, also those that arrive later"),
		terminal.BoolFlag(priorFlag, "run jobs without a model at the clocks that suit the workloads with one, for "+
			"as long as 19 of 20 of these would take"),
		terminal.BoolFlag(capsFlag, "set power caps too, of workloads whose models know them on GPU models whose limits "+
			"are known; without it only where live.cap.mode is chosen"),
		&cli.Float64Flag{
			Name: "stretch", DefaultText: "1.5",
			Usage: "`FACTOR` over first come, first served within which jobs without deadline end (max_turnaround)",
		},
		inputs.SeedFlag(),
	)
}

// runtimeFlags are about run times on GPU models, and about what is warned of.
func runtimeFlags(model string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: runtimeModelFlag, Usage: model},
		&cli.StringFlag{
			Name: speedFlag, Usage: "`SPEEDS` of GPU models beside each other, such as A100=1,H100=2.1: " +
				"where a run time isn't known on one, it follows from another's",
		},
		&cli.StringFlag{
			Name: warningsFlag, Usage: "`WHICH` warnings to print: kinds (one line each) or all", Value: "kinds",
			Action: func(_ *cli.Context, which string) error {
				if which != "kinds" && which != allWarnings {
					return terminal.Usagef("--%s %q, want kinds or %s", warningsFlag, which, allWarnings)
				}
				return nil
			},
		},
	}
}

// priorFlag has jobs without a model planned as others respond.
const priorFlag = "prior"

// capsFlag has power caps among the settings.
const capsFlag = "caps"

// runtimeModelFlag says on which GPU model run times were measured.
const runtimeModelFlag = "runtime-gpu-model"

// speedFlag says how fast GPU models are beside each other.
const speedFlag = "speed"

// warningsFlag says which warnings are printed; allWarnings is one of its values.
const (
	warningsFlag = "warnings"
	allWarnings  = "all"
)

type setup struct {
	config         *config.Config
	models         *config.Models   // nil: none
	profiles       *config.Profiles // that may be named; before configure, further ones or nil
	scaling        dvfsmodel.Range
	problem        *planner.Problem
	batch          *queue.Batch
	warnings       []error           // about the batch and what is planned with it
	slurmQueue     *slurmqueue.Batch // Slurm's queue, if that is planned
	nodePartitions [][]string        // partitions of node classes, where these are Slurm's; nil: they aren't
	paper          bool              // --cluster paper
	label          string            // of the batch in a comparison of several
	params         policy.Params
	flagParams     []string // numbers of the policy that flags say, such as theta
	seed           uint64
	searchTime     time.Duration // after which the search for a better plan stops; 0: when it is done
	queueAt        time.Time     // when Slurm's queue was what is planned; zero: it is a file
}

// newSetup reads the batch and everything that it is planned with.
func newSetup(t *terminal.Terminal, c *cli.Context, name string) (*setup, error) {
	s := &setup{paper: c.String("cluster") == "paper", seed: c.Uint64("seed")}
	if err := s.checkPaperFlags(c); err != nil {
		return nil, err
	}
	format, err := queue.ParseFormat(c.String("format"))
	if err != nil {
		return nil, terminal.Usagef("--format: %v", err)
	}
	if err := s.configure(t, c); err != nil {
		return nil, err
	}
	if s.models, err = inputs.ReadModels(t, c); err != nil {
		return nil, err
	}
	columns, err := inputs.BatchOptions(c, format)
	if err != nil {
		return nil, err
	}
	s.batch, err = terminal.ParseFile(t, name, func(r io.Reader, name string) (*queue.Batch, error) {
		return joblog.ReadBatch(r, name, format, columns)
	})
	if err != nil {
		return nil, fmt.Errorf("read batch: %w", inputs.WithColumnHint(err))
	}
	if !s.paper && !s.config.HasNodes() {
		missing := "no --cluster"
		if name := c.String("config"); name != "" {
			missing = name + " has no [[cluster.nodes]]"
		}
		k := s.config.Cluster().Classes[0]
		t.Notef("%s: as many nodes as it takes, each with %d %s", missing, k.GPUs, k.Model)
	}
	return s, nil
}

// checkPaperFlags reads the flags of the paper's cluster, which mean nothing
// on another one.
func (s *setup) checkPaperFlags(c *cli.Context) (err error) {
	for _, flag := range []string{"range", "gpus-per-node"} {
		if c.IsSet(flag) && !s.paper {
			return terminal.Usagef("--%s is a property of --cluster paper, want that too", flag)
		}
	}
	name := c.String("range")
	if name == "" {
		name = "wide"
	}
	if s.scaling, err = dvfsmodel.RangeByName(name); err != nil {
		return terminal.Usagef("--range: %v", err)
	}
	return nil
}

// setupProblem is setup with the problem joined, for commands with one cluster.
func setupProblem(t *terminal.Terminal, c *cli.Context, name string) (*setup, error) {
	s, err := newSetup(t, c, name)
	if err != nil {
		return nil, err
	}
	return withProblem(t, c, s)
}

func withProblem(t *terminal.Terminal, c *cli.Context, s *setup) (*setup, error) {
	for flag, to := range map[string]*float64{
		"theta": &s.params.Theta, "rho": &s.params.Rho,
		"effort": &s.params.Effort,
	} {
		if c.IsSet(flag) {
			*to, s.flagParams = c.Float64(flag), append(s.flagParams, flag)
		}
	}
	if effort := s.params.Effort; c.IsSet("effort") && !(effort > 0 && effort <= maxEffort) {
		return nil, terminal.Usagef("--effort %v, want a number above 0 and up to %d", effort, maxEffort)
	}
	if err := checkParams(s.params); err != nil {
		return nil, err
	}
	return s, s.join(t, c, c.Int("gpus-per-node"))
}

// maxEffort is the most that --effort may ask for: days, for a few hundred jobs.
const maxEffort = 10_000

func checkParams(p policy.Params) error {
	if !(p.Theta > 0 && p.Theta <= 1) {
		return terminal.Usagef("--theta %v, want a number above 0 and up to 1", p.Theta)
	}
	if !(p.Rho >= 0) {
		return terminal.Usagef("--rho %v, want 0 or more", p.Rho)
	}
	return nil
}

// configure reads configuration and cluster, and takes the policy's numbers.
func (s *setup) configure(t *terminal.Terminal, c *cli.Context) error {
	t.EveryWarning = c.String(warningsFlag) == allWarnings
	profiles, err := inputs.ReadProfiles(t, c.String("profiles"))
	if err != nil {
		return err
	}
	if s.profiles != nil {
		profiles = profiles.With(s.profiles)
	}
	s.profiles = profiles
	name := c.String("config")
	if cluster := c.String("cluster"); cluster != "" && !s.paper {
		if name != "" {
			return terminal.Usagef("--config and --cluster FILE are both given, want one: a configuration has " +
				"its cluster in it")
		}
		name = cluster
	}
	if name == "" {
		s.config = config.Default()
	} else {
		s.config, err = terminal.ParseFile(t, name, func(r io.Reader, name string) (*config.Config, error) {
			return config.Load(r, name, profiles)
		})
		if err != nil {
			return fmt.Errorf("read configuration: %w", err)
		}
		if c.String("config") == "" && !s.config.HasNodes() {
			return inputs.NoNodes(name)
		}
	}
	s.params = s.config.Policy.Params()
	return nil
}

// join makes the problem of batch, cluster and models.
func (s *setup) join(t *terminal.Terminal, c *cli.Context, gpusPerNode int) error {
	cluster, margins := s.config.Cluster(), join.Margins{
		Limit: s.config.Safety.LimitMargin, Deadline: s.config.Safety.DeadlineMargin,
	}
	if s.paper {
		if gpusPerNode < 1 || gpusPerNode > planner.MaxGPUs {
			return terminal.Usagef("--gpus-per-node %d, want 1 to %d", gpusPerNode, planner.MaxGPUs)
		}
		cluster, margins = config.PaperCluster(gpusPerNode), join.Margins{}
	}
	stretch := s.config.Safety.MaxTurnaround
	if c.IsSet("stretch") {
		stretch = c.Float64("stretch")
	}
	if !(stretch >= 1 && stretch <= config.MaxFactor) {
		return terminal.Usagef("--stretch %v, want 1 to %.0f", stretch, float64(config.MaxFactor))
	}
	if err := s.contention(t, c, &cluster); err != nil {
		return err
	}
	if _, err := s.runOn(c); err != nil {
		return err
	}
	known := inputs.NewCatalog(s.config.SiteProfiles(), s.models, &s.scaling)
	if c.Bool(priorFlag) {
		known.UsePrior()
	}
	if c.Bool(capsFlag) || !c.IsSet(capsFlag) && s.config.Live.Cap.IsChosenEverywhere() {
		known.UseCaps()
	}
	tasks, warnings, err := join.Tasks(s.batch, &cluster, known, margins)
	estimates := config.EstimateWarnings(&cluster, s.config.Profiles())
	s.warnings = slices.Concat(s.batch.Warnings, warnings, estimates)
	if c.Bool("from-slurm") { // nobody states power there, and a prediction or a limit is of wherever a job runs
		s.warnings = queue.WithoutWarnings(s.warnings, queue.WarnPower, queue.WarnRunTime)
	}
	t.Warn(s.warnings)
	if err != nil {
		return withRunTimeHint(err)
	}
	noteUnused(t, c, tasks)
	s.problem = &planner.Problem{Cluster: cluster, Tasks: tasks, Mode: planner.ModeOf(tasks)}
	goal := s.config.Goal()
	goal.Set(s.problem)
	if s.slurmQueue != nil {
		if err := s.slurmQueue.AddRunning(s.problem); err != nil {
			return err
		}
	}
	if s.problem.Mode == planner.Online && c.Bool("clairvoyant") {
		s.problem.Mode = planner.Clairvoyant
	}
	if err := s.setStart(c.String("start")); err != nil {
		return err
	}
	return policy.ImplyDue(c.Context, s.problem, stretch)
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
		t.Notef("--%s changes nothing: no job has a model of power caps on a GPU model whose limits are known, "+
			"for the power that it states", capsFlag)
	}
}

// withRunTimeHint adds to an error about run times of GPU models what a batch, or a flag, can say.
func withRunTimeHint(err error) error {
	var wrong interface{ Ways() string }
	if errors.As(err, &wrong) {
		return terminal.WithHint(err, wrong.Ways())
	}
	return err
}

// runOn says of which GPU model run times are where the batch doesn't, and how fast GPU models are: by the
// flags, else by the configuration.
func (s *setup) runOn(c *cli.Context) (model string, err error) {
	if s.batch.Speeds = s.config.Speeds(); c.IsSet(speedFlag) {
		if s.batch.Speeds, err = queue.ParseSpeeds(c.String(speedFlag)); err != nil {
			return "", terminal.Usagef("--%s: %v", speedFlag, err)
		}
	}
	for i := range s.batch.Speeds {
		profile, err := s.config.Profiles().Lookup(s.batch.Speeds[i].Model)
		if err != nil {
			return "", terminal.Usagef("--%s: %v", speedFlag, err)
		}
		s.batch.Speeds[i].Model = profile.Name
	}
	if model = s.config.RuntimeModel(); c.String(runtimeModelFlag) != "" {
		model = c.String(runtimeModelFlag)
		if _, err := s.config.Profiles().Lookup(model); err != nil && model != queue.AnyModel {
			return "", terminal.Usagef("--%s: %v", runtimeModelFlag, err)
		}
	}
	if model != "" {
		s.batch.RunOn(model)
	}
	return model, nil
}

// contention has the cluster count what sharing a GPU costs by the curve of
// --contention, or of the configuration.
func (s *setup) contention(t *terminal.Terminal, c *cli.Context, cluster *planner.Cluster) error {
	name := c.String("contention")
	if cluster.Sharing == nil {
		if name != "" {
			return terminal.Usagef("--contention is about GPUs that jobs share, and no nodes of the cluster have " +
				"share = true, want some or the flag left out")
		}
		return nil
	}
	if name == "" {
		name = s.config.Contention()
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

// withFileLocation adds to an error of a policy where the file says what it is about.
func withFileLocation(c *config.Config, err error) error {
	if wrong, ok := errors.AsType[*planner.ClassError](err); ok {
		if at := c.NodesAt(wrong.Class); at.Line > 0 {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return err
}

// setStart chooses the start rule: the flag's, the configuration's, or by mode
// on the paper's cluster.
func (s *setup) setStart(flag string) (err error) {
	switch {
	case flag != "":
		if s.problem.Start, err = planner.ParseStartRule(flag); err != nil {
			return terminal.Usagef("--start: %v", err)
		}
	case s.paper && s.problem.Mode == planner.Online:
		s.problem.Start = planner.StartSlot
	case !s.paper:
		s.problem.Start = s.config.Start(s.problem.Mode)
	}
	if s.problem.Start == planner.StartSlot && s.problem.Cluster.Slot == 0 {
		return terminal.Usagef("--start slot needs a cluster with slots, want slot_s above 0 in its [cluster]")
	}
	return nil
}

// policy reads a policy string; empty is the configuration's, or the best one.
func (s *setup) policy(text string) (*planner.Policy, error) {
	if text == "" {
		text = s.config.Policy.Offline
		if s.problem.Mode == planner.Online {
			text = s.config.Policy.Online
		}
	}
	if text == "" || text == config.Best {
		text = policy.DefaultName(s.problem.Mode)
	}
	p, err := inputs.ParsePolicy(text, s.params)
	if err != nil {
		return nil, err
	}
	return p, s.checkFlagUsed(text)
}

// checkFlagUsed reports a number that a flag says and the policy has no use for, or says
// itself.
func (s *setup) checkFlagUsed(text string) error {
	for _, flag := range s.flagParams {
		switch {
		case policy.HasOption(text, flag):
			return terminal.Usagef("--%s and policy %s both say %s, want it once", flag, text, flag)
		case !policy.AcceptsNumber(text, flag) && !(flag == "theta" && s.params.Theta == 1):
			return terminal.Usagef("--%s does nothing for policy %s, want it left out, or another policy: %s takes it",
				flag, text, policyTaking(flag))
		}
	}
	return nil
}

// policyTaking is a policy that a number acts on.
func policyTaking(flag string) string {
	if flag == "effort" {
		return policy.DefaultName(planner.Offline)
	}
	return "edl"
}

// references are what plans of the batch are held against: nothing on the paper's
// cluster, whose savings are against default clocks without any idle energy (EDL
// §5.3), whatever the schedule.
func (s *setup) references(ctx context.Context, of *planner.Policy) (r policy.References, err error) {
	if !s.paper {
		params := s.params
		params.AlwaysOn = planner.NeverSleeps(of.Park, &s.problem.Cluster)
		r, err = policy.NewReferences(ctx, s.problem, params)
	}
	return r, err
}

// resultOf is a plan with what it is held against.
func (s *setup) resultOf(plan *planner.Plan, against policy.References) *planreport.Result {
	r := &planreport.Result{
		Problem: s.problem, Plan: plan, Reference: against.FCFS, Easy: against.Easy,
		Constant: against.Constant, AlwaysOn: against.AlwaysOn,
		Bound: bound.Of(s.problem, plan), QueueAt: s.queueAt,
	}
	if r.Baseline = planner.DefaultEnergy(s.problem, plan); against.FCFS != nil {
		r.Baseline = against.FCFS.Ledger.Total()
	}
	return r
}
