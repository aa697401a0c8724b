package store_test

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Usage is held against sums over the runs themselves.
func TestUsageIsTheSumOfItsRuns(t *testing.T) {
	groups := 0
	rapid.Check(t, func(rt *rapid.T) {
		s, _ := openNew(t)
		joined := map[int64]*record.Job{}
		var all []*record.Outcome
		predicted := map[string]float64{}
		for i := range rapid.IntRange(1, 12).Draw(rt, "runs") {
			o := outcome(i)
			o.JobID = int64(1000 + rapid.IntRange(0, 5).Draw(rt, "job"))
			o.Node = "n" + strconv.Itoa(i)
			o.Submitted, o.Unmatched = start.Truncate(time.Second), rapid.IntRange(0, 6).Draw(rt, "unmatched") == 0
			o.Arm = rapid.SampledFrom([]live.Arm{live.ArmTreated, live.ArmHeldOut, live.ArmExcluded}).Draw(rt, "arm")
			o.ExitState = rapid.SampledFrom([]string{record.Completed, "FAILED"}).Draw(rt, "state")
			if rapid.IntRange(0, 3).Draw(rt, "unmeasured node") == 0 {
				o.NodeEnergyJ = live.Number{}
			}
			if rapid.IntRange(0, 3).Draw(rt, "unmeasured GPUs") == 0 {
				o.GPUEnergyJ = live.Number{}
			}
			if rapid.Bool().Draw(rt, "known job") && joined[o.JobID] == nil {
				j := &record.Job{
					Cluster: "alpha", ID: o.JobID, Submitted: o.Submitted, GPUs: 6, Nodes: 3,
					User:      rapid.SampledFrom([]string{"alice", "bob"}).Draw(rt, "user"),
					Account:   rapid.SampledFrom([]string{"physics", ""}).Draw(rt, "account"),
					Partition: rapid.SampledFrom([]string{"gpu", "long"}).Draw(rt, "partition"),
				}
				if err := s.PutJob(t.Context(), j); err != nil {
					rt.Fatal(err)
				}
				joined[o.JobID] = j
			}
			if rapid.Bool().Draw(rt, "decided") {
				d := decision(i)
				d.JobID, d.DefaultJ = o.JobID, live.Known(3e5)
				id, err := s.PutDecision(t.Context(), d)
				if err != nil {
					rt.Fatal(err)
				}
				o.DecisionID, predicted[o.RunID] = id, 3e5
			}
			put(t, s, o, store.Stored)
			all = append(all, o)
		}
		var since, until time.Time
		if rapid.Bool().Draw(rt, "since") {
			since = start.Add(time.Duration(rapid.IntRange(15, 30).Draw(rt, "minutes")) * time.Minute)
		}
		if rapid.Bool().Draw(rt, "until") {
			until = start.Add(time.Duration(rapid.IntRange(20, 40).Draw(rt, "minutes until")) * time.Minute)
		}
		for _, by := range append([]string{""}, record.Groupings...) {
			want := map[string]*record.Usage{}
			jobs := map[string]map[int64]bool{}
			for _, o := range all {
				if o.Unmatched || o.Ended.Before(since) || !until.IsZero() && !o.Ended.Before(until) {
					continue
				}
				j := cmp.Or(joined[o.JobID], &record.Job{})
				key := map[string]string{
					"": "", "user": j.User, "account": j.Account, "partition": j.Partition,
					"workload": o.Workload, "gpu": o.GPUModel,
				}[by]
				if want[key] == nil {
					want[key], jobs[key] = &record.Usage{Key: key}, map[int64]bool{}
				}
				addUsage(want[key], o, j, predicted[o.RunID])
				if j.GPUs > 0 {
					jobs[key][o.JobID] = true
				}
			}
			got, err := s.Usage(t.Context(), "alpha", since, until, by)
			if err != nil || len(got) != len(want) {
				rt.Fatalf("by %q: %d groups, %v, want %d", by, len(got), err, len(want))
			}
			groups += len(got)
			if !slices.IsSortedFunc(got, func(a, b record.Usage) int { return cmp.Compare(b.EnergyJ, a.EnergyJ) }) {
				rt.Errorf("by %q: not by energy: %+v", by, got)
			}
			for _, u := range got {
				w := want[u.Key]
				if w == nil {
					rt.Fatalf("by %q: group %q", by, u.Key)
				}
				if w.Jobs = int64(len(jobs[u.Key])); math.Abs(u.EnergyJ-w.EnergyJ) > 1e-6 {
					rt.Errorf("by %q: %v J, want %v J", by, u.EnergyJ, w.EnergyJ)
				}
				if u != *w {
					rt.Errorf("by %q: %+v, want %+v", by, u, *w)
				}
			}
		}
	})
	if groups < 300 {
		t.Errorf("%d groups: too few to tell", groups)
	}
}

func addUsage(u *record.Usage, o *record.Outcome, j *record.Job, predicted float64) {
	u.Runs++
	u.GPUSeconds += o.TimeS.Or(0) * float64(j.GPUs) / 3
	gpu, hasGPU := o.GPUEnergyJ.Get()
	node, hasNode := o.NodeEnergyJ.Get()
	energy := gpu
	if hasGPU {
		u.GPURuns, u.GPUEnergyJ = u.GPURuns+1, u.GPUEnergyJ+gpu
	}
	if hasNode {
		u.NodeRuns, u.NodeEnergyJ, energy = u.NodeRuns+1, u.NodeEnergyJ+node, node
	}
	if !hasGPU && !hasNode {
		return
	}
	u.EnergyRuns, u.EnergyJ = u.EnergyRuns+1, u.EnergyJ+energy
	if o.Arm == live.ArmHeldOut {
		u.HeldOutJ += energy
	}
	if o.Arm == live.ArmTreated && o.ExitState == record.Completed && hasGPU && predicted > 0 {
		u.Predicted.Runs++
		u.Predicted.DefaultJ += predicted
		u.Predicted.GPUJ += gpu
	}
}

// What was pruned is told apart: a month whose middle lies in the period.
func TestUsageOfPrunedRunsIsToldByMonth(t *testing.T) {
	s, _ := openNew(t)
	for i := range 3 {
		o := outcome(i)
		o.NodeEnergyJ = live.Number{}
		put(t, s, o, store.Stored)
	}
	if _, err := s.Prune(t.Context(), start.AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	march := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		since, until time.Time
		runs         int64
	}{
		{time.Time{}, time.Time{}, 3},
		{march, march.AddDate(0, 1, 0), 3},
		{march.AddDate(0, 0, 20), march.AddDate(0, 1, 0), 0},
		{march.AddDate(0, -1, 0), march, 0},
	} {
		got, err := s.PrunedUsage(t.Context(), "alpha", c.since, c.until)
		if err != nil || got.Runs != c.runs || (got.EnergyJ > 0) != (c.runs > 0) {
			t.Errorf("%v to %v: %+v, %v, want %d runs", c.since, c.until, got, err, c.runs)
		}
		if kept, err := s.Usage(t.Context(), "alpha", c.since, c.until, "user"); err != nil || len(kept) > 0 {
			t.Errorf("%v to %v: %+v, %v are kept", c.since, c.until, kept, err)
		}
	}
}
