package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/queuereport"
	"github.com/epplan/epplan/lab/reproduction"
	"github.com/epplan/epplan/lab/trace"
)

func reproducePredictCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name: "predict",
		Usage: "the PREDICT paper: waiting, running time and energy of tables 1 and 2, under its energy " +
			"model and a physical one",
		Description: "Queues for two GPU types are played by the Simple rule and by the value rule. They " +
			"are drawn like the paper's,\n" +
			"which publishes none, or read from the folder of --data (clusters.csv and a file for each of its rows).\n" +
			"Table 2's weights are tuned on --tuning queues drawn apart. In the paper's model a job's energy has nothing to\n" +
			"do with its run time (independent); in the physical one it follows from it (coupled). What the paper's text and\n" +
			"numbers don't say alike is noted; lab/docs/papers.md has more.\n" +
			"Example: epplab reproduce predict --only table1 --instances 10",
		Flags: append(exhibitFlags(&paperPredict),
			&cli.StringFlag{
				Name: "data", DefaultText: "drawn queues", Usage: "`FOLDER` with clusters.csv and the queues",
			},
			terminal.Between(&cli.IntFlag{
				Name: "instances", Usage: "`COUNT` of queues to draw", Value: paperInstances,
			}, 1, maxInstances),
			terminal.Between(&cli.IntFlag{
				Name: "tuning", Usage: "`COUNT` of queues to tune table 2's weights on", Value: paperTuning,
			}, 1, maxInstances),
			setup.SeedFlag()),
		Action: t.Runs(terminal.WithoutArgs(runReproducePredict)),
	}
}

// The paper's numbers of queues: to average over, and to tune on.
const (
	paperInstances = 100
	paperTuning    = 50
	maxInstances   = 10_000
)

var paperPredict = paper{ //nolint:gochecknoglobals // constant
	reproduction.Paper{
		Name: "predict", Title: "PREDICT: predictive decisions for queues on two GPU types",
		Page: "lab/docs/papers/predict.md", Sections: predictSections,
	},
	computePredict,
}

var predictSections = []string{"table1", "table2", "figure4", "power"}

func runReproducePredict(t *terminal.Terminal, c *cli.Context) error {
	if err := checkFolder(c, "data"); err != nil {
		return err
	}
	if c.String("data") != "" && c.IsSet("instances") {
		return terminal.Usagef("--instances counts drawn queues, want it left out with --data")
	}
	return reproduceOne(t, c, &paperPredict, &reproducer{
		predictDir:     c.String("data"),
		reproduceScale: reproduceScale{instances: c.Int("instances"), tuning: c.Int("tuning")},
	})
}

// computePredict plays the queues under both energy models.
func computePredict(ctx context.Context, r *reproducer) (*reproduction.Result, error) {
	findings := slices.DeleteFunc(predictFindings(r.sections), func(f predictFinding) bool {
		return !slices.ContainsFunc(f.byModel(), func(one reproduction.Finding) bool { return r.keep(&one) })
	})
	var notes []string
	for _, model := range []trace.EnergyModel{trace.Independent, trace.Coupled} {
		p := predictReproduction{model: model, seed: r.seed, tuning: r.tuning}
		if err := p.loadQueues(r); err != nil {
			return nil, err
		}
		if err := p.measureFindings(ctx, r.count, findings); err != nil {
			return nil, fmt.Errorf("%s energy: %w", model, err)
		}
		notes = append(notes, p.notes()...)
	}
	found := r.result(predictFigures(findings))
	found.Table = predictTable(r.paper, findings)
	found.Notes = append(notes, paperDisagreements(r.sections)...)
	return found, nil
}

type predictReproduction struct {
	model  trace.EnergyModel
	seed   uint64
	tuning int
	tests  []*knapsackQueue
	kappas map[string]float64 // tuned, by what for
}

// loadQueues draws the queues, or reads them.
func (p *predictReproduction) loadQueues(r *reproducer) (err error) {
	dir := r.predictDir
	if dir == "" {
		p.tests, err = p.drawQueues(r.instances, testStream)
		return err
	}
	pools, err := terminal.ParseFile(r.t, filepath.Join(dir, "clusters.csv"), trace.ReadKnapsackPools)
	if err != nil {
		return fmt.Errorf("read clusters: %w", err)
	}
	for i := range pools {
		name := filepath.Join(dir, filepath.Base(pools[i].Name)+".csv")
		jobs, err := readKnapsackJobs(r.t, name, p.model)
		if err != nil {
			return err
		}
		q, err := newKnapsackQueue(p.model, jobs, &pools[i])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.tests = append(p.tests, q)
	}
	return nil
}

// Streams of random numbers that follow from one seed.
const (
	testStream = iota + 1
	tuningStream
)

// drawQueues draws queues: from a seed and a stream always the same ones.
func (p *predictReproduction) drawQueues(count int, stream uint64) (list []*knapsackQueue, err error) {
	list = make([]*knapsackQueue, count)
	for i := range list {
		rng := rand.New(rand.NewPCG(p.seed, stream*maxInstances+uint64(i)))
		if list[i], err = drawQueue(rng, p.model); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// meansByPolicy plays queues by policies and returns each policy's mean over them.
func meansByPolicy(
	ctx context.Context, queues []*knapsackQueue, policies []string, done func(),
) ([]queueMeans, error) {
	sums, err := playAll(ctx, queues, policies, done)
	if err != nil {
		return nil, err
	}
	all := make([]queueMeans, len(policies))
	for i, s := range sums {
		all[i/len(queues)].add(s, float64(len(queues)))
	}
	return all, nil
}

// queueMeans is what a queue comes to, by policy the mean over queues.
type queueMeans struct{ wait, delayed, running, kWh float64 }

func (m *queueMeans) add(s *queuereport.Sum, of float64) {
	m.wait += s.TotalWait / of
	m.delayed += float64(s.Delayed) / of
	m.running += s.Running / of
	m.kWh += s.EnergyKWh / of
}

// tune finds, for each of the paper's three aims, the weight of a kWh with which
// the value rule does best on queues of their own.
func (p *predictReproduction) tune(ctx context.Context, done func()) error {
	queues, err := p.drawQueues(p.tuning, tuningStream)
	if err != nil {
		return err
	}
	grid := kappaGrid()
	found, err := meansByPolicy(ctx, queues, terminal.TextsOf(grid, valueWith), done)
	if err != nil {
		return err
	}
	p.kappas = make(map[string]float64)
	for aim, of := range map[string]func(*queueMeans) float64{
		aimWait:    func(m *queueMeans) float64 { return m.wait },
		aimRunning: func(m *queueMeans) float64 { return m.running },
		aimEnergy:  func(m *queueMeans) float64 { return m.kWh },
	} {
		best := 0
		for i := range found {
			if of(&found[i]) < of(&found[best]) {
				best = i
			}
		}
		p.kappas[aim] = grid[best]
	}
	return nil
}

// kappaGrid returns the weights that are tried: none, and thirty a factor of 1.6
// apart around 1/(GPUs·s) per kWh.
func kappaGrid() []float64 {
	const tried, first, factor = 30, 1e-9, 1.6
	grid := make([]float64, 1, tried+1)
	for i := range tried {
		grid = append(grid, first*math.Pow(factor, float64(i)))
	}
	return grid
}

func valueWith(kappa float64) string { return fmt.Sprintf("value,kappa=%.4g", kappa) }

func (p *predictReproduction) measureFindings(
	ctx context.Context, count newProgress, findings []predictFinding,
) error {
	rules := make([]string, 0, len(findings))
	tunes := false
	for i := range findings {
		rules = append(rules, findings[i].rule)
		tunes = tunes || aimOf(findings[i].rule) != ""
	}
	rules = append(rules, ruleSimple)
	slices.Sort(rules)
	rules = slices.Compact(rules)
	total := len(rules) * len(p.tests)
	if tunes {
		total += len(kappaGrid()) * p.tuning
	}
	progress := count(p.model.String()+" energy", total)
	defer progress.Finish()
	done := func() { progress.Add(1) }
	if tunes {
		if err := p.tune(ctx, done); err != nil {
			return err
		}
	}
	policies := terminal.TextsOf(rules, func(rule string) string {
		if aim := aimOf(rule); aim != "" {
			return valueWith(p.kappas[aim])
		}
		return rule
	})
	found, err := meansByPolicy(ctx, p.tests, policies, done)
	if err != nil {
		return err
	}
	simple := &found[slices.Index(rules, ruleSimple)]
	for i := range findings {
		f := &findings[i]
		f.ours[p.model] = f.of(&found[slices.Index(rules, f.rule)], simple)
	}
	return nil
}
