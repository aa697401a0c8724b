package planner_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/policy"
)

func TestAJobWithoutProfileKeepsItsLimitWhereOthersShare(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1, 16, 32)}
	p.Cluster.Classes = append(p.Cluster.Classes, planner.NodeClass{
		Name: "whole", Model: "B", Count: 1, GPUs: 1, IdleW: 10,
	})
	alone := job("alone", fixed(100)) // on the GPUs that may be shared
	alone.Options = append(alone.Options, planner.Option{Model: "B", GPUs: 1, Response: fixed(50)})
	alone.Limit = 60
	p.Tasks = []planner.Task{alone, profiled("profiled", 0, 30, 4, 1.2, 50)}
	for _, text := range []string{"cats", "cats-safe", "hotcloud", "first"} {
		if plan := solve(t, p, text); plan.Nodes[plan.Assignments[0].Node].Class != 1 {
			t.Errorf("%s: the job is on class %d, where it takes 100 s of 60", text,
				plan.Nodes[plan.Assignments[0].Node].Class)
		}
	}
}

// sharedCrowd returns a random online problem with GPUs that may be shared.
func sharedCrowd(rng *rand.Rand) *planner.Problem {
	p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1+rng.IntN(4), 16, 32)}
	k := &p.Cluster.Classes[0]
	k.TurnOnDelay, k.IdleW, k.SleepW = float64(rng.IntN(3)), dvfsmodel.Watt(rng.IntN(2)*10), 3
	if rng.IntN(3) == 0 {
		k.CPUs = 8
	}
	if rng.IntN(3) == 0 {
		p.Cluster.Slot, p.Start = 1, planner.StartSlot
	}
	if rng.IntN(3) == 0 {
		p.Cluster.Classes = append(p.Cluster.Classes, planner.NodeClass{
			Name: "whole", Model: "B", Count: 1, GPUs: 2, IdleW: 10,
		})
	}
	for i := range 5 + rng.IntN(30) {
		t := profiled(fmt.Sprint("job", i), 200*rng.Float64(), 10+100*rng.Float64(), 1+14*rng.Float64(),
			[]float64{1.05, 1.2, 1.5}[rng.IntN(3)],
			100*rng.Float64(), 100*rng.Float64(), 60*rng.Float64(), 30*rng.Float64())
		t.CPUs = float64(rng.IntN(4))
		switch rng.IntN(8) {
		case 0:
			t.Options[0].GPUs = 2
		case 1:
			t.Profile = nil
		case 2:
			t.Options = append(t.Options, planner.Option{Model: "B", GPUs: 1, Response: fixed(50)})
		case 3:
			t.Deadline = t.Arrival + 1.1*t.Options[0].Response.Default().Time
			t.Due = t.Deadline
		case 4:
			t.Limit = 1.1 * t.Options[0].Response.Default().Time
		}
		p.Tasks = append(p.Tasks, t)
	}
	switch rng.IntN(4) {
	case 0:
		p.Mode = planner.Clairvoyant
	case 1:
		p.Mode = planner.Offline
		for i := range p.Tasks {
			p.Tasks[i].Deadline -= p.Tasks[i].Arrival
			p.Tasks[i].Due, p.Tasks[i].Arrival = p.Tasks[i].Deadline, 0
		}
	}
	return p
}

var sharingPolicies = []string{
	"cats", "cats-safe", "hotcloud", "first", "hotcloud,place=share-bf", "hotcloud,place=share-dp",
	"hotcloud,place=share-fgd",
	"cats,place=share-cats-active", "cats,place=share-cats-thresholds",
	"cats-safe,place=share-online-sla,park=never", "edl,place=share-hotcloud,pick=fcfs",
}

func TestPlansOfSharedGPUsPassCheck(t *testing.T) {
	found := map[string]int{}
	for seed := range uint64(100) {
		p := sharedCrowd(rand.New(rand.NewPCG(seed, 1)))
		for _, text := range sharingPolicies {
			plan := solve(t, p, text)
			if plan.Shared == nil {
				continue
			}
			found[text]++
			found[p.Mode.String()]++
			if text == "cats-safe" && len(plan.Shared.Slowed) > 0 {
				t.Errorf("seed %d: %s slows %d jobs down too much", seed, text, len(plan.Shared.Slowed))
			}
			found[text+" slows"] += len(plan.Shared.Slowed)
			found["unplaced"] += len(plan.Unplaced)
			found["placed"] += len(p.Tasks)
			for i := range plan.Assignments {
				if plan.Assignments[i].Reason.Place == planner.PlaceBeside {
					found["beside others"]++
				}
			}
			if lower := bound.Lower(p); plan.Status == planner.Complete &&
				plan.Ledger.Total() < lower.Value*(1-1e-9) {
				t.Errorf("seed %d, %s: %v J, the bound is %v J", seed, text, plan.Ledger.Total(), lower.Value)
			}
		}
	}
	if found["cats slows"] < 100 || found["beside others"] < 1000 || found["offline"] < 100 ||
		found["clairvoyant"] < 100 || found["unplaced"] > found["placed"]/10 {
		t.Errorf("seen %v: want many that share and are slowed by the paper's policy", found)
	}
	t.Logf("%v", found)
}

func TestOneTaskByGPUIsAsIfNothingWereShared(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(2, 16, 16)}
		for i := range 20 {
			p.Tasks = append(p.Tasks,
				profiled(fmt.Sprint("job", i), 100*rng.Float64(), 10+20*rng.Float64(), 9, 1.2, 100, 90))
		}
		shared := solve(t, p, "hotcloud,place=share-cats-thresholds,clocks=default,park=never")
		p.Cluster.Sharing = nil
		p.Cluster.Classes[0].SharedGB = nil
		whole := solve(t, p, "hotcloud,park=never")
		if math.Abs(float64(shared.Ledger.Total()-whole.Ledger.Total())) > 1e-6 ||
			shared.Ledger.End != whole.Ledger.End {
			t.Fatalf("seed %d: %+v, alone %+v", seed, shared.Ledger, whole.Ledger)
		}
		for i := range p.Tasks {
			if a, b := shared.Assignments[i], whole.Assignments[i]; math.Abs(a.Start-b.Start) > 1e-9 ||
				math.Abs(a.End-b.End) > 1e-9 {
				t.Errorf("seed %d, job %d: %v to %v s, alone %v to %v s", seed, i, a.Start, a.End,
					b.Start, b.End)
			}
		}
	}
}

func TestATaskIsSlowerWhileAnotherIsBesideIt(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1, 32)}
	p.Tasks = []planner.Task{profiled("a", 0, 100, 4, 3, 80, 80), profiled("b", 10, 30, 4, 3, 80, 80)}
	plan := solve(t, p, "hotcloud,place=share-cats")
	// From 10 s on both do a second's work in 1.6 s; b ends at 58 s, and a has done
	// 40 s by then.
	for i, want := range []float64{118, 58} {
		if got := plan.Assignments[i].End; math.Abs(got-want) > 1e-9 {
			t.Errorf("job %q ends at %v s, want %v", p.Tasks[i].ID, got, want)
		}
	}
	if got, want := float64(plan.Ledger.Run), 118*144.8; math.Abs(got-want) > 1e-6 {
		t.Errorf("the GPU takes %v J, want %v", got, want)
	}
	if got, want := float64(plan.Assignments[1].Point.Energy), 24*144.8; math.Abs(got-want) > 1e-6 {
		t.Errorf("b takes %v J, want half of the GPU's while it runs, %v", got, want)
	}
}

func TestClocksFollowWhoIsOnTheGPU(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1, 32)}
	p.Tasks = []planner.Task{
		profiled("tolerant", 0, 100, 4, 1.2, 20, 20), profiled("strict", 10, 30, 4, 1, 20, 20),
	}
	plan := solve(t, p, "cats")
	clocks := make([]dvfsmodel.MHz, 0, len(plan.Shared.ClockIntervals))
	for _, s := range plan.Shared.ClockIntervals {
		clocks = append(clocks, s.MHz)
	}
	if want := []dvfsmodel.MHz{1125, 1350, 1125}; !slices.Equal(clocks, want) {
		t.Errorf("clocks %v MHz, want %v", clocks, want)
	}
	if len(plan.Shared.Slowed) > 0 {
		t.Errorf("slowed: %v", plan.Shared.Slowed)
	}
}

func TestAnUnknownTaskIsNeverPutBesideAnother(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1, 32)}
	unknown := at(job("unknown", fixed(20)), 1, math.Inf(1))
	p.Tasks = []planner.Task{profiled("a", 0, 10, 1, 1.2, 1), unknown, profiled("b", 2, 10, 1, 1.2, 1)}
	for _, text := range sharingPolicies {
		plan := solve(t, p, text)
		u := plan.Assignments[1]
		for _, i := range []int{0, 2} {
			if a := plan.Assignments[i]; a.Start < u.End && u.Start < a.End {
				t.Errorf("%s: job %q from %v to %v s beside one that nothing is known of, %v to %v s", text,
					p.Tasks[i].ID, a.Start, a.End, u.Start, u.End)
			}
		}
	}
}

func TestProfilesThatMakeNoSenseAreErrors(t *testing.T) {
	for name, spoil := range map[string]func(p *planner.Problem){
		"no slots":            func(p *planner.Problem) { p.Tasks[1].Profile.UtilPct = nil },
		"above 100 %":         func(p *planner.Problem) { p.Tasks[1].Profile.UtilPct[0] = 101 },
		"NaN":                 func(p *planner.Problem) { p.Tasks[1].Profile.UtilPct[0] = math.NaN() },
		"no memory":           func(p *planner.Problem) { p.Tasks[1].Profile.MemGB = 0 },
		"kappa below 1":       func(p *planner.Problem) { p.Tasks[1].Profile.Kappa = 0.9 },
		"other slots":         func(p *planner.Problem) { p.Tasks[1].Profile.SlotS = 30 },
		"other length":        func(p *planner.Problem) { p.Tasks[1].Profile.UtilPct = []float64{1, 2, 3} },
		"a share, too":        func(p *planner.Problem) { p.Tasks[1].Share = 0.5 },
		"memory of half":      func(p *planner.Problem) { p.Cluster.Classes[0].GPUs = 2 },
		"memory of one GPU":   func(p *planner.Problem) { p.Cluster.Classes[0].SharedGB = []float64{1, 2} },
		"a GPU of no memory":  func(p *planner.Problem) { p.Cluster.Classes[0].SharedGB = []float64{0} },
		"no levels":           func(p *planner.Problem) { p.Cluster.Sharing.Physics.LevelsMHz = nil },
		"a negative exponent": func(p *planner.Problem) { p.Cluster.Sharing.Physics.Beta = -1 },
	} {
		p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1, 32)}
		p.Tasks = []planner.Task{profiled("a", 0, 100, 4, 1.2, 50, 40), profiled("b", 10, 30, 4, 1.2, 40, 50)}
		spoil(p)
		if p.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSharedPlansAreRefusedWhereTheyCannotBeTrue(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1, 32)}
	p.Tasks = []planner.Task{profiled("a", 0, 100, 4, 1.2, 50)}
	pol, err := policy.Parse("cats", policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := planner.Solve(t.Context(), p, pol, &planner.Options{Truth: p}); err == nil {
		t.Error("another truth: no error")
	}
	p.Snapshot = &planner.Snapshot{}
	if _, err := planner.Solve(t.Context(), p, pol, nil); err == nil {
		t.Error("from the present: no error")
	}
}

func TestALongTaskDoesNotKeepAGPUBusyThatWouldSoonBeDone(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1, 32, 32)}
	p.Tasks = []planner.Task{
		profiled("long", 0, 1000, 4, 1.2, 60), profiled("short", 0, 50, 4, 1.2, 60),
		profiled("another long", 10, 900, 4, 1.2, 30), profiled("another short", 11, 30, 4, 1.2, 30),
	}
	plan := solve(t, p, "cats-safe")
	for i, want := range []planner.GPUSet{1, 2, 1, 2} { // beside its like; three would slow each other down
		if got := plan.Assignments[i].GPUs; got != want {
			t.Errorf("job %q on GPU %v, want %v", p.Tasks[i].ID, got.Indexes(), want.Indexes())
		}
	}
}

func TestTheCheapestClockIsTheOneOfLeastEnergyWithinTheSLA(t *testing.T) {
	for _, c := range []struct {
		name      string
		wPerMHz   float64
		beta      float64
		util      float64
		want, low dvfsmodel.MHz // of cats-safe, and with the lowest clock
	}{
		{"the paper's, whose slower clocks take more energy", 0.09, 0.91, 50, 1350, 1125},
		{"one that hardly slows tasks down", 0.09, 0.1, 50, 225, 225},
	} {
		p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1, 32)}
		p.Cluster.Classes[0].HostW = 0
		physics := &p.Cluster.Sharing.Physics
		physics.WPerMHz, physics.Beta = c.wPerMHz, c.beta
		p.Tasks = []planner.Task{profiled("a", 0, 100, 4, 1.2, c.util)}
		for text, want := range map[string]dvfsmodel.MHz{
			"cats-safe":               c.want,
			"cats-safe,clocks=lowest": c.low,
		} {
			if got := solve(t, p, text).Shared.ClockIntervals[0].MHz; got != want {
				t.Errorf("%s, %s: %v MHz, want %v", c.name, text, got, want)
			}
		}
	}
}
