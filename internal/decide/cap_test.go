package decide

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// capped is a job that is decided about on GPUs whose power limit can be set.
type capped struct {
	*alike
	limit     epdapi.PowerLimit
	coreFixed bool
	live      string // further lines of [live], and [live.cap]
}

func (c *capped) decide(t *testing.T) *live.Decision {
	t.Helper()
	ch := c.chooser(t, c.configuration()+c.live)
	ch.request.PowerLimit, ch.request.CoreFixed = c.limit, c.coreFixed
	ch.choose(&slurm.Wishes{Deadline: ch.decision.Wish.Deadline})
	shares := ch.settings.armShares(ch.decision.GPUModel)
	ch.drawArm(&shares, 0.5)
	return ch.decision
}

// standard returns the model's prediction at default clocks, under the power limit in force.
func (c *capped) standard() dvfsmodel.Point {
	base := c.profile.Default
	free := c.model.At(base.Core, base.Mem)
	return c.under(base.Core, base.Mem, c.limit.InForce, &free)
}

// at returns the prediction under a power limit.
func (c *capped) at(core, mem dvfsmodel.MHz, limit dvfsmodel.Watt) dvfsmodel.Point {
	standard := c.standard()
	return c.under(core, mem, limit, &standard)
}

// under returns the prediction under a power limit by the plainest means.
func (c *capped) under(
	core, mem dvfsmodel.MHz, limit dvfsmodel.Watt, standard *dvfsmodel.Point,
) dvfsmodel.Point {
	pt := c.model.NoFaster(core, mem, standard)
	for _, pair := range slices.Backward(slices.SortedFunc(slices.Values(c.profile.Pairs()), comparePairs)) {
		if pt.Power > limit && pair.Mem == mem && pair.Core < pt.Core {
			pt = c.model.NoFaster(pair.Core, mem, standard)
		}
	}
	return pt
}

// careless is why a setting with a power limit may not be set.
func (c *capped) careless(d *live.Decision) string {
	base := c.profile.Default
	at := dvfsmodel.Setting{Core: d.Core, Mem: d.Mem}
	if at.Core == 0 {
		at.Core = base.Core
	}
	if at.Mem == 0 {
		at.Mem = base.Mem
	}
	uncertain := 1 + dvfsmodel.Watt(max(c.model.Margin, c.timeMargin))
	runs, slowest := c.at(at.Core, at.Mem, d.Cap), c.at(at.Core, at.Mem, d.Cap/uncertain)
	standard := c.standard()
	upper := max(c.model.UpperTime(&runs, c.timeMargin), c.model.UpperTime(&slowest, c.timeMargin))
	most := c.alike.limit.Seconds()
	if c.deadline > 0 {
		most = min(most, c.deadline.Seconds()-c.deadlineMargin)
	}
	const rounding = 1 + 1e-9
	switch {
	case !c.limit.Takes(d.Cap):
		return "the board doesn't take it, or it is no lower"
	case math.Abs(d.Predicted.Or(0)-runs.Time) > 1e-9*runs.Time:
		return fmt.Sprintf("takes %v s, predicted are %v", runs.Time, d.Predicted)
	case math.Abs(d.PowerW.Or(0)-float64(runs.Power)) > 1e-9*float64(runs.Power):
		return fmt.Sprintf("takes %v W, predicted are %v", runs.Power, d.PowerW)
	case upper > d.Upper.Or(0)*rounding:
		return fmt.Sprintf("may take %v s, the bound is %v", upper, d.Upper)
	case upper > most*rounding || runs.Time*(1+c.limitMargin) > most*rounding:
		return fmt.Sprintf("may take %v s of %v", upper, most)
	case upper > c.stretch*c.model.UpperTime(&standard, c.timeMargin)*rounding:
		return fmt.Sprintf("may take %v s, too much of %v", upper, c.model.UpperTime(&standard, c.timeMargin))
	}
	return ""
}

func drawCapped(rng *rand.Rand, from *modelPool, lines string) *capped {
	c := &capped{alike: from.draw(rng), live: "[live.cap]\n" + lines}
	power := c.model.At(c.profile.Default.Core, c.profile.Default.Mem).Power
	c.limit = epdapi.PowerLimit{InForce: power * dvfsmodel.Watt(0.8+0.6*rng.Float64())}
	c.limit.Min, c.limit.Max = c.limit.InForce*0.4, c.limit.InForce
	return c
}

// A constant power limit is set beside the clocks where the run keeps what it is promised under it, by
// the clock that the limit allows; else the run is as without one.
func TestAConstantPowerLimitKeepsPromises(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 1))
	from := newPool(t, rng, 40)
	set, binds, left := 0, 0, 0
	for range cases(3000) {
		c := drawCapped(rng, from, "mode = \"constant\"\nlimit = 0.7\n")
		c.coreFixed = rng.IntN(4) == 0
		d := c.decide(t)
		off := *c
		off.live = ""
		without := off.decide(t)
		switch {
		case d.Cap == 0:
			left++
			if !c.coreFixed && (d.Setting != without.Setting || d.Apply != without.Apply) {
				t.Fatalf("%v without a limit, %v where none is wanted: %v", d.Setting, without.Setting, c)
			}
		case d.Cap != dvfsmodel.Watt(math.Round(0.7*float64(c.limit.InForce))):
			t.Fatalf("limit %v of %v", d.Cap, c.limit)
		case c.careless(d) != "":
			t.Fatalf("%v: %s: %v", d.Setting, c.careless(d), c)
		case c.coreFixed && d.Core != 0:
			t.Fatalf("%v where the core clock can't be locked", d.Setting)
		case !d.Apply || d.Arm != live.ArmTreated || !strings.Contains(d.Reason, "power at most"):
			t.Fatalf("%+v", d)
		default:
			set++
			if d.Core == 0 && c.at(c.profile.Default.Core, c.profile.Default.Mem, d.Cap).Core !=
				c.profile.Default.Core {
				binds++
			}
		}
	}
	if set == 0 || left == 0 || binds == 0 {
		t.Errorf("set %d times, of which it binds %d times, and left %d times", set, binds, left)
	}
}

// Where the core clock can't be locked a power limit of as much as a run draws holds it there.
func TestAPowerLimitIsChosenWhereTheClockCannotBeLocked(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 2))
	from := newPool(t, rng, 40)
	set := 0
	for range cases(3000) {
		c := drawCapped(rng, from, "mode = \"chosen\"\n")
		locked := c.decide(t)
		if locked.Cap != 0 {
			t.Fatalf("%v where the clock can be locked", locked.Setting)
		}
		c.coreFixed = true
		d := c.decide(t)
		if d.Cap == 0 {
			if d.Apply {
				t.Fatalf("%v where the clock can't be locked", d.Setting)
			}
			continue
		}
		set++
		if d.Core != 0 || d.Mem != 0 {
			t.Fatalf("%v", d.Setting)
		}
		if why := c.careless(d); why != "" {
			t.Fatalf("%v: %s: %v", d.Setting, why, c)
		}
		if d.EnergyJ.Or(0) > d.DefaultJ.Or(0)*(1+1e-9) && c.objective == "energy" && c.timeWeight == 0 &&
			c.profile.HostW == 0 {
			t.Fatalf("%v takes %v, by default %v", d.Setting, d.EnergyJ, d.DefaultJ)
		}
	}
	if set == 0 {
		t.Error("none was ever set")
	}
}

// The lot holds jobs out at the power limit that there is, and nothing is set unless it is wanted.
func TestJobsThatAreHeldOutKeepTheirPowerLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 3))
	from := newPool(t, rng, 40)
	held := 0
	for range cases(500) {
		c := drawCapped(rng, from, "mode = \"constant\"\nlimit = 0.9\n")
		ch := c.chooser(t, c.configuration()+c.live)
		ch.request.PowerLimit = c.limit
		ch.choose(&slurm.Wishes{})
		was := ch.decision.Cap
		ch.drawArm(&armShares{holdOut: live.Known(1)}, 0.5)
		if d := ch.decision; was > 0 && (d.Arm != live.ArmHeldOut || d.Apply || d.Setting != dvfsmodel.Setting{}) {
			t.Fatalf("%+v", d)
		}
		if was > 0 {
			held++
		}
		c.live = ""
		if d := c.decide(t); d.Cap != 0 {
			t.Fatalf("%v where none is wanted", d.Setting)
		}
		c.live, c.limit = "[live.cap]\nmode = \"constant\"\nlimit = 0.9\n", epdapi.PowerLimit{}
		if d := c.decide(t); d.Cap != 0 {
			t.Fatalf("%v where none can be set", d.Setting)
		}
	}
	if held == 0 {
		t.Error("none was ever held out")
	}
}

// Predictions at clocks above the one that the power limit in force allows are those at that clock.
func TestPredictionsKnowThePowerLimitInForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 4))
	from := newPool(t, rng, 40)
	bound := 0
	for range cases(500) {
		c := drawCapped(rng, from, "")
		ch := c.chooser(t, c.configuration())
		ch.request.PowerLimit = c.limit
		want := c.standard()
		if got := ch.safeResponse(ch.model.Model).Standard; got != want {
			t.Fatalf("%+v under %v, want %+v", got, c.limit, want)
		}
		if want.Core < c.profile.Default.Core {
			bound++
		}
	}
	if bound == 0 {
		t.Error("no limit was ever of any effect")
	}
}

// A node whose own limit is lower doesn't follow one that is set below a higher one.
func TestANodeFollowsOnlyAPowerLimitThatItCanTake(t *testing.T) {
	lead := &Decided{Decision: live.Decision{Node: "n1", Setting: dvfsmodel.Setting{Cap: 200}}, submitted: 1}
	for inForce, want := range map[dvfsmodel.Watt]bool{250: true, 200: false, 180: false, 0: false} {
		other := &Decided{
			Decision: live.Decision{Node: "n2"}, submitted: 1,
			limit: epdapi.PowerLimit{InForce: inForce, Min: 100, Max: 300},
		}
		if got := lead.canLead(other); got != want {
			t.Errorf("under %v W: follows: %v", float64(inForce), got)
		}
	}
}

// knowingLimits returns a job whose model knows runs under several limits, in which half of the power at
// default clocks is saved by a limit that hardly slows anything.
func knowingLimits(t *testing.T, rng *rand.Rand, from *modelPool) *capped {
	t.Helper()
	c := drawCapped(rng, from, "mode = \"chosen\"\n")
	at := c.profile.Default
	at.Cap = dvfsmodel.Watt(math.Round(float64(c.limit.InForce)))
	free := c.model.At(at.Core, at.Mem)
	fitted, err := dvfsmodel.NewFitted(dvfsmodel.CappedForm(), at, []dvfsmodel.Coefficient{
		{Name: "time.scale_s", Value: free.Time},
		{Name: "time.core_share", Value: rng.Float64()},
		{Name: "time.core_knee", Value: 0.7 + 0.5*rng.Float64()},
		{Name: "time.memory_exponent", Value: 0.5},
		{Name: "power.static_w", Value: float64(free.Power) * 0.3},
		{Name: "power.dynamic_w", Value: float64(free.Power) * (0.3 + 0.3*rng.Float64())},
		{Name: "power.voltage_slope", Value: 2},
		{Name: "power.voltage_knee", Value: 0.6 + 0.2*rng.Float64()},
		{Name: "power.memory_exponent", Value: 0.2},
		{Name: "power.cap_ratio", Value: 1},
		{Name: "power.cap_edge", Value: 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []dvfsmodel.Watt{0.3, 0.5, 0.7, 0.8, 0.9, 1} {
		fitted.Caps = append(fitted.Caps, dvfsmodel.Watt(math.Round(float64(part*at.Cap))))
	}
	m := *c.model
	m.Capped = &choose.Capped{
		Fitted: fitted, Low: dvfsmodel.Setting{Core: 1, Mem: 1}, Margin: 0.05 * rng.Float64(),
	}
	c.model = &m
	return c
}

// Clocks and a power limit are chosen together where runs under several limits say that it pays: within
// what the board takes, and as sure to be in time as clocks alone.
func TestAPowerLimitIsChosenBesideClocksByRunsUnderSeveral(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 9))
	from := newPool(t, rng, 40)
	set, both := 0, 0
	for range cases(3000) {
		c := knowingLimits(t, rng, from)
		d := c.decide(t)
		off := *c
		off.live = ""
		without := off.decide(t)
		if without.Cap != 0 {
			t.Fatalf("%v where no limit is chosen", without.Setting)
		}
		fixed := *c
		fixed.coreFixed = true
		if at := fixed.decide(t); at.Core != 0 {
			t.Fatalf("%v where the core clock can't be locked", at.Setting)
		}
		if d.Cap == 0 {
			if d.Setting != without.Setting {
				t.Fatalf("%v, and %v where limits aren't chosen", d.Setting, without.Setting)
			}
			continue
		}
		set++
		if d.Core != 0 {
			both++
		}
		if why := c.carelessTogether(d); why != "" {
			t.Fatalf("%v: %s: %v", d.Setting, why, c)
		}
		if !d.Apply || d.Arm != live.ArmTreated || !strings.Contains(d.Reason, "power at most") {
			t.Fatalf("%+v", d)
		}
	}
	if set < 20 || both == 0 {
		t.Errorf("a limit was set %d times, %d times beside a clock", set, both)
	}
}

// carelessTogether is why clocks and a limit may not be set that were chosen together.
func (c *capped) carelessTogether(d *live.Decision) string {
	base, m := c.profile.Default, c.model.Capped
	at := dvfsmodel.Setting{Core: cmp.Or(d.Core, base.Core), Mem: cmp.Or(d.Mem, base.Mem)}
	standard, predicted := c.standard(), d.Predicted.Or(0)
	uncertain := 1 + dvfsmodel.Watt(max(c.model.Margin, c.timeMargin))
	runs, slowest := c.at(at.Core, at.Mem, d.Cap), c.at(at.Core, at.Mem, d.Cap/uncertain)
	upper := max(c.model.UpperTime(&runs, c.timeMargin), c.model.UpperTime(&slowest, c.timeMargin),
		predicted*(1+max(m.Margin, c.timeMargin)))
	most := c.alike.limit.Seconds()
	if c.deadline > 0 {
		most = min(most, c.deadline.Seconds()-c.deadlineMargin)
	}
	most = min(most, c.stretch*c.model.UpperTime(&standard, c.timeMargin)) * (1 + 1e-9)
	factor := standard.Time / m.Under(c.limit.InForce).At(base.Core, base.Mem).Time
	want := max(standard.Time, m.Under(d.Cap).At(at.Core, at.Mem).Time*factor)
	switch {
	case !c.limit.Takes(d.Cap) || !slices.Contains(m.Caps, d.Cap):
		return fmt.Sprintf("limit %v of %+v and %v", d.Cap, c.limit, m.Caps)
	case upper > most || upper > d.Upper.Or(0)*(1+1e-9):
		return fmt.Sprintf("may take %v s of %v, its bound is %v", upper, most, d.Upper)
	case at.Core <= base.Core && at.Mem <= base.Mem && math.Abs(predicted-want) > 1e-9*want:
		return fmt.Sprintf("is predicted at %v s, want %v", predicted, want)
	}
	return ""
}

// No clocks are set that save less energy than min_gain of that at default clocks, GPUs with their share
// of the node, whatever the objective, unless a run is faster there, or default clocks aren't sure to end in
// time, or the run is one to learn from.
func TestNothingIsSetThatSavesLessThanTheLeastGain(t *testing.T) {
	from := newPool(t, rand.New(rand.NewPCG(19, 9)), 40)
	var seen gainSeen
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		minGain := rapid.SampledFrom([]float64{0, 0.02, 0.05, 0.2}).Draw(rt, "least gain")
		by := rapid.SampledFrom([]string{
			"min_gain = %v\n", "min_gains = { p = %v, other = 0.9 }\n",
		}).Draw(rt, "key")
		withCaps, planned := rapid.Bool().Draw(rt, "caps"), rapid.Bool().Draw(rt, "plan")
		more := planEnforced
		if rapid.IntRange(0, 3).Draw(rt, "adapt") == 0 {
			more += "[live.adapt]\nmode = \"on\"\n"
		}
		explores := rapid.Bool().Draw(rt, "explores")
		for range 40 {
			c := knowingLimits(t, rng, from)
			c.minGain = 0.9
			text := strings.Replace(c.configuration(), "min_gain = 0.9\n", fmt.Sprintf(by, minGain), 1) + more
			if withCaps {
				text += c.live
			}
			ch := c.chooser(t, text)
			if withCaps {
				ch.request.PowerLimit = c.limit
			}
			if planned {
				plan := drawAdvice(rng, c.alike)
				ch.planned = func() liveplan.Advice { return plan }
			}
			ch.backlog, ch.explores = float64(rng.IntN(3)), explores
			ch.choose(&slurm.Wishes{Deadline: ch.decision.Wish.Deadline})
			if ch.settings.Live.MinGainOf("p") != minGain {
				rt.Fatalf("min_gain is %v", ch.settings.Live.MinGainOf("p"))
			}
			if wrong := seen.wrong(ch, minGain); wrong != "" {
				rt.Fatalf("%v %s, want at least %v: %s", ch.decision.Setting, wrong, minGain, ch.decision.Reason)
			}
		}
	})
	t.Logf("%+v", seen)
	if seen.set == 0 || seen.adapted == 0 || seen.planned == 0 || seen.little == 0 {
		t.Error("some case never came")
	}
}

// gainSeen counts what became of runs, little of them for too small a gain.
type gainSeen struct{ set, adapted, planned, little int }

// wrong returns what is wrong about a decision: by what it says it takes, once more.
func (s *gainSeen) wrong(ch *chooser, minGain float64) string {
	d, standard := ch.decision, &ch.safe.Standard
	byPlan := strings.HasPrefix(d.Reason, "by plan")
	switch {
	case strings.Contains(d.Reason, "(min_gain)") && !d.Apply:
		s.little++
		return ""
	case !d.Apply || strings.HasPrefix(d.Reason, probeReason) && !byPlan:
		return ""
	case d.Adapt != nil:
		s.adapted++
		least := 1.0
		for _, l := range d.Adapt.Levels {
			least = min(least, l.Cost)
		}
		if 1-least < minGain {
			return fmt.Sprintf("saves %v at most", 1-least)
		}
		return ""
	case byPlan:
		s.planned++
	default:
		s.set++
	}
	host, seconds := float64(ch.settings.HostPower(d.GPUModel)), d.Predicted.Or(0)
	saved := 1 - (d.EnergyJ.Or(0)+host*seconds)/(float64(standard.Energy)+host*standard.Time)
	limit, _ := ch.timeBudget()
	if saved >= minGain-1e-9 || minGain == 0 || seconds < standard.Time ||
		!dvfsmodel.MeetsLimit(ch.safe.RequiredTime(standard), limit) {
		return ""
	}
	return fmt.Sprintf("saves %v", saved)
}
