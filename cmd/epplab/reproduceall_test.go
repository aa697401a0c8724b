package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/commandtest"
	"github.com/epplan/epplan/lab/paperdiff"
	"github.com/epplan/epplan/planner"
)

func TestAFigureIsApartInPointsWhereItIsAPartOfSomething(t *testing.T) {
	for _, c := range []struct {
		f    finding
		want string
	}{
		{finding{unit: "W", ours: 110, paper: 100}, "+10.0 %"},
		{finding{unit: "W", ours: 99.99, paper: 100}, "+0.0 %"},
		{finding{unit: "s", ours: 50, paper: 100}, "-50.0 %"},
		{finding{unit: "% saved", ours: 35, paper: 33.5}, "+1.5 points"},
		{finding{unit: "%", ours: -2.5, paper: 2.5}, "-5.0 points"},
		{finding{unit: "GRAR", ours: 0.0247, paper: 0.02}, "+0.5 points"},
		{finding{unit: "load", ours: 0.89, paper: 0.88}, "+1.0 points"},
	} {
		if got := c.f.differenceText(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
}

func TestFiguresThatSayNothingOfThePaperAreCountedApart(t *testing.T) {
	r := &reproducedPaper{paper: &papers[3], findings: []finding{
		{section: "testbed", what: "mean of both stages: cats", unit: "W", ours: 502, paper: 301},
		// Fitted
		{section: "testbed", what: "mean of both stages: hotcloud", unit: "W", ours: 385.8, paper: 385.8},
		// Another machine.
		{section: "table1", what: "2 tasks, as-printed", unit: "s", ours: 0.02, paper: 0.02},
		// The paper gives none.
		{section: "pai", what: "bf: power", unit: "W", ours: 1},
	}}
	if got, want := countAgreement(r), (agreementCount{far: 1, incomparable: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	r.paper, r.findings = &papers[0], []finding{
		{section: "table3", what: "J1 (δ 0, deadline 50) power", unit: "W", ours: 125, paper: 125.23},
		{section: "online", what: "run energy with DVFS", unit: "MJ", ours: 76.2, paper: 79.87},
	}
	if got, want := countAgreement(r), (agreementCount{same: 1, near: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What is far off without a reason leaves the reader alone with it.
func TestEveryFigureThatIsOffHasItsReason(t *testing.T) {
	r := &reproducer{
		t: &terminal.Terminal{
			Stderr: new(strings.Builder),
		},
		seed:        planner.DefaultSeed,
		firstStream: paperFirstSeed,
		reproduceScale: reproduceScale{
			sets: 1, streams: 1, instances: 2, tuning: 2, scale: 0.01, proof: time.Millisecond,
		},
	}
	why := make(map[string]bool)
	for i := range papers {
		r.count, r.sections = progressCounter(r.t, "test"), papers[i].sections
		found, err := papers[i].compute(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		found.paper = &papers[i]
		for _, f := range withPaperValue(figuresOf([]*reproducedPaper{found})) {
			why[f.why] = true
			if off := f.difference(); f.why == "" && (off > samePct || off < -samePct) {
				t.Errorf("%s, %s, %s is off by %s, and nothing says why", f.of.name, f.section, f.what,
					f.differenceText())
			}
		}
	}
	for _, w := range paperdiff.All() {
		if !why[w] && w != paperdiff.InWords { // which needs the trace's lists
			t.Errorf("no figure has the reason %q", w)
		}
	}
}

func TestThePapersAreThoseThatHaveACommand(t *testing.T) {
	commands := reproduceCommand(&terminal.Terminal{}).Subcommands
	names, want := make([]string, 0, len(papers)), make([]string, 0, len(commands))
	for _, c := range commands {
		want = append(want, c.Name)
	}
	for i := range papers {
		names = append(names, papers[i].name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("papers %v, commands %v", names, want)
	}
}

func TestAnInterruptedReproductionPrintsNothing(t *testing.T) {
	if stdout := wantInterrupted(t, "reproduce"); stdout != "" {
		t.Errorf("printed %q", stdout)
	}
}

func TestEachPaperStopsWithinASecondAtWhateverItIs(t *testing.T) {
	r := &reproducer{
		t: &terminal.Terminal{
			Stderr: new(strings.Builder),
		},
		seed:           planner.DefaultSeed,
		firstStream:    paperFirstSeed,
		reproduceScale: fullScale,
	}
	for i := range papers {
		t.Log(papers[i].name)
		commandtest.Stops(t.Context(), t, 200*time.Millisecond, func(ctx context.Context) {
			r.count, r.sections = progressCounter(r.t, "test"), papers[i].sections
			if _, err := papers[i].compute(ctx, r); err == nil {
				t.Errorf("%s: ended without an error", papers[i].name)
			}
		})
	}
}
