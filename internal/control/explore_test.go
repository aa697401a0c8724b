package control

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// campaign is many jobs of a few workloads on simulated GPUs, with noise.
type campaign struct {
	*rig
	random *rand.Rand
	truths []dvfsmodel.Params
	clocks []dvfsmodel.MHz
	noise  float64
}

// sum is the energy of jobs, with the host's, by the truth.
type sum struct {
	jobs                   int
	standard, chosen, best float64
}

// way returns how far the energy is from that at default clocks to the least possible.
func (s *sum) way() float64 { return (s.standard - s.chosen) / (s.standard - s.best) }

func newCampaign(t *testing.T, seed uint64, config string, clocks []dvfsmodel.MHz) *campaign {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, config, func(o *Options) { o.Seed = seed })
	c := &campaign{rig: r, random: random, clocks: clocks, noise: 0.02}
	for range 20 {
		c.truths = append(c.truths, dvfsmodel.Params{
			P0: dvfsmodel.Watt(40 + 60*random.Float64()), Gamma: dvfsmodel.Watt(10 + 20*random.Float64()),
			C: dvfsmodel.Watt(80 + 120*random.Float64()), D: 300 + 900*random.Float64(),
			Delta: random.Float64(),
			T0:    100 * random.Float64(),
		})
	}
	return c
}

func (c *campaign) energy(p *dvfsmodel.Params, core dvfsmodel.MHz) (seconds, joules float64) {
	fc := float64(core / base.Core)
	pt := p.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 1})
	const host = 25
	return pt.Time, float64(pt.Energy) + host*pt.Time
}

// probe begins the reason of a decision that explores.
const probe = "probe: "

// run runs one job of a workload and adds it to the sum. It returns its decision.
func (c *campaign) run(id slurm.JobID, workload int, s *sum) live.Decision {
	c.t.Helper()
	truth := &c.truths[workload]
	longest, _ := c.energy(truth, base.Core)
	limit := time.Duration(2 * longest * float64(time.Second)).Round(time.Minute)
	c.job(id, func(j *slurm.Job) {
		j.Name, j.TimeLimit = fmt.Sprint("workload-", workload), live.LimitOf(limit)
	})
	request := ask(id)
	request.Clocks[0].Core = c.clocks
	d := c.decide(request)
	core := base.Core
	if d.Apply {
		core = d.Core
	}
	seconds, joules := c.energy(truth, core)
	o := c.ran(d, request.RunID, *truth)
	took := seconds * math.Exp(c.noise*c.random.NormFloat64())
	power := float64(truth.At(dvfsmodel.Scaling{
		V: dvfsmodel.VoltageFor(float64(core / base.Core)), Fc: float64(core / base.Core), Fm: 1,
	}).Power) *
		math.Exp(c.noise*c.random.NormFloat64())
	o.TimeS, o.MeanPowerW, o.GPUEnergyJ = live.Known(took), live.Known(power), live.Known(took*power)
	if took > limit.Seconds() {
		c.t.Errorf("job %d: %v s at %v MHz break the limit %s: %s", id, took, core, limit, d.Reason)
	}
	c.record(o, store.Stored)
	_, standard := c.energy(truth, base.Core)
	best := math.Inf(1)
	for _, core := range c.clocks {
		if t, e := c.energy(truth, core); t <= limit.Seconds() {
			best = min(best, e)
		}
	}
	s.jobs++
	s.standard, s.chosen, s.best = s.standard+standard, s.chosen+joules, s.best+best
	return d
}

var v100Clocks = []dvfsmodel.MHz{1380, 1237, 1102, 1087, 945, 802, 705, 600, 502, 405}

// With an empty store, over the last 100 of 300 jobs of 20 workloads the energy is
// at least 90 % of the way from default clocks to the least that is possible; no
// job breaks its limit.
func TestAFewRunsOfEachWorkloadAreEnoughToChooseWell(t *testing.T) {
	const config = "[live]\nmode = \"enforce\"\nhold_out = 0.2\nmax_slowdown = 1.5\n"
	for seed := range uint64(2) {
		c := newCampaign(t, seed, config, v100Clocks)
		var last, all, probes sum
		order := c.random.Perm(300)
		for i, k := range order {
			var one sum
			d := c.run(slurm.JobID(i+1), k%20, &one)
			switch {
			case d.Arm == live.ArmHeldOut:
			case strings.HasPrefix(d.Reason, probe):
				probes.add(one)
			default:
				all.add(one)
				if i >= 200 {
					last.add(one)
				}
			}
		}
		t.Logf("seed %d: last %d jobs: %.1f %% of the way, all %d: %.1f %%, %d probes %.1f %%", seed,
			last.jobs, 100*last.way(), all.jobs, 100*all.way(), probes.jobs, 100*probes.way())
		if last.way() < 0.9 {
			t.Errorf("seed %d: the last %d jobs are %.1f %% of the way from default clocks to the best", seed,
				last.jobs, 100*last.way())
		}
	}
}

func (s *sum) add(o sum) {
	s.jobs += o.jobs
	s.standard, s.chosen, s.best = s.standard+o.standard, s.chosen+o.chosen, s.best+o.best
}

// Every probe keeps the limit by its upper bound, takes hardly longer than it
// would have otherwise, and says what it is.
func TestAProbeIsBoundedAndSaysSo(t *testing.T) {
	const config = "[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 1\nexplore_slowdown = 0.1\nmax_slowdown = 1.5\n"
	c := newCampaign(t, 5, config, v100Clocks)
	probes, deadlines := 0, 0
	for i := range slurm.JobID(120) {
		workload := int(i) % 6
		longest, _ := c.energy(&c.truths[workload], base.Core)
		limit := time.Duration(longest*(1.05+c.random.Float64())) * time.Second
		c.job(i+1, func(j *slurm.Job) {
			j.Name, j.TimeLimit = fmt.Sprint("workload-", workload), live.LimitOf(limit)
			if i%3 == 0 {
				j.Comment = fmt.Sprintf("epplan:deadline=+%dm", int(longest*1.3/60))
				deadlines++
			}
		})
		request := ask(i + 1)
		request.Clocks[0].Core = c.clocks
		view := c.learner.Model(record.WorkloadKey{
			Cluster: "alpha", Workload: jobs.SourceOf(1000, "",
				fmt.Sprint("workload-", workload)).Workload(1), GPUModel: "V100",
		})
		d := c.decide(request)
		o := c.ran(d, request.RunID, c.truths[workload])
		c.record(o, store.Stored)
		if !strings.HasPrefix(d.Reason, probe) {
			continue
		}
		probes++
		upper, known := d.Upper.Get()
		standard := d.DefaultJ.Or(0)
		if !known || upper > limit.Seconds()*(1+1e-9) || !d.Apply || d.Arm != live.ArmTreated ||
			standard == 0 {
			t.Errorf("limit %s: %+v", limit, d)
		}
		rules, clocks := c.Settings(), c.decider.GPUs.Clocks(d.GPUModel)
		sure := choose.SafeResponse{
			Fitted: &view.Model.Model, Settings: clocks.Allowed,
			Standard:   view.Model.At(clocks.Base.Core, clocks.Base.Mem),
			TimeMargin: rules.Live.TimeMargin, LimitMargin: rules.Safety.LimitMargin,
			Stretch: rules.Live.MaxSlowdown,
		}
		otherwise, _ := sure.Optimum(rules.Goal.Objective.WithHost(rules.HostPower(d.GPUModel)), limit.Seconds())
		if longest := 1.1 * max(sure.Standard.Time, otherwise.Time); d.Predicted.Or(math.Inf(1)) >
			longest*(1+1e-9) {
			t.Errorf("job %d: %v s are expected, want at most %v: %s", i+1, d.Predicted, longest, d.Reason)
		}
		if took := o.TimeS.Or(math.Inf(1)); took > upper || took > limit.Seconds() {
			t.Errorf("job %d took %v s of %s, at most %v s were expected: %s", i+1, took, limit,
				upper, d.Reason)
		}
	}
	if probes < 10 || deadlines == 0 {
		t.Errorf("%d probes of 120 runs, want 10 or more; %d had deadlines", probes, deadlines)
	}
}

func TestNothingIsProbedWhereNobodyAllowedIt(t *testing.T) {
	for _, config := range []string{
		"[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0\n",
		"[live]\nmode = \"advise\"\nhold_out = 0\nexplore = 1\n",
	} {
		c := newCampaign(t, 5, config, v100Clocks)
		for i := range slurm.JobID(12) {
			var s sum
			if d := c.run(i+1, 0, &s); strings.HasPrefix(strings.TrimPrefix(d.Reason, "advice: "),
				probe) {
				t.Errorf("%q: %s", config, d.Reason)
			}
		}
	}
}

// What workloads on a GPU model showed is used for the next one, also by a
// controller that was started anew.
func TestANewWorkloadIsPredictedByWhatOthersShowed(t *testing.T) {
	c := newCampaign(t, 9, enforceAll, v100Clocks)
	// Hardly slower at low clocks, and hardly thriftier: none of the built-in ones is so.
	for i := range c.truths {
		c.truths[i].Delta, c.truths[i].T0, c.truths[i].C = 0.02, 50, 20
	}
	var s sum
	for i := range slurm.JobID(80) {
		c.run(i+1, int(i)%16, &s)
	}
	again := rigAt(t, c.path, c.clock, enforceAll, nil)
	c.rig = again
	c.noise = 0
	d := c.run(200, 19, &s) // done when the refit is, which learning from the store comes before
	truth := c.truths[19]
	one := truth.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(1), Fc: 1, Fm: 1})
	sample := []dvfsmodel.Sample{{Core: base.Core, Mem: base.Mem, Time: one.Time, Power: one.Power}}
	known, err := pooled.BuiltinCurves().Condition(sample, base, pooled.NoiseOf(sample))
	if err != nil {
		t.Fatal(err)
	}
	builtin, err := learn.FitModel(sample, base, known)
	if err != nil {
		t.Fatal(err)
	}
	miss := func(m *learn.Model) float64 {
		low := float64(945 / base.Core)
		want := truth.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(low), Fc: low, Fm: 1})
		return math.Abs(math.Log(float64(m.At(945, base.Mem).Energy / want.Energy)))
	}
	key := record.WorkloadKey{Cluster: "alpha", Workload: d.Workload, GPUModel: d.GPUModel}
	learnt, general := miss(again.learner.Model(key).Model), miss(builtin)
	if !(learnt < general/2) {
		t.Errorf("the energy at 945 MHz is missed by %v, by what is known in general by %v", learnt, general)
	}
}
