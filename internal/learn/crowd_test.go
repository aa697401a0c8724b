package learn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// drawnWorkload returns one that core clocks slow down by a part between low and high.
func drawnWorkload(rng *rand.Rand, low, high float64) dvfsmodel.Params {
	return dvfsmodel.Params{
		P0: dvfsmodel.Watt(50 + 20*rng.Float64()), Gamma: 20, C: dvfsmodel.Watt(100 + 100*rng.Float64()),
		D: 600, Delta: low + (high-low)*rng.Float64(), T0: 10,
	}
}

// runsOf returns two runs each at some clocks, with a scatter of 1 %.
func runsOf(rng *rand.Rand, w *dvfsmodel.Params, cores ...dvfsmodel.MHz) []dvfsmodel.Sample {
	samples := make([]dvfsmodel.Sample, 0, 2*len(cores))
	for _, core := range cores {
		fc := float64(core / base.Core)
		pt := w.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 1})
		for range 2 {
			samples = append(samples, dvfsmodel.Sample{
				Core: core, Mem: base.Mem, Time: pt.Time * math.Exp(0.01*rng.NormFloat64()),
				Power: pt.Power * dvfsmodel.Watt(math.Exp(0.01*rng.NormFloat64())),
			})
		}
	}
	return samples
}

// idleRuns returns those of a GPU that stands idle, or is said to: no clock slows it down, and lower ones
// take less.
func idleRuns(cores ...dvfsmodel.MHz) []dvfsmodel.Sample {
	samples := make([]dvfsmodel.Sample, 0, 5*len(cores))
	for _, core := range cores {
		for range 5 {
			samples = append(samples, dvfsmodel.Sample{
				Core: core, Mem: base.Mem, Time: 600,
				Power: 40 + dvfsmodel.Watt(200*math.Pow(float64(core/base.Core), 3)),
			})
		}
	}
	return samples
}

// honest are workloads of several users on several nodes.
func honest(rng *rand.Rand) *priors {
	p := new(priors)
	for i := range 12 {
		w := drawnWorkload(rng, 0.4, 0.9)
		p.note(keyOf(fmt.Sprintf("w%d", i)), workloadRuns{
			samples: runsOf(rng, &w, clocks...), user: fmt.Sprintf("u%d", i%6),
			nodes: map[string]float64{fmt.Sprintf("n%d", i%4): 1},
		}, base)
	}
	return p
}

// By which part of what it takes at default clocks a user's or a node's records, however many, may slow
// down a job of another user by the first choice for it. docs/security.md states them.
const (
	userBound = 0.06
	nodeBound = 0.12
)

// firstChoice returns the time at the clocks that are chosen for a workload after its first runs, relative to
// that at default clocks.
func firstChoice(
	t *testing.T, hostW dvfsmodel.Watt, p *priors, w *dvfsmodel.Params, first []dvfsmodel.Sample, user string,
) float64 {
	t.Helper()
	m, _, _, err := fitTo(first, base, p.get(priorKey{gpuModel: "V100"}, base, user))
	if err != nil {
		t.Fatal(err)
	}
	s := choose.SafeResponse{
		Fitted: &m.Model, Standard: m.At(base.Core, base.Mem), TimeMargin: 0.1, Stretch: 1.5,
	}
	for core := base.Core; core >= 802; core -= 15 {
		s.Settings = append(s.Settings, dvfsmodel.Setting{Core: core, Mem: base.Mem})
	}
	best, err := s.Optimum(dvfsmodel.MinEnergy().WithHost(hostW), 1e6)
	if err != nil {
		t.Fatal(err)
	}
	fc := float64(best.Core / base.Core)
	at := func(fc float64) float64 {
		return w.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 1}).Time
	}
	return at(fc) / at(1)
}

func TestTheRecordsOfOneUserOrNodeSlowDownOthersFirstChoicesOnlySoMuch(t *testing.T) {
	const drawn = 20
	mallory := func(int) workloadRuns { return workloadRuns{user: "mallory"} }
	for _, c := range []struct {
		name  string
		count int
		bound float64
		of    func(i int) workloadRuns
	}{
		{"4 idle workloads of a user", 4, userBound, mallory},
		{"60 of a user", 60, userBound, func(i int) workloadRuns {
			return workloadRuns{user: "mallory", nodes: map[string]float64{fmt.Sprintf("n%d", i): 1}}
		}},
		{"60 of a node", 60, nodeBound, func(i int) workloadRuns {
			return workloadRuns{user: fmt.Sprintf("m%d", i), nodes: map[string]float64{"n9": 1}}
		}},
		{"400 of a user", 400, userBound, mallory},
	} {
		for _, hostW := range []dvfsmodel.Watt{0, 100, 200} {
			sum, most := 0.0, 0.0
			for seed := range uint64(drawn) {
				rng := rand.New(rand.NewPCG(seed, 5))
				p := honest(rng)
				p.learn(priorKey{gpuModel: "V100"})
				victim := drawnWorkload(rng, 0.6, 0.95)
				first := runsOf(rng, &victim, base.Core)
				before := firstChoice(t, hostW, p, &victim, first, "victim")
				for i := range c.count {
					runs := c.of(i)
					runs.samples = idleRuns(clocks...)
					p.note(keyOf(fmt.Sprintf("idle%d", i)), runs, base)
				}
				p.learn(priorKey{gpuModel: "V100"})
				moved := firstChoice(t, hostW, p, &victim, first, "victim") - before
				sum, most = sum+moved, max(most, moved)
			}
			t.Logf("%s, hosts of %v W: %.3f of the time at default clocks in the mean, %.3f at most", c.name,
				float64(hostW), sum/drawn, most)
			if most > c.bound {
				t.Errorf("%s: another user's job takes %.3f of its time longer, want at most %v", c.name, most, c.bound)
			}
		}
	}
}

func TestAUsersOwnWorkloadsCountInFullForThatUser(t *testing.T) {
	all := make([]workloadRuns, 0, 19)
	for i := range 10 {
		nodes := map[string]float64{"n1": 0.5, fmt.Sprintf("m%d", i): 0.5}
		all = append(all, workloadRuns{user: "ada", nodes: nodes})
	}
	for i := range 9 {
		all = append(all, workloadRuns{user: fmt.Sprintf("u%d", i), nodes: map[string]float64{"n2": 1}})
	}
	sums := func(user string) (ada, n2 float64) {
		for i, w := range weightsFor(all, user) {
			if all[i].user == "ada" {
				ada += w
			} else {
				n2 += w
			}
		}
		return ada, n2
	}
	for _, c := range []struct {
		user    string
		ada, n2 float64
	}{{"", userVotes, nodeVotes}, {"ada", 10, nodeVotes}, {"u1", userVotes, nodeVotes - 4.0/9 + 1}} {
		if ada, n2 := sums(c.user); math.Abs(ada-c.ada) > 1e-9 || math.Abs(n2-c.n2) > 1e-9 {
			t.Errorf("for %q ada's count for %v, those on n2 for %v; want %v and %v", c.user, ada, n2, c.ada, c.n2)
		}
	}
}

func TestAUserWithManyWorkloadsPushesOutNoneOfOthers(t *testing.T) {
	p := honest(rand.New(rand.NewPCG(1, 5)))
	for i := range 2 * maxEvidence {
		p.note(keyOf(fmt.Sprintf("idle%d", i)), workloadRuns{samples: idleRuns(clocks...), user: "mallory"}, base)
	}
	others := 0
	for _, runs := range p.byGPU[priorKey{gpuModel: "V100"}].samples {
		if runs.user != "mallory" {
			others++
		}
	}
	if others != 12 || len(p.byGPU[priorKey{gpuModel: "V100"}].samples) != maxEvidence {
		t.Errorf("%d of 12 workloads of others are left, of %d", others,
			len(p.byGPU[priorKey{gpuModel: "V100"}].samples))
	}
}

func TestIdleGPUsTeachNothingOfOtherWorkloads(t *testing.T) {
	for utilisation, want := range map[float64]bool{0: true, 0.04: true, 0.5: false, -1: false} {
		l, _ := onStore(t)
		known := &evidence{idle: true}
		outcomes := make([]record.Outcome, 0, len(clocks))
		for _, core := range clocks {
			o := completedAt(core)
			if utilisation >= 0 {
				o.Utilisation = live.Known(utilisation)
			}
			outcomes = append(outcomes, *o)
		}
		known.recent, known.recentOn = known.samplesOf(outcomes, base, 0)
		l.noteRuns(t.Context(), keyOf("w"), known, base)
		if got := len(l.priors.byGPU) == 0; len(known.recent) != len(clocks) || got != want {
			t.Errorf("utilisation %v (-1: not known), %d samples: kept out %v, want %v", utilisation,
				len(known.recent), got, want)
		}
	}
}

// completedAt returns the outcome of a run at a core clock.
func completedAt(core dvfsmodel.MHz) *record.Outcome {
	return &record.Outcome{
		Node: "n1", ExitState: record.Completed, TimeS: live.Known(600), MeanPowerW: live.Known(60),
		Setting: dvfsmodel.Setting{Core: core, Mem: base.Mem}, GPUs: []string{"GPU-a"},
		Clocks: []live.Residency{{Setting: dvfsmodel.Setting{Core: core, Mem: base.Mem}, Seconds: 600}},
	}
}
