package colocate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/slurm"
)

// saw has GPUs of nodes have done what functions say of the seconds before now,
// as so many samples three seconds apart show.
func (c *cluster) saw(samples int, nodes map[string]func(second int) float64) {
	const apart = 3
	c.RecentSamples = func(node string, _ []slurm.JobID) (list []colocate.UseSample) {
		use := nodes[node]
		for i := samples; i > 0 && use != nil; i-- {
			list = append(list, colocate.UseSample{
				At: start.Add(-time.Duration(apart*i) * time.Second), Use: use(64 - apart*i),
			})
		}
		return list
	}
}

// noisy returns a series as one sees it: nine in ten of the moments are as they were
// recorded, one is the other way round.
func noisy(use func(int) float64) func(int) float64 {
	return func(second int) float64 {
		if second/3%10 == 7 {
			return 0.95 - use(second)
		}
		return use(second)
	}
}

func TestAGPUThatDoesOtherThanTheProfilesOfItsJobsSayIsNotKnown(t *testing.T) {
	low, high := square(false), square(true)
	always := func(u float64) func(int) float64 { return func(int) float64 { return u } }
	for name, c := range map[string]struct {
		samples int
		seen    func(int) float64
		why     string // of the node where the job would fit by the profiles; empty: it does
	}{
		"as recorded": {18, low, ""},
		"nearly so":   {18, noisy(low), ""},
		"somebody else too": {18, func(s int) float64 { return min(1, low(s)+0.6) }, "job 2: its GPU was " +
			"in use 84 % of the time lately, 48 % by"},
		"far less":          {18, always(0), "job 2: its GPU was in use 0 % of the time lately, 48 % by"},
		"in the other half": {18, high, "job 2: its GPU was at work lately when"},
		"too little seen":   {7, always(1), ""},
		"nothing seen":      {0, nil, ""},
		"what can't be":     {18, always(math.NaN()), ""},
	} {
		cl := newCluster("n1", "n2")
		cl.runs(2, "low first", "n1", 60) // its high half ends: nothing of it is ahead
		cl.saw(c.samples, map[string]func(int) float64{"n1": c.seen})
		o := cl.order("high first")
		n := o.Nodes[0]
		if n.Name != "n1" {
			n = o.Nodes[1]
		}
		if n.Fits != (c.why == "") || !strings.HasPrefix(n.Why, c.why) {
			t.Errorf("%s: %+v, want %q", name, n, c.why)
		}
	}
}

func TestKernelsOfTwoJobsMayRunAtOnceOrInTurn(t *testing.T) {
	for name, c := range map[string]struct {
		use float64
		fit bool
	}{
		"in turn": {0.9, true}, "at once": {0.5, true}, "half of either": {0.1, false},
		"more than both": {1, true},
	} {
		cl := newCluster("n1")
		cl.profiles["half"] = learnt(2, func(int) float64 { return 0.45 })
		cl.profiles["little"] = learnt(2, func(int) float64 { return 0.02 })
		cl.Rules.Slowdown = 2
		cl.runs(1, "half", "n1", 60)
		cl.runs(2, "half", "n1", 60)
		cl.saw(18, map[string]func(int) float64{"n1": func(int) float64 { return c.use }})
		if n := cl.order("little").Nodes[0]; n.Fits != c.fit {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

// What was seen is asked for by the jobs that are on the GPU, and only once they
// are known by their profiles.
func TestWhatAGPUDidLatelyIsAskedForByItsJobs(t *testing.T) {
	c := newCluster("n1", "n2", "n3")
	c.runs(1, "high first", "n1", 60)
	c.runs(2, "high first", "n1", 60)
	c.runs(3, "unheard of", "n2", 60)
	asked := map[string][]slurm.JobID{}
	c.RecentSamples = func(node string, jobs []slurm.JobID) []colocate.UseSample {
		asked[node] = jobs
		return nil
	}
	c.order("low first")
	if len(asked) != 1 || len(asked["n1"]) != 2 || asked["n1"][0] != 1 || asked["n1"][1] != 2 {
		t.Errorf("%v", asked)
	}
}
