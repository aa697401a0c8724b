package policy_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/score"
)

// small returns a cluster of three nodes and a workload of one class.
func small() (fleet.Workload, *fleet.State) {
	k := &fleet.Kind{
		Model: "T4", CPU: 32_000, Mem: 1000, GPUs: 2, Power: fleet.Power{GPUIdle: 10, GPUBusy: 70},
	}
	m := fleet.Workload{{Demand: fleet.Demand{CPU: 1000, GPUs: 1, Milli: 300}, P: 1}}
	return m, fleet.NewState([]*fleet.Kind{k, k, k})
}

func TestEveryPlacementChoosesTheSameFastAndPlain(t *testing.T) {
	for _, text := range []string{
		"pwr", "FGD", "pwr+fgd", "pwr+fgd:0", "pwr+fgd:1", "PWR+FGD:0.05", "pwr+fgd:Auto", "bestfit",
		"dotprod", "gpupacking", "GpuClustering",
		"epwr", "priced", "priced:300", "priced:300,50", "priced:300,50,14",
		"potential", "Potential:room=0.3", "mix:pwr=0.1,fgd=0.9", "mix:BestFit=1",
		"mix:pwr=0,dotprod=2",
	} {
		p, err := policy.ParsePlacement(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if p.Name != text {
			t.Errorf("%s: name %q", text, p.Name)
		}
		m, a := small()
		_, b := small()
		fast, plain := p.Chooser(m, a, 42), score.Chooser(score.NewFullScan(p.ScorerRule(m), b))
		for i, d := range []fleet.Demand{
			{CPU: 1000, GPUs: 1, Milli: 300},
			{CPU: 500},
			{CPU: 1000, GPUs: 1, Milli: 1000},
			{GPUs: 1, Milli: 300},
			{GPUs: 2, Milli: 1000},
		} {
			node, gpus, ok := fast.Choose(&d)
			if n, g, k := plain.Choose(&d); n != node || g != gpus || k != ok {
				t.Errorf("%s: task %d to node %d, GPUs %v, plainly node %d, GPUs %v", text, i, node,
					gpus.Indexes(), n, g.Indexes())
			}
			for _, c := range []score.Chooser{fast, plain} {
				if err := c.Place(node, &d, gpus); err != nil {
					t.Errorf("%s: task %d: %v", text, i, err)
				}
			}
		}
	}
}

func TestRandomDrawsByTheSeedThatIsWrittenElseByTheGivenOne(t *testing.T) {
	drawn := func(text string, seed uint64) []int {
		p, err := policy.ParsePlacement(text)
		if err != nil {
			t.Fatal(err)
		}
		m, s := small()
		c, nodes := p.Chooser(m, s, seed), make([]int, 40)
		for i := range nodes {
			nodes[i], _, _ = c.Choose(&fleet.Demand{GPUs: 1, Milli: 300})
		}
		return nodes
	}
	if want := drawn("random", 7); !slices.Equal(drawn("random:7", 42), want) ||
		slices.Equal(drawn("random", 42), want) {
		t.Error("the seed isn't the one that is written, or the given one")
	}
}

func TestAlphaIsPowersPartOfTheWeight(t *testing.T) {
	m, _ := small()
	for text, want := range map[string][]float64{
		"pwr+fgd": {100, 900}, "pwr+fgd:0.2": {200, 800}, "pwr+fgd:0.05": {50, 950}, "pwr+fgd:0": {1000},
		"pwr+fgd:1":           {1000},
		"mix:fgd=0.9,pwr=0.1": {900, 100}, "fgd": {1000},
	} {
		p, err := policy.ParsePlacement(text)
		if err != nil {
			t.Fatal(err)
		}
		parts := p.ScorerRule(m).Parts
		if len(parts) != len(want) {
			t.Fatalf("%s: %d parts, want %d", text, len(parts), len(want))
		}
		for i, w := range want {
			if parts[i].Weight != w {
				t.Errorf("%s: weight %v, want %v", text, parts[i].Weight, w)
			}
		}
	}
}

func TestAWrittenSeedGoesBeforeTheGivenOne(t *testing.T) {
	draws := func(text string, seed uint64) string {
		p, err := policy.ParsePlacement(text)
		if err != nil {
			t.Fatal(err)
		}
		m, s := small()
		c := p.Chooser(m, s, seed)
		var nodes strings.Builder
		for range 50 {
			n, _, _ := c.Choose(&fleet.Demand{CPU: 1})
			nodes.WriteString(strconv.Itoa(n))
		}
		return nodes.String()
	}
	if draws("random:7", 1) != draws("random:7", 2) || draws("random:7", 1) != draws("random", 7) ||
		draws("random", 1) == draws("random", 2) {
		t.Error("seeds are mixed up")
	}
}

func TestFaultsOfPlacementsNameTheirPlace(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		msg    string
	}{
		{"", 0, `unknown placement "", want one of pwr, fgd, pwr+fgd, bestfit`},
		{"powr", 0, `unknown placement "powr"`},
		{"fgd:1", 4, `takes no arguments, got "1"`},
		{"fgd:", 4, "nothing follows the colon"},
		{"pwr+fgd:2", 8, "want a number from 0 to 1, or auto"},
		{"pwr+fgd:NaN", 8, "want a number from 0 to 1, or auto"},
		{"random:-1", 7, "want a whole number from 0"},
		{"priced:100,x", 11, `"x", want a number from 0`},
		{"priced:1,2,3,4", 13, "want at most three numbers"},
		{"priced:1,2,0", 11, "0 vCPU a GPU"},
		{"potential:room", 10, `"room", want room=R`},
		{"potential:riser=2", 10, `unknown parameter "riser", want room`},
		{"potential:room=-2", 15, `"-2", want a number from 0 to 1`},
		{"potential:room=1.5", 15, `"1.5", want a number from 0 to 1`},
		{"mix", 3, `"", want name=weight`},
		{"mix:pwr=0.1,fgd", 12, `"fgd", want name=weight`},
		{"mix:pwr=0.1,fgd=-1", 16, `weight "-1", want a number from 0`},
		{"mix:pwr=0.1,random=1", 12, `unknown part "random", want one of pwr, fgd`},
		{"mix:pwr=0", 4, "every weight is 0"},
	} {
		_, err := policy.ParsePlacement(c.text)
		var fault *policy.SyntaxError
		if !errors.As(err, &fault) {
			t.Errorf("%s: %v, want a syntax error", c.text, err)
			continue
		}
		if fault.Offset != c.offset || !strings.Contains(fault.Msg, c.msg) || fault.Text != c.text {
			t.Errorf("%s: %q at %d, want %q at %d", c.text, fault.Msg, fault.Offset, c.msg, c.offset)
		}
	}
}

func TestTheDefaultPlacementIsOne(t *testing.T) {
	if _, err := policy.ParsePlacement(policy.DefaultPlacement); err != nil {
		t.Error(err)
	}
}

func TestEveryPlacementIsDescribed(t *testing.T) {
	for _, name := range policy.PlacementNames() {
		usage, doc := policy.DescribePlacement(name)
		if !strings.HasPrefix(usage, name) || doc == "" {
			t.Errorf("%s: usage %q, %q", name, usage, doc)
		}
	}
	if usage, doc := policy.DescribePlacement("nothing"); usage != "" || doc != "" {
		t.Errorf("nothing: %q, %q", usage, doc)
	}
}

func TestPolicyStringsWithAKeyTwiceOrNothingAfterACommaAreRefused(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		msg    string
	}{
		{"value,kappa=1,kappa=3", 14, "kappa is given twice"},
		{"simple,place=best-fit,place=first-fit", 22, "place is given twice"},
		{"value,", 6, "nothing after the last comma"},
		{"value,kappa=1,", 14, "nothing after the last comma"},
		{"pwr,rho=1,rho=2", 10, "rho is given twice"},
	} {
		_, err := policy.Parse(c.text, policy.DefaultParams())
		var fault *policy.SyntaxError
		if !errors.As(err, &fault) || fault.Offset != c.offset || !strings.Contains(fault.Msg, c.msg) {
			t.Errorf("%s: %v, want %q at %d", c.text, err, c.msg, c.offset)
		}
	}
}
