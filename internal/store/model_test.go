package store_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// ledger is what a store should hold, in the plainest form.
type ledger struct {
	store *store.Store
	path  string
	now   time.Time

	order    []string                   // runs in the order in which they came
	first    map[string]record.Outcome  // by run id, pruned ones too
	received map[string]time.Time       // when
	pruned   map[string]bool            // details gone
	asides   map[string]bool            // conflicts, by all that they are
	decided  map[string]record.Decision // the last, by job and node
	versions int64
	inUse    int64
}

// open opens the ledger's database again.
func (l *ledger) open(t *rapid.T) {
	if l.store != nil {
		if err := l.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), l.path, &store.Options{Now: func() time.Time { return l.now }})
	if err != nil {
		t.Fatal(err)
	}
	l.store = s
}

// putOutcome delivers an outcome of a few runs, in one of two variants.
func (l *ledger) putOutcome(t *rapid.T) {
	o := outcome(rapid.IntRange(0, 12).Draw(t, "run"))
	if rapid.Bool().Draw(t, "variant") {
		o.GPUEnergyJ, o.Arm = live.Known(5), live.ArmHeldOut
	}
	receipt, err := l.store.PutOutcome(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := store.Stored
	if there, ok := l.first[o.RunID]; !ok {
		l.first[o.RunID], l.received[o.RunID] = *o, l.now
		l.order = append(l.order, o.RunID)
	} else if want = store.Repeated; there.GPUEnergyJ != o.GPUEnergyJ {
		want = store.Conflicting
		l.asides[o.RunID+o.GPUEnergyJ.String()] = true
	}
	if receipt != want {
		t.Fatalf("run %s was %s, not %s", o.RunID, receipt, want)
	}
	l.now = l.now.Add(time.Minute)
}

// putDecision decides anew for one of a few jobs.
func (l *ledger) putDecision(t *rapid.T) {
	d := decision(rapid.IntRange(0, 3).Draw(t, "job"))
	d.Node = rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node")
	d.Reason = rapid.String().Draw(t, "reason")
	d.Created = l.now
	id, err := l.store.PutDecision(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	d.ID, d.Created, d.Reason = id, record.StoredTime(d.Created), record.CleanText(d.Reason)
	l.decided[fmt.Sprint(d.JobID, d.Node)] = *d
}

// prune removes what came before one of a few times.
func (l *ledger) prune(t *rapid.T) {
	before := start.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute)
	if _, err := l.store.Prune(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	for run, at := range l.received {
		if at.Before(before) {
			l.pruned[run] = true
		}
	}
	for key, d := range l.decided {
		if d.Created.Before(before) {
			delete(l.decided, key)
		}
	}
	clear(l.asides) // their times aren't in the ledger; check leaves them alone from here on
}

// changeModel fits a model or puts one in use.
func (l *ledger) changeModel(t *rapid.T) {
	var err error
	switch version := rapid.Int64Range(0, 3).Draw(t, "version"); {
	case version == 3:
		use := rapid.Bool().Draw(t, "use")
		var got int64
		if got, err = l.store.Learning.PutModel(t.Context(), model("", use)); got != l.versions+1 {
			t.Fatalf("version %d after %d", got, l.versions)
		}
		l.versions++
		if use {
			l.inUse = l.versions
		}
	case version <= l.versions:
		err = l.store.Learning.UseModel(t.Context(), workload(0), version, "")
		l.inUse = version
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check compares the store with the ledger.
func (l *ledger) check(t *rapid.T) {
	var want []string
	for _, run := range slices.Backward(l.order) {
		if o := l.first[run]; o.Workload == "w0" && !l.pruned[run] {
			want = append(want, run+o.GPUEnergyJ.String())
		}
	}
	page, err := l.store.Learning.OutcomesOf(t.Context(), workload(0), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(page.Outcomes))
	for i := range page.Outcomes {
		got = append(got, page.Outcomes[i].RunID+page.Outcomes[i].GPUEnergyJ.String())
	}
	if !slices.Equal(got, want) {
		t.Fatalf("outcomes %q, not %q", got, want)
	}
	for _, want := range l.decided {
		all, err := l.store.DecisionsOfJob(t.Context(), "alpha", want.JobID)
		all = slices.DeleteFunc(all, func(d record.Decision) bool { return d.Node != want.Node })
		if err != nil || len(all) == 0 || all[len(all)-1] != want {
			t.Fatalf("decisions %+v, %v, not %+v", all, err, want)
		}
	}
	if m, err := l.store.Learning.Model(t.Context(), workload(0)); (err == nil) != (l.inUse > 0) ||
		m.Version != l.inUse {
		t.Fatalf("model %d in use, not %d: %v", m.Version, l.inUse, err)
	}
	l.checkStrata(t)
	l.checkAsides(t)
}

// checkAsides wants each conflict of the ledger to be in the store.
func (l *ledger) checkAsides(t *rapid.T) {
	var text strings.Builder
	if err := l.store.Export(t.Context(), &text, "outcome_conflicts"); err != nil {
		t.Fatal(err)
	}
	for key := range l.asides {
		run := key[:len("run-000000")]
		if !strings.Contains(text.String(), run) {
			t.Fatalf("the conflict over %s is missing", run)
		}
	}
}

// checkStrata computes the means again, pruned runs included.
func (l *ledger) checkStrata(t *rapid.T) {
	energies := map[string][]float64{}
	for _, o := range l.first {
		key := o.Workload + string(o.Arm)
		energies[key] = append(energies[key], o.GPUEnergyJ.Or(math.NaN()))
	}
	strata, err := l.store.Strata(t.Context(), "alpha", time.Time{}, time.Time{})
	if err != nil || len(strata) != len(energies) {
		t.Fatalf("%d strata, not %d: %v", len(strata), len(energies), err)
	}
	for _, stratum := range strata {
		all := energies[stratum.Workload+string(stratum.Arm)]
		want := record.Mean{Runs: int64(len(all)), Freedom: int64(len(all) - 1)}
		for _, e := range all {
			want.Value += e / float64(len(all))
		}
		for _, e := range all {
			want.Variance += (e - want.Value) * (e - want.Value) / max(1, float64(len(all)-1))
		}
		if !sameMean(stratum.GPU, want) {
			t.Fatalf("stratum %+v, not %+v", stratum, want)
		}
	}
}

func TestAStoreHoldsWhatAPlainLedgerHolds(t *testing.T) {
	dir, n := tempDir(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		l := &ledger{
			path: filepath.Join(dir, strconv.Itoa(n)+".db"), now: start, first: map[string]record.Outcome{},
			received: map[string]time.Time{}, pruned: map[string]bool{}, asides: map[string]bool{},
			decided: map[string]record.Decision{},
		}
		defer func() { _ = l.store.Close() }()
		l.open(t)
		t.Repeat(map[string]func(*rapid.T){
			"outcome": l.putOutcome, "more": l.putOutcome, "decision": l.putDecision, "prune": l.prune,
			"model": l.changeModel, "reopen": l.open, "": l.check,
		})
	})
}
