package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
)

// planningFlags are the flags of every command that plans a batch.
func planningFlags() []cli.Flag {
	return append(problemFlags(),
		&cli.IntFlag{Name: "gpus-per-node", Usage: "pairs per node of --cluster paper", Value: 1},
		&cli.StringFlag{Name: "policy", Aliases: []string{"p"}, Usage: "NAME[:THETA][,KEY=VALUE]…; epplan compare --help lists them (default: the best one)"},
		&cli.Float64Flag{Name: "theta", Usage: "shortest time by θ-readjustment, as part of the optimum's (default 1)"},
		&cli.Float64Flag{Name: "rho", Usage: "slots that an idle node waits before it goes off (default 2)"},
	)
}

// problemFlags are the flags that say what is to be planned.
func problemFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "format", Usage: "of the batch: auto, csv, json or edl", Value: "auto"},
		&cli.StringFlag{Name: "config", Usage: "TOML `FILE` with cluster, objective, policy and safety margins"},
		&cli.StringFlag{Name: "cluster", Usage: "TOML `FILE` with the cluster, or paper: the EDL paper's"},
		&cli.StringFlag{Name: "models", Usage: "TOML `FILE` with fitted workload models"},
		&cli.StringFlag{Name: "profiles", Usage: "TOML `FILE` with further GPU models"},
		&cli.StringFlag{Name: "range", Usage: "scaling interval of --cluster paper: wide or narrow", Value: "wide"},
		&cli.StringFlag{Name: "start", Usage: "when queued jobs start: slot or continuous (default: slot online)"},
		&cli.BoolFlag{Name: "clairvoyant", Usage: "use all jobs from the start, also those that arrive later"},
		&cli.Float64Flag{Name: "stretch", Usage: "jobs without deadline end within this multiple of first come, first served (default 1.5)"},
		seedFlag(),
	}
}

// setup is what a planning command works on.
type setup struct {
	config  *config.Config
	problem *planner.Problem
	batch   *queue.Batch
	paper   bool // --cluster paper
	params  policy.Params
	seed    uint64
}

// setup reads the batch and everything that it is planned with.
func (t *terminal) setup(c *cli.Context, name string) (*setup, error) {
	s := &setup{paper: c.String("cluster") == "paper", seed: c.Uint64("seed")}
	if err := s.configure(c); err != nil {
		return nil, err
	}
	format, err := queue.ParseFormat(c.String("format"))
	if err != nil {
		return nil, usagef("--format: %v", err)
	}
	err = t.read(name, func(r io.Reader, name string) error {
		s.batch, err = queue.Read(r, name, format)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read batch: %w", err)
	}
	t.warn(s.batch.Warnings)
	return s, nil
}

// plannable is setup with the problem joined, for commands with one cluster.
func (t *terminal) plannable(c *cli.Context, name string) (*setup, error) {
	s, err := t.setup(c, name)
	if err != nil {
		return nil, err
	}
	if c.IsSet("theta") {
		s.params.Theta = c.Float64("theta")
	}
	if c.IsSet("rho") {
		s.params.Rho = c.Float64("rho")
	}
	if !(s.params.Theta > 0 && s.params.Theta <= 1) {
		return nil, usagef("--theta %v, want a number above 0 and up to 1", s.params.Theta)
	}
	if !(s.params.Rho >= 0) {
		return nil, usagef("--rho %v, want 0 or more", s.params.Rho)
	}
	return s, s.join(t, c, c.Int("gpus-per-node"))
}

// configure reads configuration and cluster, and takes the policy's numbers.
func (s *setup) configure(c *cli.Context) error {
	profiles, err := readProfiles(c.String("profiles"))
	if err != nil {
		return err
	}
	s.config = config.Default()
	for _, flag := range []string{"config", "cluster"} {
		name := c.String(flag)
		if name == "" || (flag == "cluster" && s.paper) {
			continue
		}
		if flag == "cluster" && c.IsSet("config") {
			return usagef("--config and --cluster FILE are both given, want one: a configuration has its cluster in it")
		}
		loaded, err := config.LoadFile(name, profiles)
		if err != nil {
			return fmt.Errorf("read configuration: %w", err)
		}
		s.config = loaded
	}
	s.params = s.config.Policy.Params()
	return nil
}

// join makes the problem of batch, cluster and models.
func (s *setup) join(t *terminal, c *cli.Context, gpusPerNode int) error {
	scaling, err := dvfsmodel.RangeByName(c.String("range"))
	if err != nil {
		return usagef("--range: %v", err)
	}
	cluster, margins := s.config.Cluster(), planner.Margins{Limit: s.config.Safety.LimitMargin, Deadline: s.config.Safety.DeadlineMargin}
	if s.paper {
		if gpusPerNode < 1 || gpusPerNode > planner.MaxGPUs {
			return usagef("--gpus-per-node %d, want 1 to %d", gpusPerNode, planner.MaxGPUs)
		}
		cluster, margins = config.PaperCluster(gpusPerNode), planner.Margins{}
	}
	var models *config.Models
	if name := c.String("models"); name != "" {
		if models, err = config.ReadModelsFile(name); err != nil {
			return fmt.Errorf("read models: %w", err)
		}
	}
	tasks, warnings, err := planner.Join(s.batch, &cluster, newCatalog(s.config.Profiles(), models, &scaling), margins)
	if err != nil {
		return err
	}
	t.warn(warnings)
	s.problem = &planner.Problem{Cluster: cluster, Tasks: tasks, Mode: planner.ModeOf(tasks), Objective: s.config.Objective()}
	if s.problem.Mode == planner.Online && c.Bool("clairvoyant") {
		s.problem.Mode = planner.Clairvoyant
	}
	if err := s.setStart(c.String("start")); err != nil {
		return err
	}
	stretch := s.config.Safety.Stretch
	if c.IsSet("stretch") {
		stretch = c.Float64("stretch")
	}
	if !(stretch >= 1) {
		return usagef("--stretch %v, want 1 or more", stretch)
	}
	return policy.ImplyDue(c.Context, s.problem, stretch)
}

// setStart chooses the start rule: the flag's, the configuration's, or by mode
// on the paper's cluster.
func (s *setup) setStart(flag string) (err error) {
	switch {
	case flag != "":
		if s.problem.Start, err = planner.ParseStartRule(flag); err != nil {
			return usagef("--start: %v", err)
		}
	case s.paper && s.problem.Mode == planner.Online:
		s.problem.Start = planner.StartSlot
	case !s.paper:
		s.problem.Start = s.config.Start(s.problem.Mode)
	}
	if s.problem.Start == planner.StartSlot && s.problem.Cluster.Slot == 0 {
		return usagef("--start slot needs a cluster with slots, want slot_s above 0 in its [cluster]")
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
		text = policy.Best(s.problem.Mode)
	}
	p, err := policy.Parse(text, s.params)
	if err != nil {
		return nil, &usageError{msg: err.Error(), hint: "epplan compare --help lists the policies"}
	}
	return p, nil
}

// baseline is the energy that savings are stated against: every job at its
// default clocks, on the paper's cluster without any idle energy (EDL §5.3),
// on others scheduled first come, first served.
func (s *setup) baseline(ctx context.Context, plan *planner.Plan) (dvfsmodel.Joule, error) {
	if s.paper {
		return planner.DefaultEnergy(s.problem, plan), nil
	}
	fcfs, err := policy.Parse("baseline", s.params)
	if err != nil {
		return 0, err
	}
	base, err := planner.Solve(ctx, s.problem, fcfs, nil)
	if err != nil {
		return 0, fmt.Errorf("baseline: %w", err)
	}
	return base.Ledger.Total(), nil
}
