package learn

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
)

// lookBack is how many windows of outcomes are looked through for runs at one
// clock, where adapted runs stand in between.
const lookBack = 4

// agreeing is by what part runs at the same clocks may differ for older ones to be
// taken for the same work.
const agreeing = 0.05

// evidence is what a workload's last runs say of it, the newest first.
type evidence struct {
	recent []dvfsmodel.Sample // of the last outcomes
	older  []dvfsmodel.Sample // of those before, as long as they agree
	// usage is the part of their time at default clocks in which runs that weren't
	// adapted were at work, at least; 0 where that isn't known.
	usage    float64
	measured bool // there are such runs
	// idle tells that in all runs, as far as that is known, the GPUs did next to nothing.
	idle  bool
	nodes map[string]int // of the runs
	// underLimits are the runs at the clocks and power limits that they were set to.
	underLimits []dvfsmodel.Sample
	// The nodes of these runs, one by one.
	recentOn, olderOn, underLimitsOn []string
}

// samples returns all of them.
func (e *evidence) samples() []dvfsmodel.Sample { return slices.Concat(e.recent, e.older) }

// evidenceOf reads what a workload's last runs say of it.
func (l *Learner) evidenceOf(
	ctx context.Context, key record.WorkloadKey, base dvfsmodel.Setting,
) (*evidence, error) {
	recent, older, err := l.lastOutcomes(ctx, key)
	if err != nil {
		return nil, err
	}
	e := &evidence{usage: 1, idle: true}
	today := limitOfToday(recent)
	e.recent, e.recentOn = e.samplesOf(recent, base, today)
	e.older, e.olderOn = e.samplesOf(older, base, today)
	if !e.measured {
		e.usage = 0
	}
	if !runsAgree(e.recent, e.older) {
		e.older, e.olderOn, older = nil, nil, nil
	}
	for _, outcomes := range [...][]record.Outcome{recent, older} {
		for i := range outcomes {
			if s, ok := cappedSample(&outcomes[i], base); ok {
				e.underLimits = append(e.underLimits, s)
				e.underLimitsOn = append(e.underLimitsOn, outcomes[i].Node)
			}
		}
	}
	return e, nil
}

// assignSiteClocks has runs by default count as runs at the clock at which they were for nearly all of their
// time, where the site holds GPUs of the model at clocks of its own.
func assignSiteClocks(on GPU, outcomes []record.Outcome) {
	if !on.SiteLimited {
		return
	}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Setting.Core != 0 || isAdapted(o) {
			continue
		}
		if clock, one := mostlyRanAt(o.Clocks, 0); one {
			o.Setting.Core = clock
		}
	}
}

// lastOutcomes returns those of a workload that its model is fitted to, the newest
// first. Where clocks are adapted few of them are runs that weren't, and at other
// clocks: these would be forgotten soon. So it looks further back for them.
func (l *Learner) lastOutcomes(
	ctx context.Context, key record.WorkloadKey,
) (recent, older []record.Outcome, err error) {
	page, err := l.options.Records.OutcomesOf(ctx, key, 0, fitWindow)
	if err != nil {
		return nil, nil, err
	}
	assignSiteClocks(l.options.GPU(key.GPUModel), page.Outcomes)
	recent = page.Outcomes
	is := func(o record.Outcome) bool { return isAdapted(&o) }
	if !slices.ContainsFunc(recent, is) {
		return recent, nil, nil
	}
	for further := 1; further < lookBack && page.Next != 0; further++ {
		if page, err = l.options.Records.OutcomesOf(ctx, key, page.Next, fitWindow); err != nil {
			return nil, nil, err
		}
		assignSiteClocks(l.options.GPU(key.GPUModel), page.Outcomes)
		older = append(older, slices.DeleteFunc(page.Outcomes, is)...)
	}
	return recent, older, nil
}

// samplesOf returns the samples of outcomes, by the power limit of today, and the nodes of each.
func (e *evidence) samplesOf(
	outcomes []record.Outcome, base dvfsmodel.Setting, today float64,
) (samples []dvfsmodel.Sample, on []string) {
	samples = make([]dvfsmodel.Sample, 0, len(outcomes))
	if e.nodes == nil {
		e.nodes = make(map[string]int)
	}
	for i := range outcomes {
		o := &outcomes[i]
		s, why := sampled(o, base)
		if why != "" || checkLimit(o, today) != "" {
			continue
		}
		samples, on = append(samples, s), append(on, o.Node)
		e.nodes[o.Node]++
		e.idle = e.idle && o.Utilisation.Or(1) < idleBelow
		if !isAdapted(o) {
			e.usage, e.measured = min(e.usage, usageOf(o, base)), true
		}
	}
	return samples, on
}

// where returns the evidence of the nodes that a condition allows.
func (e *evidence) where(allows func(node string) bool) *evidence {
	pick := func(samples []dvfsmodel.Sample, on []string) (some []dvfsmodel.Sample, there []string) {
		for i, node := range on {
			if allows(node) {
				some, there = append(some, samples[i]), append(there, node)
			}
		}
		return some, there
	}
	part := &evidence{usage: e.usage, measured: e.measured, idle: e.idle}
	part.recent, part.recentOn = pick(e.recent, e.recentOn)
	part.older, part.olderOn = pick(e.older, e.olderOn)
	part.underLimits, part.underLimitsOn = pick(e.underLimits, e.underLimitsOn)
	return part
}

// idleBelow is the utilisation below which a GPU counts as idle: its power and time follow no clock.
const idleBelow = 0.05

// nodeParts returns the parts of the runs that were on each node.
func (e *evidence) nodeParts() map[string]float64 {
	all := 0
	for _, runs := range e.nodes {
		all += runs
	}
	parts := make(map[string]float64, len(e.nodes))
	for node, runs := range e.nodes {
		parts[node] = float64(runs) / float64(all)
	}
	return parts
}

// runsAgree reports whether two groups of runs take about as long at the clocks that
// both were at.
func runsAgree(a, b []dvfsmodel.Sample) bool {
	for _, s := range a {
		mine, _ := meanAt(a, s.Core, s.Mem)
		if theirs, runs := meanAt(b, s.Core, s.Mem); runs > 0 && math.Abs(mine-theirs) > agreeing {
			return false
		}
	}
	return true
}

// meanAt returns the mean of the logarithms of run times at a pair of clocks, and of how
// many runs.
func meanAt(samples []dvfsmodel.Sample, core, mem dvfsmodel.MHz) (mean float64, runs int) {
	for _, s := range samples {
		if s.Core == core && s.Mem == mem {
			runs++
			mean += (math.Log(s.Time) - mean) / float64(runs)
		}
	}
	return mean, runs
}

// usageOf returns the part of its time at default clocks in which a run was at work,
// at least, by the part at the clocks that it had: there work took no longer than
// if all of it followed the clock.
func usageOf(o *record.Outcome, base dvfsmodel.Setting) float64 {
	usage := o.Utilisation.Or(0)
	if !(usage > 0 && usage <= 1) {
		return 0
	}
	core, _ := clockThatRan(o, cmp.Or(o.Setting.Core, base.Core))
	slower := max(1, float64(base.Core/core))
	return usage / (usage + slower*(1-usage))
}
