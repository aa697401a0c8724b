package decide

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// kept are the outcomes that a learner learns from. It keeps no models.
type kept struct {
	learn.Records
	outcomes map[record.WorkloadKey][]record.Outcome // the newest first
	versions int64
}

func (k *kept) OutcomesOf(
	_ context.Context, key record.WorkloadKey, _ int64, most int,
) (store.OutcomePage, error) {
	all := k.outcomes[key]
	return store.OutcomePage{Outcomes: all[:min(most, len(all))]}, nil
}

func (k *kept) PutModel(context.Context, *record.Model) (int64, error) {
	k.versions++
	return k.versions, nil
}
func (*kept) UseModel(context.Context, record.WorkloadKey, int64, string) error { return nil }

// board is a GPU model.
type board struct {
	base   dvfsmodel.Setting
	clocks []dvfsmodel.Setting
	limit  epdapi.PowerLimit
}

const gpuModel = "A100-PCIE-80GB"

// a100 returns an A100 as others measured it: at few clocks, between which limits lie.
func a100() *board {
	b := &board{
		base:  dvfsmodel.Setting{Core: 1410, Mem: 1512},
		limit: epdapi.PowerLimit{InForce: 300, Min: 100, Max: 300},
	}
	for _, core := range []dvfsmodel.MHz{510, 810, 1110, 1410} {
		b.clocks = append(b.clocks, dvfsmodel.Setting{Core: core, Mem: b.base.Mem})
	}
	return b
}

// site has jobs run on such boards as the settings say, and learns from them.
type site struct {
	*board
	rng      *rand.Rand
	settings *Settings
	records  *kept
	learner  *learn.Learner
	refitted chan struct{}
}

func newSite(t *testing.T, b *board, seed uint64, capMode string) *site {
	t.Helper()
	s := &site{
		board: b, rng: rand.New(rand.NewPCG(seed, 5)), refitted: make(chan struct{}, 1),
		settings: settings(t, "[safety]\nlimit_margin = 0\n"+
			"[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0.5\nmax_slowdown = 2.2\n"+
			"time_margin = 0.05\nexplore_slowdown = 0.3\n[live.cap]\nmode = \""+capMode+"\"\n"),
		records: &kept{outcomes: make(map[record.WorkloadKey][]record.Outcome)},
	}
	s.learner = learn.New(learn.Options{
		Records: s.records, Cluster: "alpha", Clock: func() time.Time { return start },
		Log: slog.New(slog.DiscardHandler),
		Settings: func() learn.Settings {
			return learn.Settings{
				TimeMargin: s.settings.Live.TimeMargin, Explore: true, Caps: s.settings.Live.Cap.IsChosenSomewhere(),
				MaxSlowdown: s.settings.Live.MostSlowdown(),
			}
		},
		GPU: func(string) learn.GPU {
			return learn.GPU{Base: b.base, Allowed: b.clocks, Default: b.base, Limit: b.limit}
		},
		Pending: func() func() { return func() { s.refitted <- struct{}{} } },
	})
	go s.learner.Run(t.Context())
	return s
}

// decide returns what is decided for the next run of a workload, which may last so many seconds.
func (s *site) decide(key record.WorkloadKey, longest float64, explores bool) *live.Decision {
	r := &epdapi.DecideRequest{
		Job: 1, GPUModel: key.GPUModel, GPUs: 1, Clocks: epdapi.GroupClocks(s.clocks), PowerLimit: s.limit,
	}
	r.Default = s.base
	job := jobs.FromDescription(0, "", "p", "")
	job.Limit, job.GPUs, job.Nodes = live.LimitOf(time.Duration(longest*float64(time.Second))), 1, 1
	d := &live.Decision{
		GPUModel: key.GPUModel, Workload: key.Workload, Mode: s.settings.Live.Mode, Arm: live.ArmExcluded,
	}
	ch := &chooser{
		settings: s.settings, table: newTable(s.settings, r, dvfsmodel.Setting{}), model: s.learner.Model(key),
		request: r, job: job,
		now: start, decision: d, explores: explores,
	}
	ch.choose(&slurm.Wishes{})
	return d
}

// work is a workload of phases, each of which a limit holds down by itself.
type work []*dvfsmodel.Fitted

// ran is what a run took: its clock is the one that was set, its limit the one that was in force.
type ran struct {
	dvfsmodel.Point
	phases []dvfsmodel.Point
}

// at returns what a run takes at a setting, in which 0 is what there is anyway.
func (b *board) at(truth work, at dvfsmodel.Setting) *ran {
	r := &ran{}
	r.Core, r.Cap = cmp.Or(at.Core, b.base.Core), cmp.Or(at.Cap, b.limit.InForce)
	for _, phase := range truth {
		pt := phase.Under(r.Cap).At(r.Core, b.base.Mem)
		r.Time, r.Energy = r.Time+pt.Time, r.Energy+pt.Energy
		r.phases = append(r.phases, pt)
	}
	r.Power = dvfsmodel.Watt(float64(r.Energy) / r.Time)
	return r
}

// clock returns the core clock that ran: in each phase the one at which it draws as much without a limit.
func (b *board) clock(truth work, r *ran) record.WorkClock {
	var mean, square float64
	for i, pt := range r.phases {
		free, low, high := truth[i].Under(1e5), 50., float64(r.Core)
		for range 40 {
			if middle := (low + high) / 2; free.At(dvfsmodel.MHz(middle), b.base.Mem).Power < pt.Power {
				low = middle
			} else {
				high = middle
			}
		}
		part := pt.Time / r.Time
		mean, square = mean+high*part, square+high*high*part
	}
	return record.WorkClock{
		CoreMHz: live.Known(mean), SpreadMHz: live.Known(math.Sqrt(max(0, square-mean*mean))),
	}
}

// run has a workload run as decided, with a scatter of half a per cent.
func (s *site) run(key record.WorkloadKey, truth work, d *live.Decision) {
	took := s.at(truth, d.Setting)
	noise := func() float64 { return math.Exp(0.005 * s.rng.NormFloat64()) }
	o := record.Outcome{
		RunID: strconv.Itoa(len(s.records.outcomes[key])), Cluster: key.Cluster, Workload: key.Workload,
		GPUModel: key.GPUModel, ExitState: record.Completed, Ended: start, GPUs: []string{"GPU-a"},
		Setting: d.Setting, TimeS: live.Known(took.Time * noise()),
		MeanPowerW: live.Known(float64(took.Power) * noise()),
		Details:    record.Details{CapW: live.Known(float64(took.Cap)), WorkClock: s.clock(truth, took)},
	}
	if o.WorkClock.CoreMHz.Or(0) < float64(took.Core)*0.98 {
		o.ThrottledS = map[string]float64{"power-cap": o.TimeS.Or(0)}
	}
	s.records.outcomes[key] = slices.Insert(s.records.outcomes[key], 0, o)
	s.learner.RunEnded(context.Background(), &o)
	<-s.refitted
}

// drawWork returns a workload of two phases that go with the core clock.
func (b *board) drawWork(t *testing.T, rng *rand.Rand) work {
	t.Helper()
	at := b.base
	at.Cap = b.limit.InForce
	between := func(low, high float64) float64 { return low + (high-low)*rng.Float64() }
	all := make(work, 0, 2)
	seconds, part := between(300, 900), between(0.2, 0.5)
	static, slope, knee := between(50, 70), between(1.2, 1.8), between(0.6, 0.75)
	for _, phase := range []struct{ part, core, dynamic float64 }{
		{part, between(0.6, 0.95), between(70, 90)}, {1 - part, between(0.6, 0.95), between(60, 80)},
	} {
		fitted, err := dvfsmodel.NewFitted(dvfsmodel.CappedForm(), at, []dvfsmodel.Coefficient{
			{Name: "time.scale_s", Value: seconds * phase.part},
			{Name: "time.core_share", Value: phase.core},
			{Name: "time.core_knee", Value: 1.3},
			{Name: "time.memory_exponent", Value: 0.5},
			{Name: "power.static_w", Value: static},
			{Name: "power.dynamic_w", Value: phase.dynamic},
			{Name: "power.voltage_slope", Value: slope},
			{Name: "power.voltage_knee", Value: knee},
			{Name: "power.memory_exponent", Value: 0.2},
			{Name: "power.cap_ratio", Value: 1},
			{Name: "power.cap_edge", Value: 60},
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fitted)
	}
	return all
}

// cost returns the energy of a run with the host's.
func (s *site) cost(r *ran) float64 {
	return float64(r.Energy + s.settings.HostPower(gpuModel).Over(r.Time))
}

// best returns the least that runs cost which take no longer than they may, at any clock under any limit.
func (s *site) best(truth work, longest float64) float64 {
	least := math.Inf(1)
	for _, at := range s.clocks {
		for at.Cap = s.limit.Min; at.Cap <= s.limit.InForce; at.Cap += 10 {
			if took := s.at(truth, at); took.Time <= longest {
				least = min(least, s.cost(took))
			}
		}
	}
	return least
}

// limitsTried counts limits that were set.
type limitsTried struct{ probes, choices int }

// trial returns how far above the best a workload's choices are after some runs, on a mean of several time
// limits.
func (s *site) trial(t *testing.T, key record.WorkloadKey, truth work, seen *limitsTried) float64 {
	t.Helper()
	const runs = 10
	standard := s.at(truth, dvfsmodel.Setting{})
	for i := range runs {
		longest := standard.Time * (1.05 + 1.2*s.rng.Float64())
		d := s.decide(key, longest, i > 0 && s.rng.IntN(2) == 0)
		if took := s.at(truth, d.Setting); took.Time > longest {
			t.Errorf("%v took %.3f of what it may: %s", d.Setting, took.Time/longest, d.Reason)
		}
		if d.Cap > 0 && strings.HasPrefix(d.Reason, probeReason) {
			seen.probes++
		}
		s.run(key, truth, d)
	}
	off, slower := 0., []float64{1.4, 1.6, 1.8, 2}
	for _, part := range slower {
		d := s.decide(key, part*standard.Time, false)
		if d.Cap > 0 {
			seen.choices++
		}
		off += (s.cost(s.at(truth, d.Setting))/s.best(truth, part*standard.Time) - 1) / float64(len(slower))
	}
	return off
}

// Where limits are chosen beside clocks probes find those that lie between the clocks: workloads of which a
// few runs are known are nearer the best clock and limit than by clocks alone, and no run takes longer than
// it may.
func TestProbesOfClocksAndLimitsComeNearerTheBestThanThoseOfClocks(t *testing.T) {
	const workloads = 5
	b := a100()
	rng := rand.New(rand.NewPCG(20, 78))
	var alone, together float64
	var seen limitsTried
	trials := cases(15)
	for trial := range trials {
		clocks, both := newSite(t, b, uint64(trial), "off"), newSite(t, b, uint64(trial), "chosen")
		for w := range workloads {
			truth := b.drawWork(t, rng)
			key := record.WorkloadKey{Cluster: "alpha", Workload: fmt.Sprint("w", w), GPUModel: gpuModel}
			var none limitsTried
			alone += clocks.trial(t, key, truth, &none) / float64(workloads*trials)
			if none.probes+none.choices > 0 {
				t.Fatal("a limit where none is chosen")
			}
			together += both.trial(t, key, truth, &seen) / float64(workloads*trials)
		}
	}
	t.Logf("%d workloads: %.2f %% above the best by clocks alone, %.2f %% with limits; a limit in %d probes, "+
		"and in %d choices", workloads*trials, 100*alone, 100*together, seen.probes, seen.choices)
	if !(together < 0.95*alone) || seen.probes == 0 || seen.choices == 0 {
		t.Errorf("%.2f %% above the best with limits, %.2f %% without; %+v", 100*together, 100*alone, seen)
	}
}

// exploring is a job that may explore at clocks, and at clocks under limits.
type exploring struct {
	*capped
	clocks, limits []learn.Candidate
}

func drawExploring(t *testing.T, rng *rand.Rand, from *modelPool) *exploring {
	t.Helper()
	e := &exploring{capped: knowingLimits(t, rng, from)}
	if rng.IntN(2) == 0 {
		m := *e.model
		m.Capped = nil
		e.model = &m
	}
	for range 4 {
		at := drawPair(rng, e.profile.Pairs())
		e.clocks = append(e.clocks, learn.Candidate{At: at, Gain: 0.1})
		at.Cap = dvfsmodel.Watt(math.Round(float64(e.limit.InForce) * (0.3 + 0.8*rng.Float64())))
		expected := 1 + rng.Float64()*rng.Float64()
		e.limits = append(e.limits, learn.Candidate{
			At: at, Gain: 0.1, Expected: expected, AtMost: expected * (1 + 0.2*rng.Float64()),
		})
	}
	return e
}

// decide returns what is decided by lines of the configuration, with what can be learnt of limits.
func (e *exploring) decide(
	t *testing.T, lines string, limits []learn.Candidate, held float64,
) *live.Decision {
	t.Helper()
	ch := e.chooser(t, e.configuration()+lines)
	ch.request.PowerLimit, ch.request.CoreFixed = e.limit, e.coreFixed
	ch.explores, ch.model.Candidates, ch.model.LimitCandidates = true, e.clocks, limits
	ch.choose(&slurm.Wishes{Deadline: ch.decision.Wish.Deadline})
	ch.drawArm(&armShares{holdOut: live.Known(held)}, 0.5)
	return ch.decision
}

// carelessProbe is why a probe under a limit may not be.
func (e *exploring) carelessProbe(d *live.Decision) string {
	standard := e.standard()
	atMost := math.Inf(1) // by the best that is said of the setting, which may be drawn twice
	for _, l := range e.limits {
		if l.At.Cap == d.Cap && l.At.Mem == cmp.Or(d.Mem, standard.Mem) &&
			(l.At.Core == cmp.Or(d.Core, e.profile.Default.Core) ||
				d.Core == 0 && l.At.Core == standard.Core) { // it runs there anyway
			atMost = min(atMost, l.AtMost*standard.Time)
		}
	}
	most := e.alike.limit.Seconds()
	if e.deadline > 0 {
		most = min(most, e.deadline.Seconds()-e.deadlineMargin)
	}
	most = min(most, e.stretch*e.model.UpperTime(&standard, e.timeMargin)) * (1 + 1e-9)
	switch {
	case math.IsInf(atMost, 1) || !e.limit.Takes(d.Cap):
		return "nobody says that anything is learnt there, or the board doesn't take it"
	case atMost > most || d.Upper.Or(0) > most:
		return fmt.Sprintf("may take %v s, at most %v s by others' runs, of %v", d.Upper,
			atMost, most)
	case d.Arm != live.ArmTreated || !d.Apply:
		return "isn't set, or doesn't count as treated"
	}
	return ""
}

// Where no limit is chosen beside clocks, what could be learnt of limits changes nothing; where one is, a
// probe keeps what any run must, and is held out like any other.
func TestProbesOfLimitsAreOnlyWhereLimitsAreChosen(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 78))
	from := newPool(t, rng, 40)
	probes := 0
	for range cases(2000) {
		e := drawExploring(t, rng, from)
		onlyLimits := *e.capped
		onlyLimits.coreFixed = true
		fixed := exploring{&onlyLimits, e.clocks, e.limits}
		for _, with := range []struct {
			*exploring
			lines string
		}{{e, ""}, {e, "[live.cap]\nmode = \"constant\"\nlimit = 0.8\n"}, {&fixed, e.live}} {
			a, b := with.decide(t, with.lines, e.limits, 0), with.decide(t, with.lines, nil, 0)
			if a.Setting != b.Setting || a.Reason != b.Reason || a.Upper != b.Upper || a.Arm != b.Arm {
				t.Fatalf("%q: %+v, where nothing can be learnt of limits %+v", with.lines, a, b)
			}
		}
		d := e.decide(t, e.live, e.limits, 0)
		if d.Cap == 0 || !strings.HasPrefix(d.Reason, probeReason) {
			continue
		}
		probes++
		if why := e.carelessProbe(d); why != "" {
			t.Fatalf("%v of %+v: %s: %v", d.Setting, e.limits, why, e.capped)
		}
		if held := e.decide(t, e.live, e.limits, 1); held.Apply || held.Arm != live.ArmHeldOut || held.Cap != 0 {
			t.Fatalf("held out: %+v", held)
		}
	}
	if probes < 20 {
		t.Errorf("%d probes with a limit", probes)
	}
}
