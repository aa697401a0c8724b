package share

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/sharingtest"
	"github.com/epplan/epplan/planner/sharing"
)

// drawCurve is any curve of contention, now and then none.
func drawCurve(t *rapid.T) *sharing.Curve {
	if rapid.IntRange(0, 5).Draw(t, "curve") == 0 {
		return nil
	}
	return &sharing.Curve{
		Exponent: rapid.Float64Range(1, 4).Draw(t, "exponent"),
		ByTask:   rapid.Float64Range(0, .2).Draw(t, "by task"),
		ByMemory: rapid.Float64Range(0, .3).Draw(t, "by memory"),
	}
}

// drawScarce returns an instance of a mix under a drawn curve, with all of its
// servers or too few of them.
func drawScarce(t *rapid.T) *sharing.Instance {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	mix := rapid.SampledFrom([]string{"paperlike", "light", "gang", "mixedkappa"}).Draw(t, "mix")
	in := sharingtest.Draw(r, mix, rapid.IntRange(4, 12).Draw(t, "tasks"))
	in.Contention = drawCurve(t)
	in.Servers = in.Servers[:rapid.IntRange(1, len(in.Servers)).Draw(t, "servers")]
	return in
}

// witness is a rule under watch: the judge tells of each choice that breaks an
// SLA whether another GPU was left that keeps them.
type witness struct {
	*rapid.T
	rule Rule
	all  int
	bad  int // choices that break an SLA
}

func (w *witness) Choose(s *sharing.State, task int, taken []int) (int, bool) {
	gpu, ok := w.rule.Choose(s, task, taken)
	if ok {
		w.all++
	}
	if ok && judgedWith(s, task, gpu) {
		return gpu, true
	}
	if ok {
		w.bad++
	}
	for other := range s.GPUs() {
		if !slices.Contains(taken, other) && judgedWith(s, task, other) {
			w.Fatalf("task %d on GPU %d (%v), and on GPU %d everybody is fast enough", task, gpu, ok, other)
		}
	}
	return gpu, ok
}

// judgedWith reports whether the judge has nothing against a GPU with one more
// task, at the highest frequency.
func judgedWith(s *sharing.State, task, gpu int) bool {
	p := Placement{GPUs: make([][]int, len(s.Instance().Tasks)), MHz: make([]dvfsmodel.MHz, s.GPUs())}
	for _, l := range append(slices.Clone(s.Tasks(gpu)), task) {
		p.GPUs[l] = []int{gpu}
	}
	p.MHz[gpu] = s.Instance().Physics.Max()
	v := Evaluate(s.Instance(), p)
	return v.Violations == 0 && v.OverMemory == 0
}

func TestCATSSafeBreaksNoSLAByTheCurveWhileAGPUIsLeftThatKeepsIt(t *testing.T) {
	kept, broken, blind := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		in := drawScarce(t)
		w := &witness{T: t, rule: CATSSafe{Futures: 4}}
		v := Evaluate(in, Place(in, w, LowestClock))
		if w.bad == 0 && (v.Violations > 0 || v.OverMemory > 0 || len(v.Faults) > 0) {
			t.Fatalf("each choice of %d is fine, and all together aren't: %+v", w.all, v)
		}
		if w.bad > 0 {
			broken++
			return
		}
		kept++
		byLoad := *in
		byLoad.Contention = nil
		if v := Evaluate(in, Place(&byLoad, CATSSafe{Futures: 4}, LowestClock)); v.Violations > 0 {
			blind++
		}
	})
	if !testing.Short() && (kept < 20 || broken < 5 || blind < 10) {
		t.Errorf("SLAs are kept in %d instances, and can't be in %d; without the curve they aren't in %d: "+
			"too few to tell", kept, broken, blind)
	}
}

func TestASketchWithMorePiecesIsTheStateWithThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawScarce(t)
		s := sharing.NewState(in)
		seen, _ := recentTasks(s, len(in.Tasks)-1)
		k := newScratchState(s, seen)
		for task := range in.Tasks {
			gpu := rapid.IntRange(0, s.GPUs()-1).Draw(t, "gpu")
			overload, _ := s.OverloadWith(task, gpu, nil)
			kappa := min(s.Kappa(gpu), in.Tasks[task].Kappa)
			if kept := overload <= kappa+sharing.Tolerance &&
				s.Fits(task, gpu); k.fits(&seen[task], gpu) != kept &&
				math.Abs(overload-kappa-sharing.Tolerance) > 1e-9 {
				t.Fatalf("GPU %d keeps SLAs with task %d: %v, by the state %v: %v times as long, "+
					"allowed are %v", gpu, task, !kept, kept, overload, kappa)
			}
			k.add(&seen[task], gpu)
			s.Add(task, gpu)
			want := in.Physics.PowerAt(LowestClock(s, gpu))
			if got := k.on[gpu]; got.watts != want || math.Abs(got.freeGB-s.FreeGB(gpu)) > 1e-9 {
				t.Fatalf("GPU %d with task %d: %+v, want %v W and %v GB", gpu, task, got, want, s.FreeGB(gpu))
			}
		}
	})
}
