package consolidate_test

import (
	"testing"

	"github.com/epplan/epplan/planner/consolidate"
)

func TestCATSSafeIsFeasibleOnEveryInstanceAndBelowOnlineSLA(t *testing.T) {
	sum, worst, other := 0.0, 0.0, 0.0
	files := instances(t)
	for _, file := range files {
		in, bestW := read(t, file), readReference(t, file).Reference.B.BestW
		v := consolidate.Judge(in, consolidate.Place(in, consolidate.CATSSafe{}, consolidate.LowestKept))
		if !v.Feasible() {
			t.Errorf("%s: %+v", file, v)
		}
		gap := 100 * (v.PowerW/bestW - 1)
		sum, worst = sum+gap, max(worst, gap)
		p := consolidate.Place(in, consolidate.OnlineSLA{}, consolidate.LowestKept)
		other += 100 * (consolidate.Judge(in, p).PowerW/bestW - 1)
		t.Logf("%s: %.2f %%, %d GPUs of %d servers", in.Name, gap, v.GPUsOn, v.ServersOn)
	}
	n := float64(len(files))
	t.Logf("mean %.2f %%, worst %.2f %%; online-sla %.2f %%", sum/n, worst, other/n)
	if sum/n > 9 || sum > other {
		t.Errorf("mean gap %.2f %%, want 9 %% at most and less than %.2f %% of online-sla", sum/n, other/n)
	}
}
