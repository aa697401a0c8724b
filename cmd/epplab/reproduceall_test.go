package main

import (
	"context"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/commandtest"
	"github.com/epplan/epplan/lab/reproduction"
	"github.com/epplan/epplan/planner"
)

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
		p := &papers[i]
		r.count = progressCounter(r.t, "test")
		r.start(p)
		found, err := p.compute(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range wantExplained(t, found) {
			why[w] = true
		}
		wantDrawn(t, found)
	}
	for _, w := range reproduction.Reasons() {
		if !why[w] && w != reproduction.InWords { // which needs the trace's lists
			t.Errorf("no figure has the reason %q", w)
		}
	}
}

// wantExplained returns the reasons of a paper's figures; each that is off needs one.
func wantExplained(t *testing.T, found *reproduction.Result) (why []string) {
	t.Helper()
	var csvText strings.Builder
	if err := reproduction.FullTable([]*reproduction.Result{found}).WriteCSV(&csvText); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(csvText.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		off, reason := row[6], row[7]
		why = append(why, reason)
		if x, err := strconv.ParseFloat(off, 64); err == nil && reason == "" && (x > 1 || x < -1) {
			t.Errorf("%s, %s, %s is off by %s, and nothing says why", row[0], row[1], row[2], off)
		}
	}
	return why
}

// wantDrawn checks that each figure of a paper that can be computed has a picture, and each table rows.
func wantDrawn(t *testing.T, found *reproduction.Result) {
	t.Helper()
	var page strings.Builder
	if err := reproduction.WritePage(&page, []*reproduction.Result{found}, nil, "", nil); err != nil {
		t.Fatal(err)
	}
	list := found.Paper.Exhibits()
	for i := range list {
		e := &list[i]
		for _, section := range e.Sections() {
			if !slices.Contains(found.Paper.Sections, section) {
				t.Errorf("%s, %s: no section %s", found.Paper.Name, e.Name(), section)
			}
		}
		if e.WhyNot != "" || e.NeedsLists() {
			continue
		}
		if !slices.ContainsFunc(found.Findings, func(f reproduction.Finding) bool { return e.Has(&f) }) {
			t.Errorf("%s, %s has no number", found.Paper.Name, e.Name())
		}
		drawn := strings.Contains(page.String(), "<figcaption>"+e.Name()+": ")
		if drawn != (e.Kind == reproduction.FigureKind) {
			t.Errorf("%s, %s is drawn: %t", found.Paper.Name, e.Name(), drawn)
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
		names = append(names, papers[i].Name)
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
		t.Log(papers[i].Name)
		commandtest.Stops(t.Context(), t, 200*time.Millisecond, func(ctx context.Context) {
			r.count = progressCounter(r.t, "test")
			r.start(&papers[i])
			if _, err := papers[i].compute(ctx, r); err == nil {
				t.Errorf("%s: ended without an error", papers[i].Name)
			}
		})
	}
}
