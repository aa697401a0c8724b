package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/savings"
	"github.com/epplan/epplan/internal/store/record"
)

// Savings is what treated runs used less than held-out ones.
type Savings = epdapi.Savings

// Savings compares jobs that ended since a time.
func (c *Controller) Savings(ctx context.Context, since time.Time) (Savings, error) {
	strata, err := c.options.Store.Strata(ctx, c.options.Cluster, since)
	if err != nil {
		return Savings{}, err
	}
	settings := c.settings.Load()
	sum := Savings{Since: since, HoldOut: settings.Live.HoldOut, Factors: epdapi.NewFactors(&settings.Factors)}
	var gpu, node []savings.Stratum
	for pair := range pairs(strata) {
		t, h := pair.treated, pair.held
		sum.Treated += t.GPU.Runs
		sum.HeldOut += h.GPU.Runs
		sum.TreatedEnded.Ended += t.Endings.Ended
		sum.TreatedEnded.Completed += t.Endings.Completed
		sum.HeldOutEnded.Ended += h.Endings.Ended
		sum.HeldOutEnded.Completed += h.Endings.Completed
		sum.Modelled.Runs += t.Predicted.Runs
		sum.Modelled.DefaultJ += t.Predicted.DefaultJ
		sum.Modelled.UsedJ += t.Predicted.GPUJ
		gpu = append(gpu, savings.Stratum{Treated: t.GPU, Held: h.GPU})
		node = append(node, savings.Stratum{Treated: t.Node, Held: h.Node})
	}
	sum.GPU, sum.Node = saving(gpu), saving(node)
	sum.Workloads, sum.Alone = workloads(strata, sum.GPU.Runs > 0)
	if operators.admits(CallerOf(ctx)) == nil {
		sum.ByWorkload = byWorkload(strata)
		c.nameSavings(ctx, sum.ByWorkload)
	}
	return sum, nil
}

// byWorkload is what each workload on a GPU model saved at the GPUs, where both
// arms have runs.
func byWorkload(strata []record.Stratum) []epdapi.WorkloadSaving {
	own := make(map[record.WorkloadKey][]savings.Stratum)
	for p := range pairs(strata) {
		key := cmp.Or(p.treated.WorkloadKey, p.held.WorkloadKey)
		own[key] = append(own[key], savings.Stratum{Treated: p.treated.GPU, Held: p.held.GPU})
	}
	var all []epdapi.WorkloadSaving
	for key, some := range own {
		if s := saving(some); s.Runs > 0 {
			all = append(all, epdapi.WorkloadSaving{Workload: key.Workload, GPUModel: key.GPUModel, Saving: s})
		}
	}
	slices.SortFunc(all, func(a, b epdapi.WorkloadSaving) int {
		return cmp.Or(cmp.Compare(b.BaselineJ, a.BaselineJ), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.GPUModel, b.GPUModel))
	})
	return all[:min(len(all), epdapi.MostWorkloads)]
}

// pair is the two arms of a kind of runs.
type pair struct{ treated, held record.Stratum }

// pairs puts the arms together that may be compared.
func pairs(strata []record.Stratum) func(yield func(pair) bool) {
	return func(yield func(pair) bool) {
		for rest := strata; len(rest) > 0; {
			var p pair
			first := rest[0]
			for len(rest) > 0 && rest[0].WorkloadKey == first.WorkloadKey && rest[0].HoldOut == first.HoldOut {
				if rest[0].Arm == record.Treated {
					p.treated = rest[0]
				} else {
					p.held = rest[0]
				}
				rest = rest[1:]
			}
			if !yield(p) {
				return
			}
		}
	}
}

// workloads counts those, on a GPU model each, that were compared and those that
// had runs and weren't.
// measured tells whether anything was.
func workloads(strata []record.Stratum, measured bool) (compared, alone int) {
	byKey := make(map[record.WorkloadKey]bool)
	for p := range pairs(strata) {
		s := savings.Stratum{Treated: p.treated.GPU, Held: p.held.GPU}
		if s.Treated.Runs+s.Held.Runs > 0 {
			key := cmp.Or(p.treated.WorkloadKey, p.held.WorkloadKey)
			byKey[key] = byKey[key] || measured && s.Compared()
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

// saving is an estimate as it is told.
func saving(strata []savings.Stratum) epdapi.Saving {
	e := savings.Measure(strata)
	return epdapi.Saving{
		Runs: e.Treated, HeldOut: e.Held, SavedJ: e.Saved, LowJ: e.Low, HighJ: e.High, BaselineJ: e.Baseline, Needed: e.Needed,
	}
}
