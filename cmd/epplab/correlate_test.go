package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/lab/trace"
)

func TestALogOfTooManySlotsIsRefused(t *testing.T) {
	l := &correlatedLog{correlateOptions: &correlateOptions{}, slots: maxCells - 1}
	err := l.add(&trace.UtilisationSlot{})
	if err != nil {
		t.Fatal(err)
	}
	l.ids, l.series = []string{"a", "b"}, make([][]float64, 2)
	if err := l.add(&trace.UtilisationSlot{IDs: l.ids, UtilPct: []float64{1, 2}}); err == nil ||
		!strings.Contains(err.Error(), "want longer slots") {
		t.Errorf("error %v, want that the log is too long", err)
	}
}

func TestAnInterruptedCorrelationPrintsNothing(t *testing.T) {
	if stdout := wantInterrupted(t, "correlate",
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
