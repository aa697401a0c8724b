package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/queuereport"
	"github.com/epplan/epplan/planner/policy"
)

func tuneCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "tune",
		Usage:     "choose the numbers of a policy for queues: kappa, gamma, perkwh and so on",
		ArgsUsage: "[QUEUE]",
		Description: "Plays queues for two GPU types by a policy with each of several numbers and compares " +
			"the sums with policy\n" +
			"simple's. The queues are drawn like those of the PREDICT paper, or one is given (see epplab\n" +
			"plan), and --cluster FILE:NAME says what it runs on. Without --try a usual list is tried for greedy, value,\n" +
			"posted-price and lookahead.\n" +
			"Example: epplab tune --policy value --energy-model independent --objective both\n" +
			"Example: epplab tune --policy value examples/two-types/queue.csv --cluster " +
			"examples/two-types/clusters.csv:small --try kappa=0,1e-7,1e-6,1e-5",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "policy", Aliases: []string{"p"},
				Usage: "the `POLICY` to tune, with what isn't to change", Value: "value",
			},
			&cli.StringSliceFlag{
				Name: "try", DefaultText: "a usual list",
				Usage: "`KEY=VALUE,VALUE…`; repeat it for more keys: all combinations are tried",
			},
			&cli.StringFlag{
				Name: "objective", Usage: "`SUM` to be least: energy, wait, or both, each against simple",
				Value: "both",
			},
			&cli.Float64Flag{
				Name: "longest", DefaultText: "any",
				Usage: "`FACTOR` by which no job may wait longer than the longest wait under " +
					"simple, in any queue",
			},
			energyModelFlag(),
			terminal.Between(&cli.IntFlag{
				Name: "draws", Usage: "`COUNT` of queues to draw", Value: drawsToTune,
			}, 1, maxDraws),
			&cli.StringFlag{
				Name: "cluster", Usage: "GPUs of QUEUE: `FILE:NAME`, a table of clusters and which one it is",
			},
			setup.ModelsFlag("`FILE` with models of the job types, for --try stretch=…; repeat it for more",
				"clocks aren't chosen"),
			setup.ProfilesFlag(),
			setup.SeedFlag(), terminal.JSONFlag(),
		},
		Action: t.Runs(terminal.WithArgs(0, 1, "one queue or none", runTune)),
	}
}

// The queues that are drawn unless told otherwise, and what may be asked for.
const (
	drawsToTune = 20
	maxDraws    = 10_000
	maxTrials   = 10_000
)

func runTune(t *terminal.Terminal, c *cli.Context) error {
	score, ok := objectives[c.String("objective")]
	if !ok {
		return terminal.Usagef("--objective %q, want energy, wait or both", c.String("objective"))
	}
	if longest := c.Float64("longest"); c.IsSet("longest") && !(longest > 0) {
		return terminal.Usagef("--longest %v, want a number above 0", longest)
	}
	queues, err := queuesToTune(t, c)
	if err != nil {
		return err
	}
	tried, err := trialPolicies(c)
	if err != nil {
		return err
	}
	progress := report.NewProgress(t.Stderr, t.Progress, time.Now, "tune", (len(tried)+1)*len(queues))
	r := tuningReport{
		Policy: c.String("policy"), Objective: c.String("objective"), EnergyModel: queues[0].model.String(),
		Queues: len(queues),
	}
	r.Tried, err = tryAll(c.Context, queues, tried, func() { progress.Add(1) })
	progress.Finish()
	if err != nil {
		return err
	}
	if r.choose(score, c.Float64("longest")); r.Chosen == "" {
		t.Warningf("with none of these does every job wait for less than %v times the longest wait "+
			"under simple", c.Float64("longest"))
	}
	return terminal.PrintAnswer(t, c, &r, func(r *tuningReport) string { return r.text(t.TextOptions(-1)) })
}

func queuesToTune(t *terminal.Terminal, c *cli.Context) ([]*knapsackQueue, error) {
	if c.NArg() == 1 {
		if c.IsSet("draws") {
			return nil, terminal.Usagef(
				"--draws counts drawn queues, want it left out with a queue of your own",
			)
		}
		q, err := readKnapsackQueue(t, c)
		return []*knapsackQueue{q}, err
	}
	if c.IsSet("cluster") {
		return nil, terminal.Usagef("--cluster is for a queue of your own, want a QUEUE too")
	}
	model, err := energyModel(c)
	if err != nil {
		return nil, err
	}
	queues := make([]*knapsackQueue, c.Int("draws"))
	for i := range queues {
		rng := rand.New(rand.NewPCG(c.Uint64("seed"), uint64(i)))
		if queues[i], err = drawQueue(rng, model); err != nil {
			return nil, err
		}
		if err := enableClocks(t, c, queues[i]); err != nil {
			return nil, err
		}
	}
	return queues, nil
}

// defaultGrid are the numbers that are tried by policy, as --try takes them.
var defaultGrid = map[string][]string{ //nolint:gochecknoglobals // constant
	"greedy":       {"gamma=0,1e2,1e3,1e4,3e4,1e5,1e6,1e8"},
	"value":        {"kappa=0,1e-9,3e-9,1e-8,3e-8,1e-7,3e-7,1e-6,3e-6,1e-5,1e-4"},
	"posted-price": {"base=3,4,8", "perday=0,0.1,0.3,1,3", "price=0,0.1,0.3,1", "steepness=1,2,4"},
	"lookahead":    {"weight=0.1,0.2,0.4,0.6,0.8,1.2"},
}

// trialPolicies returns the policies to try: the one that is named with all combinations of
// the values of keys.
func trialPolicies(c *cli.Context) ([]string, error) {
	base, lists := c.String("policy"), c.StringSlice("try")
	if len(lists) == 0 {
		name, _, _ := strings.Cut(base, ",")
		if lists = defaultGrid[name]; lists == nil {
			return nil, terminal.Usagef("there is no usual list for policy %s, want --try KEY=VALUE,VALUE…",
				name)
		}
	} else {
		lists = rejoinValues(lists)
	}
	all := []string{base}
	for _, list := range lists {
		key, values, ok := strings.Cut(list, "=")
		if !ok {
			return nil, terminal.Usagef("--try %q, want KEY=VALUE,VALUE…", list)
		}
		var next []string
		for _, text := range all {
			for value := range strings.SplitSeq(values, ",") {
				next = append(next, text+","+key+"="+value)
			}
		}
		if all = next; len(all) > maxTrials {
			return nil, terminal.Usagef("more than %d combinations to try, want fewer", maxTrials)
		}
	}
	for _, text := range all {
		if _, err := setup.ParsePolicy(text, policy.DefaultParams()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// rejoinValues undoes that the values of a repeatable flag are split at commas.
func rejoinValues(parts []string) (lists []string) {
	for _, part := range parts {
		if n := len(lists); n > 0 && !strings.Contains(part, "=") {
			lists[n-1] += "," + part
		} else {
			lists = append(lists, part)
		}
	}
	return lists
}

// tuningReport is what was tried on queues, and what is chosen.
type tuningReport struct {
	Policy      string        `json:"policy"`
	Objective   string        `json:"objective"`
	EnergyModel string        `json:"energy_model"`
	Queues      int           `json:"queues"`
	Chosen      string        `json:"chosen,omitempty"` // policy string; empty: none keeps the limit
	Tried       []trialResult `json:"tried"`
}

// trialResult is a policy and what it comes to: sums over all queues as parts of
// simple's, and the longest wait as a multiple of simple's in the same queue,
// whichever is the largest.
type trialResult struct {
	Policy  string  `json:"policy"`
	Energy  float64 `json:"energy_ratio"`
	Wait    float64 `json:"wait_ratio"`
	Longest float64 `json:"longest_wait_ratio"`
}

// objectives are the sums that are made least by name.
var objectives = map[string]func(*trialResult) float64{ //nolint:gochecknoglobals // constant
	"energy": func(x *trialResult) float64 { return x.Energy },
	"wait":   func(x *trialResult) float64 { return x.Wait },
	"both":   func(x *trialResult) float64 { return x.Energy + x.Wait },
}

// choose picks what scores least among what keeps the limit on the longest wait;
// 0: no limit.
func (r *tuningReport) choose(score func(*trialResult) float64, longest float64) {
	least := math.Inf(1)
	for i := range r.Tried {
		x := &r.Tried[i]
		if s := score(x); s < least && (longest == 0 || x.Longest <= longest) {
			least, r.Chosen = s, x.Policy
		}
	}
}

// tryAll plays every queue by every policy and by simple, as many at a time as
// there are processors.
func tryAll(
	ctx context.Context, queues []*knapsackQueue, policies []string, done func(),
) ([]trialResult, error) {
	policies = append([]string{queues[0].referencePolicy()}, policies...)
	sums, err := playAll(ctx, queues, policies, done)
	if err != nil {
		return nil, err
	}
	all := make([]trialResult, 0, len(policies)-1)
	for list := range slices.Chunk(sums[len(queues):], len(queues)) {
		all = append(all, againstSimple(policies[1+len(all)], list, sums[:len(queues)]))
	}
	return all, nil
}

func againstSimple(name string, ours, simple []*queuereport.Sum) trialResult {
	var a, b queuereport.Sum
	x := trialResult{Policy: name}
	for i := range ours {
		a.EnergyKWh, a.TotalWait = a.EnergyKWh+ours[i].EnergyKWh, a.TotalWait+ours[i].TotalWait
		b.EnergyKWh, b.TotalWait = b.EnergyKWh+simple[i].EnergyKWh, b.TotalWait+simple[i].TotalWait
		x.Longest = max(x.Longest, ratioOrOne(ours[i].LongestWait, simple[i].LongestWait))
	}
	x.Energy, x.Wait = ratioOrOne(a.EnergyKWh, b.EnergyKWh), ratioOrOne(a.TotalWait, b.TotalWait)
	return x
}

// ratioOrOne is 1 where there is nothing to compare with.
func ratioOrOne(ours, simple float64) float64 {
	if simple == 0 {
		return 1
	}
	return ours / simple
}

// text returns a row for each policy, the best first, and the chosen one.
func (r *tuningReport) text(opts *report.TextOptions) string {
	rows := slices.Clone(r.Tried)
	score := objectives[r.Objective]
	slices.SortStableFunc(rows, func(a, b trialResult) int { return cmp.Compare(score(&a), score(&b)) })
	percent := func(x float64) report.Value { return report.Text(fmt.Sprintf("%+.1f %%", 100*(x-1))) }
	text := report.TableOf(rows, func(row *report.Row, x *trialResult) {
		row.Add(report.Column{Head: "policy", Left: true}, report.Text(x.Policy))
		row.Add(report.Column{Head: "energy", Note: "against simple"}, percent(x.Energy))
		row.Add(report.Column{Head: "waiting", Note: "against simple"}, percent(x.Wait))
		row.Add(report.Column{Head: "longest wait", Note: "× simple's"},
			report.Text(strconv.FormatFloat(x.Longest, 'f', 2, 64)))
	}).Text(opts)
	if r.Chosen != "" {
		text += fmt.Sprintf("\nChosen   %s (least %s over %s, %s energy)\n", r.Chosen,
			objectiveNames[r.Objective], report.Plural(r.Queues, "queue"), r.EnergyModel)
	}
	return text
}

// objectiveNames are the objectives in words.
var objectiveNames = map[string]string{
	"energy": "energy",
	"wait":   "waiting",
	"both":   "energy and waiting together",
} //nolint:gochecknoglobals // constant
