package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/spelling"
)

// PlanMode is what a plan of Slurm's queue may do in a partition.
type PlanMode string

// The modes of plans. What [Live.ModeOf] says of the partition bounds them.
const (
	PlanOff     PlanMode = "off"     // its jobs are planned only beside those of others
	PlanObserve PlanMode = "observe" // the plan is shown
	PlanAdvise  PlanMode = "advise"  // and said where it would do something else
	PlanEnforce PlanMode = "enforce" // order and clocks are the plan's
)

// planWords are the modes, the most careful first.
var planWords = []string{string(PlanOff), string(PlanObserve), string(PlanAdvise), string(PlanEnforce)}

// LivePlan is the plan of what waits in Slurm's queue that is kept in force.
type LivePlan struct {
	// Mode is that of partitions which Modes doesn't name.
	Mode   PlanMode
	Modes  map[string]PlanMode // by partition
	Policy string              // a policy string, or [Best]
	Paces  map[string]float64  // by partition, in place of the policy's
	Window int                 // tasks that are planned at most: those that wait longest
	Every  float64             // seconds after which the plan is made anew at the latest
	Stale  float64             // seconds after which a plan that isn't made anew counts no more
	// StaleJobs is the part of the pending jobs that a plan may not know yet.
	StaleJobs float64
}

func defaultPlan() LivePlan {
	const minute, tenMinutes, window, part = 60, 600, 1000, 0.2
	return LivePlan{
		Mode: PlanOff, Policy: "edl", Window: window, Every: minute, Stale: tenMinutes, StaleJobs: part,
	}
}

// MaxPlanWindow is how many tasks a live plan is made of at most.
const MaxPlanWindow = 100_000

func (p *LivePlan) fields() []field {
	return []field{
		choiceField("mode",
			"What a plan of all pending jobs may do: off (no plan), observe (is shown), advise (also says\n"+
				"where it differs) or enforce (orders jobs and sets clocks). Never more than mode and modes of\n"+
				"[live] allow.",
			(*string)(&p.Mode), planWords...),
		partitionTableField("modes", "mode by partition.",
			"off, observe, advise or enforce", &p.Modes, planWords),
		checkedField(lineField("policy",
			"Policy that makes the plan, such as edl or replan,pace=1.", &p.Policy), checkPolicy),
		partitionNumberField("paces",
			"pace by partition for a policy that has one, as in [safety].", &p.Paces,
			numberRange{min: 1, max: MaxFactor}),
		intField("window", "Most tasks in a plan: those that wait longest.", &p.Window, 1,
			MaxPlanWindow),
		numberField("every_s",
			"Most seconds between plans. Jobs that come, go or start cause a new one, too.",
			&p.Every, numberRange{min: 1, max: maxNumber}),
		numberField("stale_s",
			"Seconds after which a plan that isn't renewed doesn't count. Jobs then get clocks as without it.",
			&p.Stale, numberRange{min: 1, max: maxNumber}),
		numberField("stale_jobs",
			"Fraction of pending jobs that a plan may not know. If there are more, it doesn't count.",
			&p.StaleJobs, numberRange{max: 1}),
	}
}

// modeOf returns the plan's mode of a partition; of several, with commas between, the most
// careful one.
func (p *LivePlan) modeOf(partitions string) PlanMode {
	return strictest(partitions, p.Modes, p.Mode, planWords)
}

// PaceOf returns the pace that a partition has of its own; 0: none. Of several partitions, with commas
// between, the strictest counts.
func (p *LivePlan) PaceOf(partitions string) float64 {
	if pace := chooseOverPartitions(partitions, p.Paces, policy.PaceOf(p.Policy), slices.Min); len(p.Paces) > 0 {
		return pace
	}
	return 0
}

// checkPaces notes paces that the policy doesn't go by, and those beyond what a job may take at most.
func (p *LivePlan) checkPaces(d *document, most float64) {
	for _, partition := range slices.Sorted(maps.Keys(p.Paces)) {
		switch pace, path := p.Paces[partition], joinKey("live.plan.paces", partition); {
		case policy.PaceOf(p.Policy) == 0:
			d.faultAt(path, "live.plan.paces has partition %s, want it left out, or a policy that goes by a pace, "+
				"such as replan,pace=1: %q doesn't", quoteName(partition), p.Policy)
		case pace > most:
			d.faultAt(path, "live.plan.paces has partition %s at %v, want max_turnaround, %v, at most",
				quoteName(partition), pace, most)
		}
	}
}

// isOff reports whether no partition has a plan.
func (p *LivePlan) isOff() bool {
	for _, mode := range p.Modes {
		if mode != PlanOff {
			return false
		}
	}
	return p.Mode == PlanOff
}

// PlanModeOf returns what a plan may do to jobs of a partition: no more than epd may. Of several, with
// commas between, the most careful mode counts.
func (l *Live) PlanModeOf(partitions string) PlanMode {
	mode := l.Plan.modeOf(partitions)
	if bound := PlanMode(l.ModeOf(partitions)); slices.Index(planWords, string(bound)) <
		slices.Index(planWords, string(mode)) {
		return bound
	}
	return mode
}

// OrderModeOf returns what may be done about the place of a partition's jobs in the order of a
// plan.
func (l *Live) OrderModeOf(partition string) live.Mode {
	if l.Plan.isOff() { // the order of [live.pick], or none
		return l.ModeOf(partition)
	}
	switch mode := l.PlanModeOf(partition); mode {
	case PlanOff:
		return live.Observe
	default:
		return live.Mode(mode)
	}
}

// Planning is the plan that a configuration asks for, by [live.plan] or, its order alone, by
// [live.pick].
type Planning struct {
	LivePlan
	OrderOnly bool
}

// Planning returns the plan that is wanted; false: none is.
func (l *Live) Planning() (Planning, bool) {
	if !l.Plan.isOff() {
		return Planning{LivePlan: l.Plan}, true
	}
	if l.Pick.Policy == PickDeadline || l.OnlyObserves() {
		return Planning{}, false
	}
	p := defaultPlan()
	p.Policy, p.Every, p.StaleJobs = l.Pick.Policy, l.Pick.Every, 1
	const renewals = 10
	p.Stale = max(p.Stale, renewals*p.Every)
	return Planning{LivePlan: p, OrderOnly: true}, true
}

// RenewalWithin returns how often what follows from the queue is worked out: as often as the order or the
// plan of it is made anew, and within so long.
func (l *Live) RenewalWithin(most time.Duration) time.Duration {
	every := l.Pick.Every
	if !l.Plan.isOff() {
		every = l.Plan.Every
	}
	if every <= 0 {
		return most
	}
	return min(most, live.Known(every).Duration())
}

// Parse returns the policy that makes the plan.
func (p *Planning) Parse() (*planner.Policy, error) {
	return policy.Parse(p.policyString(), policy.DefaultParams())
}

// policyString returns the policy string as the registry knows it.
func (p *Planning) policyString() string {
	if p.Policy == Best {
		return policy.SearchPolicy
	}
	return p.Policy
}

// CountsDeadlines reports whether the policy has jobs meet their deadlines before it looks at anything else.
func (p *Planning) CountsDeadlines() bool { return policy.CountsDue(p.policyString()) }

// check notes a plan beside another order of the queue.
func (p *LivePlan) check(d *document, pick *LivePick) {
	if p.isOff() || pick.Policy == PickDeadline {
		return
	}
	key := "live.plan.mode"
	if len(p.Modes) > 0 {
		key = "live.plan.modes"
	}
	d.faultAt(key, "live.pick.policy is %q beside a plan by %q, want it left out: jobs are put in the order of "+
		"the plan", pick.Policy, p.Policy)
}

// PickDeadline is the order of the queue that looks at nothing but deadlines.
const PickDeadline = "deadline"

// LivePick says in which order pending jobs are put, within what [Live.Reorder]
// allows, where there is no plan that says so; and for how long a job may be put behind
// others.
type LivePick struct {
	// Policy is [PickDeadline] or a policy string. With a policy, jobs go in the
	// order in which it would start them, those with a deadline before.
	Policy string
	Every  float64 // seconds after which the order is made anew
	// Ageing is how many seconds after it could start a job is put behind others
	// at most: until then it comes forward step by step.
	Ageing float64
	// AgeingFactor is the same as a multiple of the job's time limit; 0: no such
	// bound.
	AgeingFactor float64
}

func defaultPick() LivePick {
	const minute, day = 60, 86_400
	return LivePick{Policy: PickDeadline, Every: minute, Ageing: day}
}

func (p *LivePick) fields() []field {
	return []field{
		checkedField(lineField("policy",
			"Order of pending jobs without [live.plan]: deadline (jobs with one first, the others unchanged),\n"+
				"or the order of starts of a policy such as value or simple-backfill.",
			&p.Policy), checkPick),
		numberField("every_s", "Seconds after which a policy's order is renewed.", &p.Every,
			numberRange{min: 1, max: maxNumber}),
		numberField("ageing_s",
			"Seconds of waiting after which no order or plan puts a job behind others. Until then it comes\n"+
				"forward step by step.", &p.Ageing, nonNegativeRange),
		numberField("ageing_factor",
			"The same as a multiple of the job's time limit; 0: only ageing_s counts.",
			&p.AgeingFactor, nonNegativeRange),
	}
}

// checkPick accepts [PickDeadline] and what [policy.Parse] does.
func checkPick(text string) error {
	if text == PickDeadline {
		return nil
	}
	if text == Best {
		return fmt.Errorf("%s is for plans, want deadline or a policy by its name", quoteName(text))
	}
	if near := spelling.Nearest(text, []string{PickDeadline}); near != "" &&
		!slices.Contains(policy.Names(), text) {
		return fmt.Errorf("unknown policy %s, did you mean %s?", quoteName(text), quoteName(near))
	}
	return checkPolicy(text)
}
