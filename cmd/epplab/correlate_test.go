package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/commandtest"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/correlate"
)

// drawnSlots are slots of GPUs of which the last comes in half-way, with gaps.
func drawnSlots(slots, gpus int) []*trace.UtilisationSlot {
	rng := rand.New(rand.NewPCG(7, 8))
	all := make([]*trace.UtilisationSlot, slots)
	for i := range all {
		s := &trace.UtilisationSlot{Time: float64(i)}
		there := gpus
		if i < slots/2 {
			there--
		}
		for g := range there {
			u := 100 * rng.Float64()
			if rng.IntN(10) == 0 {
				u = math.NaN()
			}
			s.IDs, s.UtilPct = append(s.IDs, fmt.Sprint("g", g)), append(s.UtilPct, u)
		}
		all[i] = s
	}
	return all
}

func TestAWindowOverAllSlotsEndsWithTheCorrelationsOfTheWholeLog(t *testing.T) {
	const slots, gpus = 60, 5
	w := &windowCorrelator{correlateOptions: &correlateOptions{window: slots, least: 2}}
	series := make([][]float64, gpus)
	for i, s := range drawnSlots(slots, gpus) {
		if err := w.add(s); err != nil {
			t.Fatal(err)
		}
		for g := range series {
			series[g] = append(series[g], math.NaN())
			if g < len(s.UtilPct) {
				series[g][i] = s.UtilPct[g]
			}
		}
	}
	for i := range gpus {
		for j := range i {
			got, want := w.moving.Pearson(i, j), correlate.Pearson(series[j], series[i])
			if got.OK != want.OK || math.Abs(got.R-want.R) > 1e-9 || got.Samples != want.Samples {
				t.Errorf("GPUs %d and %d: %+v, want %+v", j, i, got, want)
			}
		}
	}
}

func TestWindowsAreRankedByTheirMeanAndBoundedByTheirEnds(t *testing.T) {
	const slots, gpus, window = 200, 4, 12
	w := &windowCorrelator{correlateOptions: &correlateOptions{window: window, least: 2}}
	all := drawnSlots(slots, gpus)
	for _, s := range all {
		if err := w.add(s); err != nil {
			t.Fatal(err)
		}
	}
	ends := newExtremes(gpus * gpus)
	if err := w.collect(t.Context(), ends); err != nil {
		t.Fatal(err)
	}
	list := ends.sortedPairs()
	if len(list) != gpus*(gpus-1)/2 {
		t.Fatalf("%d pairs", len(list))
	}
	plain, err := correlate.NewWindow(window)
	if err != nil {
		t.Fatal(err)
	}
	sum, n := 0.0, 0
	for _, s := range all {
		plain.Add(s.UtilPct[0], s.UtilPct[1])
		if r := plain.Pearson(); r.OK {
			sum, n = sum+r.R, n+1
		}
	}
	first := slices.IndexFunc(list, func(p seriesPair) bool { return p.a == "g0" && p.b == "g1" })
	if p := list[first]; p.windows != n || math.Abs(p.r-sum/float64(n)) > 1e-9 ||
		!(p.low <= p.r && p.r <= p.high) {
		t.Errorf("%+v, want a mean of %v over %d windows", p, sum/float64(n), n)
	}
	if len(w.recent) != window || cap(w.recent) > 4*window {
		t.Errorf("%d slots kept in room for %d, want %d", len(w.recent), cap(w.recent), window)
	}
}

func TestALongLogNeedsAWindow(t *testing.T) {
	l := &fullCorrelator{correlateOptions: &correlateOptions{}, slots: maxCells - 1}
	err := l.add(&trace.UtilisationSlot{})
	if err != nil {
		t.Fatal(err)
	}
	l.ids, l.series = []string{"a", "b"}, make([][]float64, 2)
	if err := l.add(&trace.UtilisationSlot{IDs: l.ids, UtilPct: []float64{1, 2}}); err == nil ||
		!strings.Contains(err.Error(), "want --window") {
		t.Errorf("error %v, want that the log is too long", err)
	}
}

func TestAnInterruptedCorrelationPrintsNothing(t *testing.T) {
	if stdout := underTest().WantInterrupted(commandtest.Cancelled(t), t, strings.NewReader(""), "correlate",
		"testdata/utilisation.csv"); stdout != "" {
		t.Errorf("printed %q", stdout)
	}
}

func TestTheEndsOfManyPairsAreThoseOfAllPairsSorted(t *testing.T) {
	const top, pairs = 7, 50_000
	rng := rand.New(rand.NewPCG(3, 4))
	ends, all, without := newExtremes(top), make([]seriesPair, 0, pairs), 0
	for i := range pairs {
		// With many ties.
		p := seriesPair{a: fmt.Sprint("g", i), b: "h", r: math.Round(400*rng.Float64()-200) / 200}
		if i%100 == 0 {
			p.r, without = math.NaN(), without+1
		} else {
			all = append(all, p)
		}
		ends.add(p)
		if len(ends.kept) > 5000 {
			t.Fatalf("%d pairs are kept for %d at either end", len(ends.kept), top)
		}
	}
	slices.SortFunc(all, byCorrelation)
	got := ends.sortedPairs()
	if len(got) != 2*top || ends.without != without {
		t.Fatalf("%d pairs, %d without a correlation, want %d and %d", len(got), ends.without, 2*top, without)
	}
	for i, p := range got {
		want := all[i]
		if i >= top {
			want = all[len(all)-2*top+i]
		}
		if want.least = i < top; p != want {
			t.Errorf("pair %d is %+v, want %+v", i, p, want)
		}
	}
}

func TestAWholeLogOfThousandsOfGPUsIsCorrelated(t *testing.T) {
	const gpus = 3000
	var log strings.Builder
	log.WriteString("time_s,gpu,util_pct\n")
	for slot := range 12 {
		for g := range gpus {
			fmt.Fprintf(&log, "%d,g%d,%d\n", 60*slot, g, (slot*slot*(g%7+1)+g*slot)%100)
		}
	}
	var stdout, stderr bytes.Buffer
	code := newProgram().Run(t.Context(), []string{"epplab", "correlate", "-", "--top", "1", "--csv"},
		strings.NewReader(log.String()), &stdout, &stderr)
	if code != 0 || strings.Count(stdout.String(), "\n") != 3 {
		t.Errorf("exit status %d, printed %q and %q, want two pairs", code, stdout.String(), stderr.String())
	}
}
