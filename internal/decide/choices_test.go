package decide

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/planner/tune"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// alike is a job that a plan and epd choose clocks for: the same model, promises and
// configuration.
type alike struct {
	model    *learn.Model
	profile  *config.Profile
	limit    live.Limit
	deadline time.Duration // from its start; 0: none

	objective                        string
	timeWeight                       float64
	limitMargin, deadlineMargin      float64
	timeMargin, stretch, minGain     float64
	minCore, maxCore, minMem, maxMem float64
}

func (a *alike) String() string {
	return fmt.Sprintf("%s, %v, limit %v, deadline %v, %s %.4g, margins %.4g %v %.4g, stretch %.4g, core "+
		"%.4g to %.4g, memory %.4g to %.4g", a.profile.Name,
		a.model, a.limit, a.deadline, a.objective, a.timeWeight, a.limitMargin, a.deadlineMargin,
		a.timeMargin, a.stretch, a.minCore, a.maxCore,
		a.minMem, a.maxMem)
}

// modelsOf are models of drawn workloads, each fitted as epd does to some runs.
func modelsOf(tb testing.TB, rng *rand.Rand, p *config.Profile, n int) []*learn.Model {
	tb.Helper()
	pairs := p.Pairs()
	var all []*learn.Model
	for len(all) < n {
		truly := dvfsmodel.Params{
			P0: dvfsmodel.Watt(20 + 60*rng.Float64()), Gamma: dvfsmodel.Watt(40 * rng.Float64()),
			C:  dvfsmodel.Watt(20 + 150*rng.Float64()),
			T0: 600 * rng.Float64(), D: 60 + 6000*rng.Float64(), Delta: rng.Float64(),
		}
		noise := 0.05 * rng.Float64() * rng.Float64()
		samples := make([]dvfsmodel.Sample, 1+rng.IntN(12))
		for i := range samples {
			at := pairs[rng.IntN(len(pairs))]
			if i == 0 || rng.IntN(3) == 0 {
				at = p.Default
			}
			fc, fm := float64(at.Core/p.Default.Core), float64(at.Mem/p.Default.Mem)
			pt := truly.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: fm})
			samples[i] = dvfsmodel.Sample{
				Core: at.Core, Mem: at.Mem, Time: pt.Time * math.Exp(noise*rng.NormFloat64()),
				Power: pt.Power * dvfsmodel.Watt(math.Exp(noise*rng.NormFloat64())),
			}
		}
		known, err := pooled.BuiltinCurves().Condition(samples, p.Default, pooled.Noise{})
		if err != nil {
			tb.Fatal(err)
		}
		if m, err := learn.FitModel(samples, p.Default, known); err == nil {
			m.Version = int64(len(all) + 1)
			all = append(all, m)
		}
	}
	return all
}

// drawAlike draws a job and a configuration for a model.
func drawAlike(rng *rand.Rand, p *config.Profile, m *learn.Model) *alike {
	some := func(chance, a, b float64) float64 {
		if rng.Float64() > chance {
			return a
		}
		return a + (b-a)*rng.Float64()
	}
	a := &alike{
		model: m, profile: p, limit: live.Unlimited(), objective: "energy", timeWeight: some(0.3, 0, 200),
		limitMargin: some(0.5, 0.1, 0.3), deadlineMargin: math.Floor(some(0.3, 0, 300)),
		timeMargin: some(0.5, 0.1, 0), stretch: some(0.5, 1.5, 1),
		minCore: some(0.3, 0.4, 0.9), maxCore: some(0.3, 1.5, 1), minMem: some(0.3, 0.4, 1), maxMem: 1.5,
	}
	if rng.IntN(4) == 0 {
		a.objective, a.timeWeight = []string{"edp", "ed2p"}[rng.IntN(2)], 0
	}
	longest := m.At(p.Default.Core, p.Default.Mem).Time
	if rng.IntN(4) > 0 {
		a.limit = live.LimitOf(time.Duration(longest*(0.7+2*rng.Float64())) * time.Second)
	}
	if rng.IntN(2) == 0 {
		a.deadline = time.Duration(longest*(0.8+2*rng.Float64())) * time.Second
	}
	return a
}

// configuration returns the one of the job's cluster.
func (a *alike) configuration() string {
	return fmt.Sprintf("[safety]\nlimit_margin = %v\ndeadline_margin_s = %v\n[objective]\n"+
		"name = %q\ntime_weight = %v\n"+
		"[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0\nmin_gain = %v\nmax_slowdown = %v\n"+
		"time_margin = %v\nmin_core = %v\n"+
		"max_core = %v\nmin_mem = %v\nmax_mem = %v\n",
		a.limitMargin, a.deadlineMargin, a.objective, a.timeWeight, a.minGain, a.stretch, a.timeMargin, a.minCore,
		a.maxCore, a.minMem, a.maxMem)
}

// chooser is epd's for the job, on a GPU of its own.
func (a *alike) chooser(tb testing.TB, configuration string) *chooser {
	tb.Helper()
	s := settings(tb, configuration)
	r := &epdapi.DecideRequest{
		Job: 1, GPUModel: a.profile.Name, GPUs: 1, Clocks: epdapi.GroupClocks(a.profile.Pairs()),
	}
	d := live.Decision{GPUModel: a.profile.Name, Workload: "w", Mode: s.Live.Mode, Arm: live.ArmExcluded}
	if a.deadline > 0 {
		d.Wish.Deadline = start.Add(a.deadline)
	}
	job := jobs.FromDescription(0, "", "p", "")
	job.Limit, job.GPUs, job.Nodes = a.limit, 1, 1
	return &chooser{
		settings: s, table: newTable(s, r, dvfsmodel.Setting{}), model: learn.View{Model: a.model}, request: r,
		job: job,
		now: start, decision: &d,
	}
}

// live returns what epd chooses where it enforces. False: nothing is sure to be in time, and
// default clocks are left.
func (a *alike) live(tb testing.TB) (dvfsmodel.Setting, bool) {
	tb.Helper()
	ch := a.chooser(tb, a.configuration())
	ch.choose(&slurm.Wishes{Deadline: ch.decision.Wish.Deadline})
	d := ch.decision
	if d.Core == 0 {
		return a.profile.Default, !strings.Contains(d.Reason, "no others are sure")
	}
	return dvfsmodel.Setting{Core: d.Core, Mem: cmp.Or(d.Mem, a.profile.Default.Mem)}, true
}

// catalog knows one workload on one GPU model.
type catalog struct {
	*alike
	response dvfsmodel.Response
}

func (c catalog) Hardware(string) (join.Hardware, error) {
	table, err := c.profile.Table()
	return join.Hardware{Name: c.profile.Name, Table: table, Default: c.profile.DefaultPoint()}, err
}
func (c catalog) Workload(_, _ string) (dvfsmodel.Response, error) { return c.response, nil }
func (c catalog) CheckWorkload(string) error                       { return nil }
func (c catalog) Uncertainty(_, _ string) *dvfsmodel.Uncertainty   { return nil }

// offline returns what a plan chooses for a job that is alone and starts at once.
func (a *alike) offline(tb testing.TB) (dvfsmodel.Setting, bool) {
	tb.Helper()
	m := config.NewModel("w", a.profile.Name, a.model.Fitted)
	response, err := m.Response(a.profile)
	if err != nil {
		tb.Fatal(err)
	}
	job := queue.NewJob("j")
	job.Workload = "w"
	job.Limit = a.limit.Seconds()
	if a.deadline > 0 {
		job.Deadline = a.deadline.Seconds()
	}
	objective, err := dvfsmodel.ObjectiveByName(a.objective)
	if err != nil {
		tb.Fatal(err)
	}
	objective.TimeWeight = a.timeWeight
	p := &planner.Problem{
		Objective: objective, Mode: planner.Offline,
		Cluster: planner.Cluster{
			Classes: []planner.NodeClass{{
				Name: "c", Model: a.profile.Name, GPUs: 1, Count: 1, HostW: a.profile.HostW,
			}},
		},
	}
	margins := join.Margins{Limit: a.limitMargin, Deadline: a.deadlineMargin}
	var warnings []error
	if p.Tasks, warnings, err = join.Tasks(&queue.Batch{Jobs: []queue.Job{job}}, &p.Cluster,
		catalog{a, response}, margins); err != nil {
		tb.Fatal(err)
	}
	q, ok := tune.Optimum(1)(p).Want(0, 0, 0, p.Tasks[0].TimeBudget())
	// A job that can't end within its limit is planned for that, with a warning.
	killed := len(queue.WithoutWarnings(warnings, queue.WarnKilled)) < len(warnings)
	return dvfsmodel.Setting{Core: q.Point.Core, Mem: q.Point.Mem}, ok && !killed
}

// modelPool are models of workloads on some GPU models.
type modelPool struct {
	profiles []*config.Profile
	models   []*learn.Model
}

func newPool(tb testing.TB, rng *rand.Rand, each int) *modelPool {
	tb.Helper()
	var p modelPool
	known := settings(tb, "").Profiles
	for _, name := range []string{"V100", "GTX1080Ti", "V100-2022", "RTX2070S", "GTX980"} {
		profile, err := known.Lookup(name)
		if err != nil {
			tb.Fatal(err)
		}
		for _, m := range modelsOf(tb, rng, profile, each) {
			p.profiles, p.models = append(p.profiles, profile), append(p.models, m)
		}
	}
	return &p
}

func (p *modelPool) draw(rng *rand.Rand) *alike {
	k := rng.IntN(len(p.models))
	return drawAlike(rng, p.profiles[k], p.models[k])
}

// cases returns how many cases are drawn: a fifth in a short run.
func cases(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

// cautions are what epd is told beside what a plan is told; each sets it to nothing.
var cautions = []struct {
	name string
	off  func(a *alike)
}{
	{"clocks that administrators bar", func(a *alike) {
		a.minCore, a.maxCore, a.minMem, a.maxMem = 0.01, 10, 0.01, 10
	}},
	{"stretch of the run itself", func(a *alike) { a.stretch = 100 }},
	{"margins of limit, deadline and model", func(a *alike) {
		a.limitMargin, a.timeMargin, a.deadlineMargin = 0, 0, 0
		m := *a.model
		m.Margin, a.model = 0, &m
	}},
	{"clocks that nobody measured", func(a *alike) {
		m := *a.model
		m.Low, m.High = dvfsmodel.Setting{Core: 1, Mem: 1}, dvfsmodel.Setting{Core: 1e5, Mem: 1e5}
		a.model = &m
	}},
}

// Told the same, a plan and epd choose the same clocks: there is one choice.
func TestAPlanAndEPDChooseTheSameClocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 2))
	from := newPool(t, rng, 100)
	lowered := 0
	for range cases(10_000) {
		a := from.draw(rng)
		for _, c := range cautions {
			c.off(a)
		}
		live, sure := a.live(t)
		offline, inTime := a.offline(t)
		if sure != inTime || (sure && live != offline) {
			t.Fatalf("epd %v (%v), a plan %v (%v): %v", live, sure, offline, inTime, a)
		}
		if sure && live != a.profile.Default {
			lowered++
		}
	}
	if lowered == 0 {
		t.Error("default clocks were always the best")
	}
}

// What epd is told besides makes it more careful, never less: it is sure of nothing that
// a plan has out of time, and where it sets clocks, the upper bound of the run fits what
// the job is promised.
func TestEPDIsAsCarefulAsItIsTold(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 3))
	from := newPool(t, rng, 40)
	differ, n := make([]int, len(cautions)), cases(2000)
	for range n {
		a := from.draw(rng)
		live, sure := a.live(t)
		_, inTime := a.offline(t)
		if sure && !inTime {
			t.Errorf("epd is sure of %v where no plan is in time: %v", live, a)
		}
		if why := a.careless(live); sure && why != "" {
			t.Errorf("%v: %s: %v", live, why, a)
		}
		for i := range cautions {
			one := *a
			for j, c := range cautions {
				if j != i {
					c.off(&one)
				}
			}
			live, sure := one.live(t)
			if offline, inTime := one.offline(t); sure != inTime || live != offline {
				differ[i]++
			}
		}
	}
	for i, c := range cautions {
		t.Logf("%-38s alone: other clocks, or default ones, in %4.1f %% of %d", c.name,
			100*float64(differ[i])/float64(n), n)
		if differ[i] == 0 {
			t.Errorf("%s: never of any effect", c.name)
		}
	}
}

// careless is why clocks may not be set: the rules once more, one by one.
func (a *alike) careless(at dvfsmodel.Setting) string {
	m, base := a.model, a.profile.Default
	upper := func(at dvfsmodel.Setting) float64 {
		core, mem := min(max(at.Core, m.Low.Core), m.High.Core), min(max(at.Mem, m.Low.Mem), m.High.Mem)
		edge := m.At(core, mem).Time * float64(max(1, core/at.Core)*max(1, mem/at.Mem))
		return max(m.At(at.Core, at.Mem).Time, edge) * (1 + max(m.Margin, a.timeMargin))
	}
	longest, most := upper(at), a.limit.Seconds()
	if a.deadline > 0 {
		most = min(most, a.deadline.Seconds()-a.deadlineMargin)
	}
	const rounding = 1e-9
	switch {
	case longest > most*(1+rounding) || m.At(at.Core, at.Mem).Time*(1+a.limitMargin) > most*(1+rounding):
		return fmt.Sprintf("may take %v s of %v", longest, most)
	case longest > a.stretch*upper(base)*(1+rounding):
		return fmt.Sprintf("may take %v s, %v times as long as at default clocks", longest,
			longest/upper(base))
	case at == base:
		return ""
	case at.Mem < m.Low.Mem || at.Mem > m.High.Mem:
		return "nobody measured that memory clock"
	case at.Core < base.Core*dvfsmodel.MHz(a.minCore*(1-rounding)) ||
		at.Mem < base.Mem*dvfsmodel.MHz(a.minMem*(1-rounding)) ||
		at.Core > base.Core*dvfsmodel.MHz(a.maxCore*(1+rounding)):
		return "barred by the administrator"
	}
	return ""
}

// TestAJobRunsNoLongerThanItsPartitionOrItsUserSays draws bounds: the default one, the partition's, and a
// user's own, which counts before both.
func TestAJobRunsNoLongerThanItsPartitionOrItsUserSays(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 8))
	from := newPool(t, rng, 40)
	var slowed [3]int
	for range cases(2000) {
		a := from.draw(rng)
		a.limit, a.deadline, a.objective = live.Unlimited(), 0, "energy"
		a.minCore, a.maxCore, a.minMem, a.maxMem = 0.1, 1.5, 0.1, 1.5
		text := "[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0\nmin_core = 0.1\nmin_mem = 0.1\n"
		wishes, kind := slurm.Wishes{}, rng.IntN(3)
		switch a.stretch, a.timeMargin, a.limitMargin = 1.1, 0.1, 0.1; kind {
		case 1:
			a.stretch = 1 + rng.Float64()
			text += fmt.Sprintf("max_slowdown = 10\nmax_slowdowns = { p = %v, other = 1 }\n", a.stretch)
		case 2:
			wishes.Slowdown = 1 + rng.Float64()
			a.stretch = wishes.Slowdown
			text += "max_slowdowns = { p = 1.2 }\n"
		}
		ch := a.chooser(t, text)
		ch.choose(&wishes)
		if why := a.careless(a.setting(ch.decision)); why != "" {
			t.Fatalf("%s, want at most %v: %s", why, a.stretch, ch.decision.Reason)
		}
		if ch.decision.Predicted.Or(0) > ch.safe.Standard.Time*1.0001 {
			slowed[kind]++
		}
	}
	t.Logf("%v were slowed down", slowed)
	if slices.Contains(slowed[:], 0) {
		t.Error("some case never came")
	}
}
