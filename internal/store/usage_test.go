package store_test

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// usageRuns are runs in a store, with the jobs and predictions that are known of them.
type usageRuns struct {
	store     *store.Store
	all       []*record.Outcome
	jobs      map[int64]*record.Job
	predicted map[string]float64 // by run
}

func (u *usageRuns) draw(t *rapid.T, i int) *record.Outcome {
	o := outcome(i)
	o.JobID = int64(1000 + rapid.IntRange(0, 5).Draw(t, "job"))
	o.Node = "n" + strconv.Itoa(i)
	o.Submitted, o.Unmatched = start.Truncate(time.Second), rapid.IntRange(0, 6).Draw(t, "unmatched") == 0
	o.Utilisation = live.Number{}
	if rapid.Bool().Draw(t, "known utilisation") {
		o.Utilisation = live.Known(rapid.Float64Range(0, 1).Draw(t, "utilisation"))
	}
	o.GPUModel = rapid.SampledFrom([]string{"V100", "A100"}).Draw(t, "GPU model")
	o.NodeSource = rapid.SampledFrom([]record.Source{record.RAPL, record.Modelled}).Draw(t, "source")
	o.Arm = rapid.SampledFrom([]live.Arm{live.ArmTreated, live.ArmHeldOut, live.ArmExcluded}).Draw(t, "arm")
	o.ExitState = rapid.SampledFrom([]string{record.Completed, "FAILED"}).Draw(t, "state")
	if rapid.IntRange(0, 3).Draw(t, "unmeasured node") == 0 {
		o.NodeEnergyJ = live.Number{}
	}
	if rapid.IntRange(0, 3).Draw(t, "unmeasured GPUs") == 0 {
		o.GPUEnergyJ = live.Number{}
	}
	if rapid.Bool().Draw(t, "known job") && u.jobs[o.JobID] == nil {
		u.jobs[o.JobID] = &record.Job{
			Cluster: "alpha", ID: o.JobID, Submitted: o.Submitted, GPUs: 6, Nodes: 3,
			User:      rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "user"),
			Account:   rapid.SampledFrom([]string{"physics", ""}).Draw(t, "account"),
			Partition: rapid.SampledFrom([]string{"gpu", "long"}).Draw(t, "partition"),
		}
		if err := u.store.PutJob(t.Context(), u.jobs[o.JobID]); err != nil {
			t.Fatal(err)
		}
	}
	if rapid.Bool().Draw(t, "decided") {
		d := decision(i)
		d.JobID, d.DefaultJ = o.JobID, live.Known(3e5)
		id, err := u.store.PutDecision(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		o.DecisionID, u.predicted[o.RunID] = id, 3e5
	}
	return o
}

// sums returns the usage of the runs in a period by groups, computed one run at a time.
func (u *usageRuns) sums(since, until time.Time, by, user string) map[string]*record.Usage {
	sums, jobs := map[string]*record.Usage{}, map[string]map[int64]bool{}
	for _, o := range u.all {
		if o.Unmatched || o.Ended.Before(since) || !until.IsZero() && !o.Ended.Before(until) {
			continue
		}
		j := cmp.Or(u.jobs[o.JobID], &record.Job{})
		if user != "" && j.User != user {
			continue
		}
		key := keyOf(o, j, by)
		if sums[key] == nil {
			sums[key], jobs[key] = &record.Usage{Key: key}, map[int64]bool{}
		}
		addUsage(sums[key], o, j, u.predicted[o.RunID])
		if j.GPUs > 0 {
			jobs[key][o.JobID] = true
		}
		sums[key].Jobs = int64(len(jobs[key]))
	}
	return sums
}

// keyOf returns the group of a run.
func keyOf(o *record.Outcome, j *record.Job, by string) string {
	return map[string]string{
		"": "", "user": j.User, "account": j.Account, "partition": j.Partition, "workload": o.Workload,
		"gpu": o.GPUModel,
	}[by]
}

// Usage is compared with sums over the runs themselves.
func TestUsageIsTheSumOfItsRuns(t *testing.T) {
	groups := 0
	rapid.Check(t, func(rt *rapid.T) {
		s, _ := openNew(t)
		u := &usageRuns{store: s, jobs: map[int64]*record.Job{}, predicted: map[string]float64{}}
		for i := range rapid.IntRange(1, 12).Draw(rt, "runs") {
			o := u.draw(rt, i)
			put(t, s, o, store.Stored)
			u.all = append(u.all, o)
		}
		var since, until time.Time
		if rapid.Bool().Draw(rt, "since") {
			since = start.Add(time.Duration(rapid.IntRange(15, 30).Draw(rt, "minutes")) * time.Minute)
		}
		if rapid.Bool().Draw(rt, "until") {
			until = start.Add(time.Duration(rapid.IntRange(20, 40).Draw(rt, "minutes until")) * time.Minute)
		}
		user := rapid.SampledFrom([]string{"", "", "alice", "bob", "eve"}).Draw(rt, "whose")
		for _, by := range append([]string{""}, record.Groupings...) {
			want := u.sums(since, until, by, user)
			got, err := s.Usage(t.Context(), "alpha", since, until, by, user)
			if err != nil || len(got) != len(want) {
				rt.Fatalf("by %q: %d groups, %v, want %d", by, len(got), err, len(want))
			}
			groups += len(got)
			if !slices.IsSortedFunc(got, func(a, b record.Usage) int { return cmp.Compare(b.EnergyJ, a.EnergyJ) }) {
				rt.Errorf("by %q: not by energy: %+v", by, got)
			}
			checkGroupStrata(rt, s, since, until, by, user, got)
			for _, one := range got {
				if w := want[one.Key]; w == nil || !isSameUsage(one, *w) {
					rt.Errorf("by %q: %+v, want %+v", by, one, w)
				}
			}
		}
	})
	if groups < 300 {
		t.Errorf("%d groups: too few to tell", groups)
	}
}

// checkGroupStrata compares the strata of groups with those of all jobs, which are made in another way.
// Groups of workloads and of GPU models only divide these; those of users may divide a stratum's jobs, too.
func checkGroupStrata(
	t *rapid.T, s *store.Store, since, until time.Time, by, user string, groups []record.Usage,
) {
	if by == "user" && user != "" && len(groups) > 0 { // the same as in the group of the user
		all, err := s.Usage(t.Context(), "alpha", since, until, by, "")
		k := slices.IndexFunc(all, func(u record.Usage) bool { return u.Key == user })
		if err != nil || k < 0 || !reflect.DeepEqual(all[k].Strata, groups[0].Strata) {
			t.Errorf("strata of %s: %+v, of all %+v, %v", user, groups[0].Strata, all, err)
		}
	}
	if user != "" {
		return
	}
	want, err := s.Strata(t.Context(), "alpha", since, until)
	if err != nil {
		t.Fatal(err)
	}
	var got []record.Stratum
	for i := range groups {
		got = append(got, groups[i].Strata...)
	}
	if by == "" {
		want = nil
	}
	g, w := armTotals(got), armTotals(want)
	for arm := range w {
		a, b := g[arm], w[arm]
		if a.Runs != b.Runs || math.Abs(a.DefaultJ-b.DefaultJ) > 1e-9*b.DefaultJ ||
			math.Abs(a.GPUJ-b.GPUJ) > 1e-9*b.GPUJ {
			t.Errorf("by %s, %s: %+v, want %+v", by, arm, a, b)
		}
	}
	if len(g) != len(w) || (by == "workload" || by == "gpu") && len(got) != len(want) {
		t.Errorf("by %s: %d strata, want %d", by, len(got), len(want))
	}
}

// armTotals returns the ended jobs of each arm, and the energies of their nodes and GPUs.
func armTotals(strata []record.Stratum) map[live.Arm]record.PredictedUse {
	sums := map[live.Arm]record.PredictedUse{}
	for i := range strata {
		s := &strata[i]
		sum := sums[s.Arm]
		sum.Runs += s.Endings.Ended
		sum.DefaultJ += float64(s.Node.Runs) * s.Node.Value
		sum.GPUJ += float64(s.GPU.Runs) * s.GPU.Value
		sums[s.Arm] = sum
	}
	return sums
}

func addUsage(u *record.Usage, o *record.Outcome, j *record.Job, predicted float64) {
	u.Runs++
	u.GPUSeconds += o.TimeS.Or(0) * float64(j.GPUs) / 3
	addIdle(u, o, j)
	gpu, hasGPU := o.GPUEnergyJ.Get()
	node, hasNode := o.NodeEnergyJ.Get()
	energy := gpu
	if hasGPU {
		u.GPURuns, u.GPUEnergyJ = u.GPURuns+1, u.GPUEnergyJ+gpu
	}
	if hasNode {
		u.NodeRuns, u.NodeEnergyJ, energy = u.NodeRuns+1, u.NodeEnergyJ+node, node
		if o.NodeSource == record.Modelled {
			u.ModelledJ += node
		}
	}
	if !hasGPU && !hasNode {
		return
	}
	u.EnergyRuns, u.EnergyJ = u.EnergyRuns+1, u.EnergyJ+energy
	u.EnergyGPUSeconds += o.TimeS.Or(0) * float64(j.GPUs) / 3
	if o.Arm == live.ArmHeldOut {
		u.HeldOutJ += energy
	}
	if o.Arm == live.ArmTreated && o.ExitState == record.Completed && hasGPU && predicted > 0 {
		u.Predicted.Runs++
		u.Predicted.DefaultJ += predicted
		u.Predicted.GPUJ += gpu
	}
}

// Pruned runs count by month, as those of savings do.
func TestUsageOfPrunedRunsIsToldByMonth(t *testing.T) {
	s, _ := openNew(t)
	for i := range 3 {
		o := outcome(i)
		o.NodeEnergyJ, o.GPUEnergyJ = live.Number{}, live.Known(100)
		if i == 0 {
			o.NodeEnergyJ = live.Known(150) // of another workload: each counts by what is known of it
		}
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
		{march.AddDate(0, 0, 20), time.Time{}, 3}, // as savings: from the month on
		{march.AddDate(0, 1, 0), time.Time{}, 0},
		{time.Time{}, march.AddDate(0, 1, 0), 3},
	} {
		got, err := s.PrunedUsage(t.Context(), "alpha", c.since, c.until)
		if err != nil || got.Runs != c.runs || (got.EnergyJ == 350) != (c.runs > 0) {
			t.Errorf("%v to %v: %+v, %v, want %d runs", c.since, c.until, got, err, c.runs)
		}
		if kept, err := s.Usage(t.Context(), "alpha", c.since, c.until, "user", ""); err != nil || len(kept) > 0 {
			t.Errorf("%v to %v: %+v, %v are kept", c.since, c.until, kept, err)
		}
	}
}

// isSameUsage allows for the rounding of idle times, which are in the order of GPU models.
func isSameUsage(a, b record.Usage) bool {
	isSame := slices.EqualFunc(a.Idle, b.Idle, func(x, y record.Idle) bool {
		return x.GPUModel == y.GPUModel && math.Abs(x.GPUSeconds-y.GPUSeconds) <= 1e-9*y.GPUSeconds
	})
	a.Idle, b.Idle, a.Strata, b.Strata = nil, nil, nil, nil
	return isSame && reflect.DeepEqual(a, b)
}

// addIdle adds the time in which a run's GPUs were idle.
func addIdle(u *record.Usage, o *record.Outcome, j *record.Job) {
	used, known := o.Utilisation.Get()
	if !known {
		return
	}
	k, found := slices.BinarySearchFunc(u.Idle, o.GPUModel, func(i record.Idle, model string) int {
		return cmp.Compare(i.GPUModel, model)
	})
	if !found {
		u.Idle = slices.Insert(u.Idle, k, record.Idle{GPUModel: o.GPUModel})
	}
	u.Idle[k].GPUSeconds += o.TimeS.Or(0) * float64(j.GPUs) / 3 * (1 - used)
}
