package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/savings"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Savings returns what treated runs used less than held-out ones, of jobs that ended since a
// time and before another one; zero times: ever.
func (s *Service) Savings(ctx context.Context, who Caller, since, until time.Time) (epdapi.Savings, error) {
	strata, err := s.options.Records.Sums.Strata(ctx, s.options.Cluster, since, until)
	if err != nil {
		return epdapi.Savings{}, err
	}
	sum := savingsOf(strata, s.options.Settings())
	sum.Since, sum.Until = since, until
	if Operators.Admits(who) == nil {
		sum.ByWorkload = byWorkload(comparisonsOf(strata))
		nameWorkloads(ctx, &s.lastJobs, sum.ByWorkload, func(w *epdapi.WorkloadSaving) (string, *epdapi.LastJob) {
			return w.Workload, &w.LastJob
		})
	}
	return sum, nil
}

// groupSaving returns what the jobs of a group saved, without figures where too few held-out ones are
// compared; nil: none of its jobs was in the experiment.
func groupSaving(strata []record.Stratum, settings *Settings) *epdapi.GroupSaving {
	if len(strata) == 0 {
		return nil
	}
	of := savingsOf(strata, settings)
	g := &epdapi.GroupSaving{Treated: of.Treated, HeldOut: of.HeldOut, EnergyOf: of.EnergyOf}
	if of.GPU.Against >= epdapi.MinHeldOut {
		g.GPU = of.GPU
	}
	if of.Node.Against >= epdapi.MinHeldOut {
		g.Node = of.Node
	}
	if of.Time.Against >= epdapi.MinHeldOut {
		g.Time = of.Time
	}
	return g
}

// savingsOf returns what the jobs of strata saved, at the settings in force.
func savingsOf(strata []record.Stratum, settings *Settings) epdapi.Savings {
	sum := epdapi.Savings{
		HoldOut: settings.Live.HoldOut, Factors: epdapi.NewFactors(settings.Factors),
		MaxSlowdown: settings.Live.MaxSlowdown, MaxSlowdowns: settings.Live.MaxSlowdowns,
		SiteClocks: settings.Live.SiteClocks.Models,
	}
	constant := epdapi.ConstantArm{Part: settings.Live.ConstantArm}
	comparisons := comparisonsOf(strata)
	isModule := func(one *comparison) bool { return settings.Profiles.Find(one.key.GPUModel).IsModule() }
	onlyModules := len(comparisons) > 0
	for i := range comparisons {
		onlyModules = onlyModules && isModule(&comparisons[i])
	}
	if onlyModules {
		sum.EnergyOf = epdapi.OfModules
	}
	var gpu, module, node, times []savings.Arms
	for i := range comparisons {
		one := &comparisons[i]
		node, times = append(node, one.node), append(times, one.time)
		isApart := isModule(one) && !onlyModules
		if isApart {
			module = append(module, one.gpu)
		} else {
			gpu = append(gpu, one.gpu)
		}
		sum.Treated += one.gpu.Treated.Runs
		sum.HeldOut += one.gpu.Held.Runs
		constant.Runs += one.gpu.Constant.Runs
		addEndings(&sum.TreatedEnded, one.ended[live.ArmTreated])
		addEndings(&sum.HeldOutEnded, one.ended[live.ArmHeldOut])
		addEndings(&constant.Ended, one.ended[live.ArmConstant])
		if isApart {
			continue
		}
		sum.Modelled.Runs += one.predicted.Runs
		sum.Modelled.DefaultJ += one.predicted.DefaultJ
		sum.Modelled.UsedJ += one.predicted.GPUJ
	}
	if len(module) > 0 {
		of := savingEstimate(module, (*savings.Arms).SavedStratum)
		sum.Module = &of
	}
	sum.GPU, sum.Node = savingEstimate(
		gpu,
		(*savings.Arms).SavedStratum,
	), savingEstimate(
		node,
		(*savings.Arms).SavedStratum,
	)
	sum.Time = longerEstimate(times, (*savings.Arms).SavedStratum)
	if constant.Part > 0 || constant.Ended.Ended+constant.Runs > 0 {
		constant.GPU, constant.Node = savingEstimate(gpu, (*savings.Arms).ConstantStratum),
			savingEstimate(node, (*savings.Arms).ConstantStratum)
		constant.Time = longerEstimate(times, (*savings.Arms).ConstantStratum)
		constant.AddedGPU = epdapi.AddedSaving(savingEstimate(gpu, (*savings.Arms).AddedStratum))
		constant.AddedNode = epdapi.AddedSaving(savingEstimate(node, (*savings.Arms).AddedStratum))
		constant.AddedTime = epdapi.AddedTime(longerEstimate(times, (*savings.Arms).AddedStratum))
		sum.Constant = &constant
	}
	sum.Workloads, sum.Alone = workloads(comparisons, sum.GPU.Runs > 0)
	return sum
}

func addEndings(to *epdapi.EndingCounts, more record.EndingCounts) {
	to.Ended += more.Ended
	to.Completed += more.Completed
}

// byWorkload returns what each workload on a GPU model saved at the GPUs, where both
// arms have runs.
func byWorkload(comparisons []comparison) []epdapi.WorkloadSaving {
	own, times := make(map[record.WorkloadKey][]savings.Arms), make(map[record.WorkloadKey][]savings.Arms)
	for i := range comparisons {
		one := &comparisons[i]
		own[one.key], times[one.key] = append(own[one.key], one.gpu), append(times[one.key], one.time)
	}
	var all []epdapi.WorkloadSaving
	for key, some := range own {
		if s := savingEstimate(some, (*savings.Arms).SavedStratum); s.Runs > 0 {
			all = append(all, epdapi.WorkloadSaving{
				Workload: key.Workload, GPUModel: key.GPUModel, Saving: s,
				Time: longerEstimate(times[key], (*savings.Arms).SavedStratum),
			})
		}
	}
	slices.SortFunc(all, func(a, b epdapi.WorkloadSaving) int {
		return cmp.Or(cmp.Compare(b.BaselineJ, a.BaselineJ), cmp.Compare(a.Workload, b.Workload),
			cmp.Compare(a.GPUModel, b.GPUModel))
	})
	return all[:min(len(all), epdapi.MaxWorkloads)]
}

// comparison is the jobs whose arms may be compared.
type comparison struct {
	key             record.WorkloadKey
	gpu, node, time savings.Arms
	ended           map[live.Arm]record.EndingCounts
	predicted       record.PredictedUse // of the treated ones
}

// comparisonsOf puts the arms together that may be compared: their strata are in a row.
// Those of an arm that isn't known, as of a newer epd, are left out.
func comparisonsOf(strata []record.Stratum) []comparison {
	var comparisons []comparison
	for i := range strata {
		s := &strata[i]
		if before := strata[max(0, i-1)]; i == 0 || s.WorkloadKey != before.WorkloadKey ||
			s.HoldOut != before.HoldOut || s.ConstantArm != before.ConstantArm {
			comparisons = append(comparisons, comparison{
				key: s.WorkloadKey, ended: make(map[live.Arm]record.EndingCounts),
			})
		}
		one := &comparisons[len(comparisons)-1]
		one.ended[s.Arm] = s.Endings
		switch s.Arm {
		case live.ArmTreated:
			one.gpu.Treated, one.node.Treated, one.time.Treated = s.GPU, s.Node, s.Time
			one.predicted = s.Predicted
		case live.ArmHeldOut:
			one.gpu.Held, one.node.Held, one.time.Held = s.GPU, s.Node, s.Time
		case live.ArmConstant:
			one.gpu.Constant, one.node.Constant, one.time.Constant = s.GPU, s.Node, s.Time
		case live.ArmExcluded:
		}
	}
	return comparisons
}

// workloads counts those, on a GPU model each, that were compared with held-out runs
// and those that had runs and weren't. measured reports whether anything was.
func workloads(comparisons []comparison, measured bool) (compared, alone int) {
	byKey := make(map[record.WorkloadKey]bool)
	for i := range comparisons {
		if s := comparisons[i].gpu.SavedStratum(); s.Treated.Runs+s.Held.Runs > 0 {
			byKey[comparisons[i].key] = byKey[comparisons[i].key] || measured && s.HasBothArms()
		}
	}
	for _, is := range byKey {
		if is {
			compared++
		} else {
			alone++
		}
	}
	return compared, alone
}

// longerEstimate returns the estimate of how much longer the runs of one of two arms took.
func longerEstimate(all []savings.Arms, compare func(*savings.Arms) savings.Stratum) epdapi.Longer {
	e := savingEstimate(all, compare)
	return epdapi.Longer{
		Runs: e.Runs, Against: e.Against, BaselineS: e.BaselineJ,
		LongerS: 0 - e.SavedJ, LowS: 0 - e.HighJ, HighS: 0 - e.LowJ,
	}
}

// savingEstimate returns the estimate that compares two of the arms, as it is told.
func savingEstimate(all []savings.Arms, compare func(*savings.Arms) savings.Stratum) epdapi.Saving {
	strata := make([]savings.Stratum, len(all))
	for i := range all {
		strata[i] = compare(&all[i])
	}
	e := savings.Measure(strata)
	return epdapi.Saving{
		Runs: e.Treated, Against: e.Held, SavedJ: e.Saved, LowJ: e.Low, HighJ: e.High, BaselineJ: e.Baseline,
		Needed: e.Needed,
	}
}
