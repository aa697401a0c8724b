package decide

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// chooser fills in one decision.
type chooser struct {
	settings *Settings
	table    *ClockTable
	model    learn.View
	request  *epdapi.DecideRequest
	job      *jobs.Job
	explores bool  // drawn at random
	had      int   // GPUs that the job has on the node at most, by Slurm; 0: it doesn't say
	staleErr error // why what is known of the job isn't fresh; nil: it is
	now      time.Time
	decision *live.Decision
	backlog  float64                // GPUs that other jobs wait for, by GPU that they could have
	planned  func() liveplan.Advice // by the plan in force; nil: it doesn't count for the job
	slowdown float64                // that the user wishes; 0: the partition's holds
	// suspected is a clock at which somebody else seems to hold the node's GPUs; 0: nobody does, or
	// the configuration says what the site's clocks there are.
	suspected dvfsmodel.MHz
	// safe answers by the model within what the configuration allows; nil where there is
	// nothing to choose: no model, no known limit, or somebody chose already.
	safe *choose.SafeResponse
	// uncapped is the same under the power limit that there is anyway.
	uncapped *choose.SafeResponse
	// others are the same by the models without the runs of each other node that weighs much in the model.
	others others
}

// choose goes through the rules, the strongest first.
func (ch *chooser) choose(wishes *slurm.Wishes) {
	d := ch.decision
	ch.slowdown = wishes.Slowdown
	switch {
	case ch.request.GPUs == 0:
		d.Reason = reasonNoGPUs
	case ch.suspected > 0:
		d.Reason = suspectedWords(ch.suspected)
	case ch.had > 0 && ch.request.GPUs > ch.had:
		d.Reason = fmt.Sprintf("the node says that the job has %d GPUs there, Slurm gave it %d: default clocks",
			ch.request.GPUs, ch.had)
	case ch.job.SharesGPUs() || ch.request.Shared && !ch.request.Left:
		d.Reason = reasonShared
		if wishes.IsFixed() {
			d.Reason = "the user fixed " + fixedSetting(wishes).Words() + ", but " + reasonShared
		}
	case ch.request.Shared:
		d.Reason = reasonLeft
	case wishes.Off:
		d.Reason = "the user opted out: default clocks"
	case ch.job.OwnFreq:
		d.Reason = jobs.ReasonOwnFreq
	case len(ch.table.Pairs) == 0:
		d.Reason = "the GPUs have no clocks to choose from"
	case wishes.IsFixed():
		ch.fixClocks(wishes)
	default:
		if ch.chooseByModel(); d.Workload == "" || ch.model.Model == nil {
			lowerWhenIdle(ch)
		}
	}
}

// fixedSetting returns the clocks and the power limit that a user chose.
func fixedSetting(w *slurm.Wishes) dvfsmodel.Setting {
	return dvfsmodel.Setting{
		Core: dvfsmodel.MHz(w.CoreMHz), Mem: dvfsmodel.MHz(w.MemoryMHz), Cap: dvfsmodel.Watt(w.CapW),
	}
}

// fixClocks takes the user's clocks and power limit if the device has them and the administrator
// allows them.
func (ch *chooser) fixClocks(wishes *slurm.Wishes) {
	d, t := ch.decision, ch.table
	want := fixedSetting(wishes)
	asked, at := want.Words(), want
	at.Core, at.Mem = cmp.Or(at.Core, t.Base.Core), cmp.Or(at.Mem, t.Base.Mem)
	refuse := func(why string) { d.Reason = "the user fixed " + asked + ", " + why + ": default clocks" }
	switch limit := ch.request.PowerLimit; {
	case want.Core > 0 && !t.supports(dvfsmodel.Setting{Core: at.Core, Mem: at.Mem}):
		refuse("which the GPU doesn't support")
		return
	case want.Core > 0 && !t.isUnderSite(dvfsmodel.Setting{Core: at.Core, Mem: at.Mem}):
		refuse("above the site's clocks, " + t.Site.Words())
		return
	case want.Core > 0 && !ch.settings.Live.AllowsClocks(at.Core, at.Mem, t.Base):
		refuse("outside what the administrator allows")
		return
	case want.Cap > 0 && limit.InForce == 0:
		refuse("and the GPU's power limit can't be set")
		return
	case want.Cap > 0 && !limit.Takes(want.Cap):
		refuse(fmt.Sprintf("and the GPU takes %v W to below %v W", float64(limit.Min), float64(limit.InForce)))
		return
	}
	d.Setting = want
	if m := ch.model.Model; m != nil {
		d.ModelVersion = m.Version
		response := ch.safeResponse(m)
		response.Cap = want.Cap
		ch.setPrediction(response.At(at.Core, at.Mem))
	}
	if d.Mem == t.Base.Mem {
		d.Mem = 0
	}
	ch.applyByMode("the user fixed " + asked)
}

// chooseByModel takes the cheapest clocks that are sure to keep the limit.
func (ch *chooser) chooseByModel() {
	d, m := ch.decision, ch.model.Model
	switch {
	case d.Workload == "":
		d.Reason = "default clocks: " + whyUnknown(ch.staleErr, "the workload isn't known")
		return
	case m == nil:
		d.Reason = "default clocks: " + ch.model.WhyNoModel(d.GPUModel)
		return
	}
	d.ModelVersion = m.Version
	sure := ch.safeResponse(m)
	standard := &sure.Standard
	ch.setPrediction(*standard)
	d.DefaultJ = d.EnergyJ
	switch {
	case !ch.job.Limit.IsSet():
		d.Reason = "default clocks: " + whyUnknown(ch.staleErr, "the time limit isn't known")
		return
	case ch.model.Only != "":
		d.Reason = "default clocks: all runs of this workload so far were on " +
			slurm.Printable(ch.model.Only, maxErrText) + ", first one on another node has to confirm them"
		return
	}
	ch.safe, ch.uncapped = sure, sure
	budget, bound := ch.timeBudget()
	restrictToOthers(ch, budget)
	best, err := ch.optimum(budget)
	var little string
	if err == nil {
		best, little = pointIfWorthwhile(ch, &best, budget)
		if pt, learns := ch.probe(&best, budget); learns {
			ch.takeProbe(&pt)
			return
		}
	}
	if ch.decideAdaptation(budget) {
		return
	}
	switch {
	case err != nil:
		d.Reason = fmt.Sprintf("default clocks: no others are sure to end within the %s of %s", bound,
			durationWords(budget))
	case best.Core == standard.Core && best.Mem == standard.Mem && best.Cap == 0 && little != "":
		d.Reason = "default clocks: " + little + waitingWords(ch.backlog)
	case best.Core == standard.Core && best.Mem == standard.Mem && best.Cap == 0:
		d.Reason = "default clocks are the best ones"
		if forbidden := heldBackWords(ch, budget, bound); forbidden != "" {
			d.Reason = "default clocks: " + forbidden
		}
		d.Reason += priceAndWaitingWords(ch)
	default:
		ch.setPoint(&best)
		d.Arm = live.ArmTreated
		ch.applyByMode(fmt.Sprintf("%s: %s and %.0f%% of the time at default clocks, by %s%s",
			d.Words(), ch.energyWords(&best), 100*best.Time/standard.Time, m, priceAndWaitingWords(ch)))
		if d.Mode != live.Enforce {
			d.Arm = live.ArmExcluded
		}
	}
	ch.followPlan(budget)
}

// pointIfWorthwhile returns a point, or the one at default clocks where the point saves too little energy,
// GPUs with their share of the node, and is no faster; and then why.
func pointIfWorthwhile(ch *chooser, pt *dvfsmodel.Point, budget float64) (dvfsmodel.Point, string) {
	standard := ch.safe.At(ch.safe.Standard.Core, ch.safe.Standard.Mem) // under a constant power limit
	least := ch.settings.Live.MinGainOf(ch.job.Partition.Value())
	gain := 1 - float64(ch.energyWithHost(pt)/ch.energyWithHost(&standard))
	if *pt == standard || least == 0 || gain >= least || pt.Time < standard.Time ||
		!dvfsmodel.MeetsLimit(ch.safe.RequiredTime(&standard), budget) {
		return *pt, ""
	}
	at := dvfsmodel.Setting{Core: pt.Core, Cap: pt.Cap}
	if pt.Mem != standard.Mem {
		at.Mem = pt.Mem
	}
	return standard, fmt.Sprintf("%s would save %.1f%% energy, less than %v%% (min_gain)", at.Words(), 100*gain,
		100*least)
}

// safeResponse returns how the workload answers to the clocks that may be set, by a model.
func (ch *chooser) safeResponse(m *learn.Model) *choose.SafeResponse {
	s := &choose.SafeResponse{
		Fitted: &m.Model, Settings: ch.table.Allowed, Standard: m.At(ch.table.Base.Core, ch.table.Base.Mem),
		TimeMargin: ch.settings.Live.TimeMargin, LimitMargin: ch.settings.Safety.LimitMargin,
		Stretch: cmp.Or(ch.slowdown, ch.settings.Live.SlowdownOf(ch.job.Partition.Value())),
		Limit:   ch.request.PowerLimit.InForce, Ladder: ch.table.Pairs,
	}
	s.Standard = s.Under(s.Standard.Core, s.Standard.Mem, s.Limit)
	if ch.holdsByCap() {
		s.Settings = slices.DeleteFunc(slices.Clone(s.Settings), func(at dvfsmodel.Setting) bool {
			return at.Mem != s.Standard.Mem || at.Core >= s.Standard.Core
		})
		s.ByCap = dvfsmodel.CapRange{Min: ch.request.PowerLimit.Min, Max: ch.request.PowerLimit.InForce}
	}
	return s
}

// setPoint has the run be at a point.
func (ch *chooser) setPoint(pt *dvfsmodel.Point) {
	d := ch.decision
	ch.setPrediction(*pt)
	d.Setting = dvfsmodel.Setting{Core: pt.Core, Cap: pt.Cap}
	if pt.Mem != ch.safe.Standard.Mem {
		d.Mem = pt.Mem
	}
	if pt.Cap > 0 && !ch.locksCoreToo(pt) {
		d.Core = 0
	}
}

// applyByMode says what is done by the mode.
func (ch *chooser) applyByMode(what string) {
	d := ch.decision
	switch d.Mode {
	case live.Enforce:
		d.Apply, d.Reason = true, what
	case live.Advise:
		d.Reason = "advice: " + what
	case live.Observe:
		d.Reason = "only observed; else: " + what
	default:
		d.Reason = fmt.Sprintf("mode %q touches nothing; else: %s", d.Mode, what)
	}
}

// revertToDefault leaves the GPUs at default clocks after all.
func (ch *chooser) revertToDefault(why string) {
	d := ch.decision
	d.Reason = why
	d.Apply, d.Setting, d.Adapt = false, dvfsmodel.Setting{}, nil
	if m := ch.model.Model; ch.safe != nil {
		ch.setPrediction(ch.safe.Standard)
	} else if m != nil {
		ch.setPrediction(m.At(ch.table.Base.Core, ch.table.Base.Mem))
	}
}

// timeBudget returns how long the run may take at most, and what says so.
func (ch *chooser) timeBudget() (limit float64, bound string) {
	return ch.job.RunLimit(ch.now, ch.decision.Wish.Deadline, ch.settings.Safety.DeadlineMargin)
}

// objective returns what clocks are chosen by, the host's power included, and what it costs that others
// wait for the run's GPUs.
func (ch *chooser) objective() dvfsmodel.Objective {
	goal := &ch.settings.Goal
	o := goal.Objective
	o.EnergyWeight *= priceRatio(ch)
	return o.WithHost(ch.hostPower()).WithBacklog(goal.WaitWeight, ch.backlog)
}

// priceRatio returns what energy costs during the run as it is at default clocks, in terms of the constant
// price; 1 where the price doesn't change.
func priceRatio(ch *chooser) float64 {
	constant := ch.settings.Goal.Objective.EnergyWeight
	if ch.settings.EnergyWeight == nil || ch.safe == nil || constant == 0 {
		return 1
	}
	return max(0, ch.settings.EnergyWeight(ch.now, ch.safe.Standard.Time)/constant)
}

// priceAndWaitingWords says how far the price of energy during the run is from the constant one, if it is
// a per cent, and that others wait for its GPUs.
func priceAndWaitingWords(ch *chooser) (words string) {
	if ratio := priceRatio(ch); math.Abs(ratio-1) >= 0.01 {
		words = fmt.Sprintf(", with energy at %.0f%% of its usual price", 100*ratio)
	}
	return words + waitingWords(ch.backlog)
}

// hostPower returns the watts of the rest of the node for each of its GPUs.
func (ch *chooser) hostPower() dvfsmodel.Watt { return ch.settings.HostPower(ch.decision.GPUModel) }

// energyWithHost returns a GPU's energy with its share of the node's, as reports state it.
func (ch *chooser) energyWithHost(pt *dvfsmodel.Point) dvfsmodel.Joule {
	return pt.Energy + ch.hostPower().Over(pt.Time)
}

// energyWords says how much of the energy at default clocks a point needs.
func (ch *chooser) energyWords(pt *dvfsmodel.Point) string {
	standard := &ch.safe.Standard
	text := fmt.Sprintf("%.0f%% of the GPUs' energy", 100*pt.Energy/standard.Energy)
	if ch.hostPower() > 0 {
		text += fmt.Sprintf(" (%.0f%% with their share of the node)",
			100*ch.energyWithHost(pt)/ch.energyWithHost(standard))
	}
	return text
}

// setPrediction notes what a point would take.
func (ch *chooser) setPrediction(pt dvfsmodel.Point) {
	d := ch.decision
	d.Predicted = live.Known(pt.Time)
	upper := ch.safeResponse(ch.model.Model).UpperTime(&pt)
	for i := range ch.others.list {
		o := ch.others.list[i].safe
		at := o.At(pt.Core, pt.Mem)
		upper = max(upper, o.UpperTime(&at))
	}
	if m := ch.cappedModel(); m != nil && pt.Cap > 0 {
		upper = max(upper, pt.Time*(1+m.Margin))
	}
	d.Upper = live.Known(upper)
	d.PowerW = live.Known(float64(pt.Power))
	d.EnergyJ = live.Known(float64(pt.Energy) * float64(ch.request.GPUs))
}

// maxErrText is how much of an error a reason has, bytes.
const maxErrText = 400

// whyUnknown is why what a choice needs isn't known: by the error about what is known of
// the job, if there is one.
func whyUnknown(err error, otherwise string) string {
	if err == nil {
		return otherwise
	}
	if errors.Is(err, jobs.ErrUnknown) {
		return "the job isn't known, nor is its time limit"
	}
	return otherwise + ": " + slurm.Printable(err.Error(), maxErrText)
}

// durationWords is so many seconds in words; "time" for more than a limit can be.
func durationWords(s float64) string {
	if s > float64(math.MaxInt32) {
		return "time"
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// relaxed is a choice without one of the bounds that it has.
type relaxed struct {
	key    string // that sets the bound
	safe   *choose.SafeResponse
	budget float64
}

// heldBackWords says which bounds forbid clocks that would be chosen instead of the default ones, and what
// these would have come to; "" if no single one does. The least bound of those that each change the choice
// alone comes first.
func heldBackWords(ch *chooser, budget float64, bound string) string {
	if ch.safe != ch.uncapped { // a constant power limit is chosen with the clocks
		return ""
	}
	slower, allowed := *ch.safe, *ch.safe
	slower.Stretch = math.Inf(1)
	all := []relaxed{{"max_slowdown", &slower, budget}, {bound, ch.safe, math.Inf(1)}}
	if ch.slowdown > 0 {
		all[0].key = "epplan:slowdown"
	}
	if allowed.ByCap == (dvfsmodel.CapRange{}) && len(ch.table.Pairs) > len(ch.table.Allowed) {
		allowed.Settings = ch.table.Pairs
		all = append(all, relaxed{"min_core and the other bounds of clocks", &allowed, budget})
	}
	var forbid []string
	for _, r := range all {
		best, err := r.safe.Optimum(ch.objective(), r.budget)
		if err != nil {
			continue
		}
		best, _ = pointIfWorthwhile(ch, &best, r.budget)
		if standard := &ch.safe.Standard; best.Core == standard.Core && best.Mem == standard.Mem {
			continue
		}
		at := dvfsmodel.Setting{Core: best.Core}
		if best.Mem != ch.safe.Standard.Mem {
			at.Mem = best.Mem
		}
		forbid = append(forbid, fmt.Sprintf("%s forbids %s, at %s and %.0f%% of the time", r.key, at.Words(),
			ch.energyWords(&best), 100*best.Time/ch.safe.Standard.Time))
	}
	return strings.Join(slices.Compact(forbid), "; ")
}
