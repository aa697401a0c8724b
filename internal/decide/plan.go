package decide

import (
	"cmp"
	"fmt"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// A plan of all that waits chooses clocks for what comes of them to others: a job is made faster so
// that a GPU is free in time, or slower where nobody waits for it. It only chooses among the clocks
// that the job may have anyway, and not for jobs that are drawn to run as without it. It knows clocks only:
// where power limits are chosen beside them, the job chooses one, and then takes no longer than at the plan's
// clocks.

// PlanRules is what a plan must know of how clocks are chosen.
type PlanRules struct{ decider *Decider }

// NewPlanRules returns the rules of a decider.
func NewPlanRules(dr *Decider) PlanRules { return PlanRules{dr} }

// Arm is that into which the lot puts a job, if it is eligible, on GPUs of a model.
func (p PlanRules) Arm(job slurm.JobID, gpuModel string) live.Arm {
	shares := p.decider.options.Settings().armShares(gpuModel)
	return shares.arm(drawUniform(&p.decider.armKey, job))
}

// Constant returns the clocks that a job of the constant arm gets, as [PlanRules.Admissible] has it of chosen
// ones; the zero value: the default ones.
func (p PlanRules) Constant(q *liveplan.ClockQuestion) dvfsmodel.Setting {
	if ch := p.chooser(q); ch != nil {
		if pt, _ := ch.constantPoint(q.Limit); pt != nil {
			return dvfsmodel.Setting{Core: pt.Core, Mem: pt.Mem}
		}
	}
	return dvfsmodel.Setting{}
}

// Admissible returns the clocks that may be chosen for a job, the default ones among them; false: nothing
// is known of its workload on the GPU model.
func (p PlanRules) Admissible(q *liveplan.ClockQuestion) ([]dvfsmodel.Setting, bool) {
	ch := p.chooser(q)
	if ch == nil || len(ch.table.Pairs) == 0 {
		return nil, false
	}
	safe := ch.safe
	clocks := []dvfsmodel.Setting{{Core: safe.Standard.Core, Mem: safe.Standard.Mem}}
	for _, pair := range safe.Settings {
		if pt := safe.At(pair.Core, pair.Mem); pair != clocks[0] && safe.Admits(&pt, q.Limit) {
			if _, little := pointIfWorthwhile(ch, &pt, q.Limit); little == "" {
				clocks = append(clocks, pair)
			}
		}
	}
	return clocks, true
}

// chooser is that of a job; nil: nothing is known of its workload on the GPU model.
func (p PlanRules) chooser(q *liveplan.ClockQuestion) *chooser {
	dr := p.decider
	s := dr.options.Settings()
	model := dr.options.Models.Model(record.WorkloadKey{
		Cluster: dr.options.Cluster, Workload: q.Workload, GPUModel: q.GPUModel,
	})
	if model.Model == nil {
		return nil
	}
	request := &epdapi.DecideRequest{GPUModel: q.GPUModel, Clocks: dr.clocksOf(s, q.GPUModel, model.Model)}
	seen := dr.GPUs.limit(q.GPUModel)
	request.PowerLimit, request.CoreFixed = seen.limit, seen.coreFixed
	ch := &chooser{
		settings: s,
		model:    model,
		request:  request,
		job: jobs.FromDescription(
			0,
			"",
			q.Partition,
			"",
		),
		decision: &live.Decision{GPUModel: s.ModelName(q.GPUModel)},
		slowdown: q.Slowdown,
	}
	ch.table, _ = dr.tableOn(s, request, q.Partition)
	ch.safe = ch.safeResponse(model.Model)
	ch.uncapped = ch.safe
	return ch
}

// RunTimes returns how long the jobs that were decided on are predicted to take, seconds.
func (p PlanRules) RunTimes() map[slurm.JobID]float64 {
	dr := p.decider
	dr.mu.Lock()
	defer dr.mu.Unlock()
	all := make(map[slurm.JobID]float64, len(dr.decided))
	for key, d := range dr.decided {
		if seconds, known := d.Predicted.Get(); known && seconds > all[key.job] {
			all[key.job] = seconds
		}
	}
	return all
}

// waitingWords says that others wait for the run's GPUs, where that counted; empty: it didn't.
func waitingWords(backlog float64) string {
	if backlog == 0 {
		return ""
	}
	return fmt.Sprintf(", while others wait for %.0f%% of the GPUs there", 100*backlog)
}

// followPlan has the run be at the clocks that the plan in force has for it, or at the nearest that are
// no slower, if it may be there within the budget. Else the clocks stay those that were chosen, and the
// reason says why.
func (ch *chooser) followPlan(budget float64) {
	mode := ch.settings.Live.PlanModeOf(ch.job.Partition.Value())
	if ch.planned == nil || mode == config.PlanOff || mode == config.PlanObserve {
		return
	}
	d, advice := ch.decision, ch.planned()
	planned := advice.Job
	if advice.Policy == "" {
		return
	}
	aside := func(format string, args ...any) {
		d.Reason += " (plan " + advice.Policy + ": " + fmt.Sprintf(format, args...) + ")"
	}
	if planned == nil {
		aside("%s", advice.Why)
		return
	}
	if planned.HeldOut { // while it waited, an array had one lot for all of its tasks
		aside("it has the array at the clocks that it would have without it")
		return
	}
	if planned.GPUModel != d.GPUModel {
		aside("it has the job on %s", planned.GPUModel)
		return
	}
	wanted := plannedClocks(planned, &ch.safe.Standard)
	pt, ok := ch.safe.NoSlower(wanted, ch.objective(), budget)
	switch {
	case !ok:
		aside("%s isn't sure to end in time, or not allowed", planned.Words())
		return
	case mode == config.PlanAdvise || d.Mode != live.Enforce:
		aside("it would have the job at %s", planned.Words())
		return
	}
	why := fmt.Sprintf("%s; planned to start at %s on %s", planned.Reason,
		planned.Start.UTC().Format(time.RFC3339), planned.NodeClass)
	by := "by plan " + advice.Policy
	if at := (dvfsmodel.Setting{Core: pt.Core, Mem: pt.Mem}); at != wanted {
		by += ", the nearest to " + planned.Words() + " that may be set"
	}
	if m := ch.cappedModel(); m != nil && pt.Cap == 0 { // plans know clocks only
		caps := ch.request.PowerLimit.Among(m.Caps)
		if under, ok := ch.safe.NoSlowerUnderCap(m, caps, &pt, ch.objective(), budget); ok &&
			ch.others.allAllow(&under, budget) {
			pt = under
			by += ", and by the job's own choice of a power limit, under which it takes no longer"
		}
	}
	if worth, little := pointIfWorthwhile(ch, &pt, budget); little != "" {
		pt = worth
		by += ", " + little
	}
	if pt.Core == ch.safe.Standard.Core && pt.Mem == ch.safe.Standard.Mem && pt.Cap == 0 {
		ch.revertToDefault(by + ": default clocks; " + why)
		return
	}
	ch.setPoint(&pt)
	ch.applyByMode(fmt.Sprintf("%s: %s: %s and %.0f%% of the time at default clocks, by %s; %s", by, d.Words(),
		ch.energyWords(&pt), 100*pt.Time/ch.safe.Standard.Time, ch.model.Model, why))
}

// plannedClocks returns the clocks that a plan has for a job, the default ones by their numbers.
func plannedClocks(planned *live.PlannedJob, standard *dvfsmodel.Point) dvfsmodel.Setting {
	return dvfsmodel.Setting{
		Core: cmp.Or(planned.Core, standard.Core), Mem: cmp.Or(planned.Mem, standard.Mem),
	}
}
