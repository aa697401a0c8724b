package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/score"
)

// departureFlags returns those that go with --departures only, and it.
func departureFlags() []cli.Flag {
	return []cli.Flag{
		terminal.BoolFlag("departures",
			"let tasks leave: stays of the trace, resampled as a Poisson stream for each of --loads"),
		&cli.DurationFlag{
			Name:  "horizon",
			Usage: "`TIME` that is observed after a warm-up as long; longer stays are cut to it",
			Value: 6 * time.Hour,
		},
		&cli.StringFlag{
			Name: "park", Usage: "after how many `SECONDS` without tasks nodes sleep, or never; several " +
				"separated by commas", Value: "never,300",
		},
		&cli.DurationFlag{
			Name: "wake-delay", Usage: "`TIME` that waking a node takes", Value: 2 * time.Minute,
		},
		&cli.StringFlag{
			Name: "pick", Usage: "`ORDER` in which tasks that wait are offered: fcfs or largest",
			Value: "fcfs",
		},
		terminal.BoolFlag("raw", "arrivals and stays just as the trace has them, instead of resampled ones"),
	}
}

// departureOnlyFlags are the flags that need --departures, and those that don't go with
// it.
var departureOnlyFlags, inflationOnlyFlags = []string{"horizon", "park", "wake-delay", "pick", "raw"},
	[]string{"load", "arrivals", "curve", "decisions", "svg", "batch"}

// checkMode refuses flags that mean nothing with or without --departures.
func checkMode(c *cli.Context) error {
	wrong, why := departureOnlyFlags, "is a property of --departures, want that too"
	if c.Bool("departures") {
		wrong, why = inflationOnlyFlags, "is for tasks that never leave, want no --departures"
	}
	if err := terminal.Refuse(c, why, wrong...); err != nil {
		return err
	}
	if c.Bool("raw") && (c.IsSet("loads") || c.IsSet("seeds") || c.IsSet("horizon")) {
		return terminal.Usagef("--raw is the trace as it is, want no --loads, --seeds and --horizon")
	}
	return nil
}

// departures is a comparison of placements and sleep on streams of tasks that
// come and go.
type departures struct {
	in        inflation // the trace, placements and seeds
	durations []replay.RecordedTask
	horizon   float64
	delay     float64
	parks     []sleepRule
	pick      func(*planner.View, planner.Placer) planner.Picker
	raw       bool
	runsOf    []departureRun // rows of the table, seeds inside
}

// sleepRule is when nodes sleep, as it was written.
type sleepRule struct {
	name string
	rule planner.Parker
}

func (s *sleepRule) isNever() bool { return s.name == parkNever }

const parkNever = "never"

// departureRun is a placement at a load with a rule for sleep, run on every seed.
type departureRun struct {
	policy, load, park int
	passages           []replay.StreamResult
}

const defaultDepartureLoads = "0.5,0.8,0.95"

func replayDepartures(t *terminal.Terminal, c *cli.Context) error {
	d, err := parseDepartures(t, c)
	if err != nil {
		return err
	}
	passages, err := eachPart(t, c, d.parts(c.Int("jobs")))
	if err != nil {
		return err
	}
	for i := range passages {
		seeds := len(d.in.seeds)
		d.runsOf[i/seeds].passages[i%seeds] = passages[i]
	}
	return t.WithHTML(c, func(w io.Writer) error { return writeDeparturesPage(t, w, d) },
		func() error { return t.PrintTable(c, d.table()) })
}

func parseDepartures(t *terminal.Terminal, c *cli.Context) (*departures, error) {
	d := &departures{
		horizon: c.Duration("horizon").Seconds(), delay: c.Duration("wake-delay").Seconds(),
		raw: c.Bool("raw"),
	}
	if !(d.horizon > 0) || d.delay < 0 {
		return nil, terminal.Usagef(
			"--horizon %v and --wake-delay %v, want a horizon above 0 and no delay below",
			c.Duration("horizon"),
			c.Duration("wake-delay"),
		)
	}
	names := []string{"fgd", "pwr", "pwr+fgd:0.1", policy.DefaultPlacement}
	if c.IsSet("policy") {
		names = splitPlacements(c.StringSlice("policy"))
	}
	var err error
	if d.in, err = readRuns(c, names); err != nil {
		return nil, err
	}
	if err := d.readRules(c); err != nil {
		return nil, err
	}
	files, err := traceNamesOf(c)
	if err != nil {
		return nil, err
	}
	if err := d.in.read(t, files); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(d.in.trace.kinds, func(k *fleet.Kind) bool { return k.GPUs == 0 }); i >= 0 {
		return nil, terminal.WithHint(
			fmt.Errorf("%s: node %.40q has no GPU, want GPUs in all nodes for --departures", files.nodes,
				d.in.trace.rows[i].Name),
			"without --departures nodes may have CPUs alone")
	}
	d.listRuns()
	return d, d.readDurations(t, files.pods)
}

// readRules reads loads, and how tasks are picked and nodes parked.
func (d *departures) readRules(c *cli.Context) (err error) {
	loads := defaultDepartureLoads
	if c.IsSet("loads") {
		loads = c.String("loads")
	}
	if d.in.loads, err = readLoads(loads); err != nil {
		return err
	}
	if d.raw {
		d.in.loads = []float64{math.NaN()}
	}
	switch c.String("pick") {
	case "fcfs":
		d.pick = pick.FCFS
	case "largest":
		d.pick = pick.Largest{Bound: pick.DayBound}.New
	default:
		return terminal.Usagef("--pick is %q, want fcfs or largest", c.String("pick"))
	}
	for text := range strings.SplitSeq(c.String("park"), ",") {
		rule := sleepRule{strings.TrimSpace(text), park.Never{}}
		if !rule.isNever() {
			seconds, err := strconv.ParseFloat(rule.name, 64)
			if err != nil || !(seconds >= 0) || math.IsInf(seconds, 0) {
				return terminal.Usagef("--park: %q, want seconds, 0 or more, or never", rule.name)
			}
			rule.rule = park.DRS{Rho: seconds}
		}
		if slices.ContainsFunc(d.parks, func(other sleepRule) bool { return other.name == rule.name }) {
			return terminal.Usagef("--park: %s is given twice", rule.name)
		}
		d.parks = append(d.parks, rule)
	}
	return nil
}

func (d *departures) listRuns() {
	for load := range d.in.loads {
		for parked := range d.parks {
			for p := range d.in.policies {
				d.runsOf = append(d.runsOf, departureRun{
					p, load, parked, make([]replay.StreamResult, len(d.in.seeds)),
				})
			}
		}
	}
}

// readDurations takes the stays of the tasks that were scheduled.
func (d *departures) readDurations(t *terminal.Terminal, name string) error {
	never := 0
	for i := range d.in.trace.pods {
		p := &d.in.trace.pods[i]
		if math.IsNaN(p.Deleted - p.Scheduled + p.Created) {
			never++
			continue
		}
		d.durations = append(d.durations, replay.RecordedTask{
			Demand: p.Demand, Arrived: p.Created, Seconds: p.Deleted - p.Scheduled,
		})
	}
	if len(d.durations) == 0 {
		return terminal.WithHint(
			fmt.Errorf("%s: no task has creation_time, deletion_time and scheduled_time, which --departures "+
				"needs", name),
			"without --departures times aren't needed")
	}
	_, unfit, span, err := replay.AsRecorded(d.durations, d.in.trace.kinds)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if d.raw && span == 0 {
		return fmt.Errorf("%s: all tasks arrive at the same time, want some time between them for --raw",
			name)
	}
	if never > 0 {
		t.Notef("%s: %s of %s tasks were never scheduled, and are left out", d.in.label,
			report.FormatCount(never), report.FormatCount(len(d.in.trace.pods)))
	}
	if unfit > 0 {
		t.Notef("%s: %s of %s tasks fit on no empty node or took no time, and are left out", d.in.label,
			report.FormatCount(unfit), report.FormatCount(len(d.durations)))
	}
	return nil
}

// parts returns the rows of the table, each on every seed.
func (d *departures) parts(atOnce int) *terminal.PartedWork[replay.StreamResult] {
	w := &terminal.PartedWork[replay.StreamResult]{Label: "replay", AtOnce: atOnce}
	for i := range d.runsOf {
		r := &d.runsOf[i]
		for _, seed := range d.in.seeds {
			w.Names = append(
				w.Names,
				fmt.Sprintf("policy %s, load %v, park %s, seed %d", d.in.policies[r.policy].Name,
					d.in.loads[r.load], d.parks[r.park].name, seed),
			)
		}
	}
	w.Do = func(ctx context.Context, i int) (replay.StreamResult, error) {
		r, seed := &d.runsOf[i/len(d.in.seeds)], d.in.seeds[i%len(d.in.seeds)]
		passage, err := d.play(ctx, r, seed)
		if err != nil {
			return replay.StreamResult{}, fmt.Errorf("policy %s, seed %d: %w", d.in.policies[r.policy].Name,
				seed, err)
		}
		return *passage, nil
	}
	return w
}

// play returns one run. Runs of the same load and seed get the same stream.
func (d *departures) play(ctx context.Context, r *departureRun, seed uint64) (*replay.StreamResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := replay.StreamRun{
		Kinds:    d.in.trace.kinds,
		Workload: d.in.workload,
		Park:     d.parks[r.park].rule,
		Pick:     d.pick,
		Delay:    d.delay,
		Chooser: func(m fleet.Workload, state *fleet.State) score.Chooser {
			return d.in.policies[r.policy].Chooser(m, state, seed)
		},
		From: d.horizon,
		To:   2 * d.horizon,
	}
	var tasks []planner.Task
	var err error
	if d.raw {
		s.From = 0
		tasks, _, s.To, err = replay.AsRecorded(d.durations, d.in.trace.kinds)
	} else {
		traffic := replay.Traffic{Load: d.in.loads[r.load], Horizon: d.horizon}
		tasks, _, err = traffic.Arrivals(d.durations, d.in.trace.kinds, rand.New(rand.NewPCG(seed, seed)))
	}
	if err != nil {
		return nil, err
	}
	return s.Run(ctx, tasks)
}
