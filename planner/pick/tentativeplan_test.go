package pick

import (
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

// drafted returns a draft for a pool of four GPUs and the tasks that wait there, each
// with GPUs and seconds, from time 0 on.
func drafted(rounds int, waiting ...[2]float64) *tentativePlan {
	d := newTentativePlan([]float64{4}, newResidualTimes(0.35))
	d.rounds = rounds
	for i, x := range waiting {
		p := pair{task: i}
		p.GPUs, p.Time = x[0], x[1]
		d.items.add(1, 0, []pair{p}, 0)
		d.enqueue(int32(i))
	}
	return &d
}

// begins returns the items that start now.
func (d *tentativePlan) begins() (all []int32) {
	for i, item := range d.line {
		if d.now[i] {
			all = append(all, item)
		}
	}
	slices.Sort(all)
	return all
}

func TestADraftPutsATaskBeforeOneOfLessWorkWhereAllWaitLessThen(t *testing.T) {
	// By rising work the one of three GPUs is first and the others wait for its end;
	// the two of two GPUs before it run at once.
	waiting := [][2]float64{{3, 60}, {2, 100}, {2, 100}, {1, 250}}
	for rounds, want := range [][]int32{{0}, {1, 2}} {
		d := drafted(rounds, waiting...)
		d.build(0, []float64{4})
		if got := d.begins(); !slices.Equal(got, want) {
			t.Errorf("%d rounds: %v start now, want %v", rounds, got, want)
		}
	}
}

func TestTheFrugalClassIsDearWhileManyTasksArrive(t *testing.T) {
	f := newRollout(Lookahead{Weight: 1}, []float64{4, 4}, newResidualTimes(0.35))
	task := func() []pair {
		a, b := pair{class: 0}, pair{class: 1}
		a.Time, b.Time, a.Energy, b.Energy = 100, 100, 4*dvfsmodel.JoulesPerKWh, dvfsmodel.JoulesPerKWh
		return []pair{a, b}
	}
	price := func(now float64) float64 {
		f.setDelayPrices(&f.plan, now)
		if f.plan.futureDelayCost[0] != 0 {
			t.Errorf("the class that saves nothing is priced at %v", f.plan.futureDelayCost[0])
		}
		return f.plan.futureDelayCost[1]
	}
	f.learn(0, task())
	quiet := price(0)
	for at := 10.0; at <= 50; at += 10 {
		f.learn(at, task())
	}
	if busy, after := price(50), price(1000); busy < 3*quiet || after > quiet/10 {
		t.Errorf("priced at %v by one arrival, at %v by six, at %v long after", quiet, busy, after)
	}
	f.closed = true
	if got := price(50); got != 0 {
		t.Errorf("priced at %v where nothing arrives any more", got)
	}
}
