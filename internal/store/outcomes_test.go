package store_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

func TestAnOutcomeComesBackAsItWasStored(t *testing.T) {
	s, _ := openNew(t)
	bare := &record.Outcome{
		Cluster: "alpha", RunID: "bare", JobID: 77, Unmatched: true, Arm: live.ArmExcluded,
	}
	stepped := outcome(3)
	stepped.Stays = stays()
	over := outcome(4)
	over.Restarted = record.Restarted{TimeS: live.Known(100)}
	over.WorkClock = record.WorkClock{CoreMHz: live.Known(1087.5), SpreadMHz: live.Known(12)}
	over.Notes = []string{"its clocks were set again", "twice"}
	over.Shared, over.NotLocked = true, live.NotLocked{Kind: live.NotLockedLate, Why: "the hook's deadline passed"}
	capped := outcome(5)
	capped.Setting.Cap, capped.Setting.Profile = 180, dvfsmodel.MaxQ
	for _, want := range []*record.Outcome{outcome(1), outcome(2), stepped, over, bare, capped} {
		put(t, s, want, store.Stored)
		got, err := s.OutcomesOfJob(t.Context(), "alpha", want.JobID)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || !reflect.DeepEqual(got[0], *want) {
			t.Errorf("stored %+v\nread   %+v", *want, got)
		}
	}
}

func TestARepeatChangesNothingAndADifferentOneIsKeptAside(t *testing.T) {
	s, _ := openNew(t)
	first := outcome(1)
	put(t, s, first, store.Stored)
	put(t, s, outcome(1), store.Repeated)
	other := outcome(1)
	other.GPUEnergyJ = live.Known(7)
	put(t, s, other, store.Conflicting)
	put(t, s, other, store.Conflicting)
	got, err := s.OutcomesOfJob(t.Context(), "alpha", first.JobID)
	if err != nil || len(got) != 1 || got[0].GPUEnergyJ != first.GPUEnergyJ {
		t.Errorf("after a conflict: %+v, %v", got, err)
	}
	conflicts := exported(t, s, "outcome_conflicts")
	if len(conflicts) != 1 || !strings.Contains(conflicts[0], `"gpu_energy_j":7,`) {
		t.Errorf("the conflict was kept as %q", conflicts)
	}
}

// A controller of before them may have acknowledged the outcome.
func TestAnOutcomeThatComesAgainWithMoreOfItIsARepeat(t *testing.T) {
	s, _ := openNew(t)
	first := outcome(1)
	first.CapW, first.OtherCapsS = live.Number{}, live.Number{}
	put(t, s, first, store.Stored)
	again := outcome(1)
	again.Stays, again.Restarted = stays(), restarted()
	put(t, s, again, store.Repeated)
	again.RunID = "run-2"
	put(t, s, again, store.Stored)
	if lines := exported(t, s, "outcome_details"); !strings.Contains(lines[1],
		`"stays":[{"core_mhz":1380,"seconds_s":200,"work_s":180.5,"energy_j":30000,`) {
		t.Errorf("exported %s", lines)
	}
}

func TestTheSameRunIDOnAnotherClusterIsAnotherRun(t *testing.T) {
	s, _ := openNew(t)
	put(t, s, outcome(1), store.Stored)
	other := outcome(1)
	other.Cluster = "beta"
	put(t, s, other, store.Stored)
}

func TestAnUnmatchedOutcomeIsKeptButNeverCounted(t *testing.T) {
	s, _ := openNew(t)
	put(t, s, outcome(0), store.Stored)
	stray := outcome(3) // the same workload
	stray.Unmatched = true
	put(t, s, stray, store.Stored)
	page, err := s.Learning.OutcomesOf(t.Context(), workload(0), 0, 10)
	if err != nil || len(page.Outcomes) != 1 || page.Outcomes[0].RunID != "run-000000" {
		t.Errorf("outcomes of the workload: %+v, %v", page.Outcomes, err)
	}
	strata, err := s.Strata(t.Context(), "alpha", time.Time{}, time.Time{})
	if err != nil || len(strata) != 1 || strata[0].GPU.Runs != 1 {
		t.Errorf("strata: %+v, %v", strata, err)
	}
	if all, err := s.OutcomesOfJob(t.Context(), "alpha", stray.JobID); err != nil || len(all) != 1 ||
		!all[0].Unmatched {
		t.Errorf("the unmatched outcome: %+v, %v", all, err)
	}
}

func TestAnOutcomeWithoutKeyIsInvalid(t *testing.T) {
	s, _ := openNew(t)
	for name, spoil := range map[string]func(*record.Outcome){
		"no cluster":      func(o *record.Outcome) { o.Cluster = "" },
		"no run id":       func(o *record.Outcome) { o.RunID = "" },
		"run id not text": func(o *record.Outcome) { o.RunID = "a\xff" },
		"cluster with 0":  func(o *record.Outcome) { o.Cluster = "a\x00b" },
		"a negative stay": func(o *record.Outcome) {
			o.Stays = []dvfsmodel.ClockResidency{{Core: 1380, Seconds: -1}}
		},
		"too many stays": func(o *record.Outcome) {
			o.Stays = slices.Repeat(stays(), record.MaxResidencies)
		},
	} {
		o := outcome(1)
		spoil(o)
		if _, err := s.PutOutcome(t.Context(), o); !errors.Is(err, record.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHostileTextIsKeptAsText(t *testing.T) {
	s, _ := openNew(t)
	o := outcome(1)
	o.Node = "n'); DROP TABLE outcomes; --\x00\xff"
	o.ExitState = strings.Repeat("é", 32)
	o.Notes = []string{"\x00'"}
	put(t, s, o, store.Stored)
	put(t, s, o, store.Repeated)
	got, err := s.OutcomesOfJob(t.Context(), "alpha", o.JobID)
	if err != nil || len(got) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got[0].Node != "n'); DROP TABLE outcomes; --\uFFFD\uFFFD" || got[0].ExitState != o.ExitState ||
		got[0].Notes[0] != "\uFFFD'" {
		t.Errorf("node %q, state %q", got[0].Node, got[0].ExitState)
	}
}

func TestOutcomesOfAWorkloadComeInPages(t *testing.T) {
	s, _ := openNew(t)
	for i := range 20 {
		put(t, s, outcome(i), store.Stored)
	}
	var runs []string
	pages := 0
	for before := int64(0); ; pages++ {
		page, err := s.Learning.OutcomesOf(t.Context(), workload(1), before, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Outcomes {
			runs = append(runs, strings.TrimPrefix(page.Outcomes[i].RunID, "run-0000"))
		}
		if before = page.Next; before == 0 {
			break
		}
	}
	if got := strings.Join(runs, " "); got != "19 16 13 10 07 04 01" || pages != 2 {
		t.Errorf("runs %s on %d pages", got, pages+1)
	}
}

func TestACallerThatLeavesGetsItsOwnReason(t *testing.T) {
	s, _ := openNew(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.PutOutcome(gone, outcome(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled write: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutOutcome(t.Context(), outcome(1)); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a write after Close: %v", err)
	}
}

// Nodes name their runs themselves: what one sends can neither occupy nor shadow a run
// of another one.
func TestARunOfAnotherNodeUnderTheSameIDIsAnotherRun(t *testing.T) {
	s, _ := openNew(t)
	forged := outcome(1)
	forged.Node, forged.JobID, forged.GPUEnergyJ = "n2", 999, live.Known(1)
	put(t, s, forged, store.Stored)
	put(t, s, outcome(1), store.Stored)
	put(t, s, outcome(1), store.Repeated)
	late := *forged
	late.GPUEnergyJ = live.Known(2)
	put(t, s, &late, store.Conflicting)
	all, err := s.OutcomesOfJob(t.Context(), "alpha", outcome(1).JobID)
	if err != nil || len(all) != 1 || all[0].GPUEnergyJ != outcome(1).GPUEnergyJ {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := s.Prune(t.Context(), start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	other := outcome(1)
	other.Node = "n3"
	put(t, s, other, store.Stored) // also once the others were pruned
	put(t, s, forged, store.Repeated)
}
