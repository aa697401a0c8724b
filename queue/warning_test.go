package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/queue"
)

func TestWarningsAreOneLineForEachKindTheMostDangerousFirst(t *testing.T) {
	warning := func(kind queue.WarningKind, job string, weight float64, text string) error {
		return &queue.Warning{Kind: kind, Job: job, Weight: weight, Err: errors.New(text)}
	}
	warnings := []error{
		errors.New("first"),
		warning(queue.WarnPower, "a", 150, "a has no power on V100"),
		warning(queue.WarnPower, "a", 100, "a has no power on A100"),
		warning(queue.WarnPower, "b", 200, "b has no power on V100"),
		warning(queue.WarnKilled, "c", 2, "c is killed"),
		warning(queue.WarnRunTime, "d", 5, "d may run on V100"),
		warning(queue.WarnRunTime, "e", 7, "e may run on V100"),
	}
	want := []string{
		"2 jobs may run on GPU models on which their run times weren't measured, such as e may run on V100",
		"c is killed", "2 jobs have no known power: one is assumed, such as b has no power on V100", "first",
	}
	if got := queue.WarningLines(warnings, false); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := queue.WarningLines(warnings, true); len(got) != len(warnings) || got[0] != "d may run on V100" {
		t.Errorf("all: %q", got)
	}
	if got := queue.SummariseWarnings(warnings, true)[2]; got.Kind != "power_assumed" || got.Count != 2 ||
		got.Example != "b has no power on V100" || len(got.All) != 3 {
		t.Errorf("%+v", got)
	}
	if got := queue.WithoutWarnings(warnings, queue.WarnPower); len(got) != 4 || len(warnings) != 7 {
		t.Errorf("%v", got)
	}
}

func TestOfWarningsOfNoKindFiveAreShownAndTheOthersCounted(t *testing.T) {
	warnings := make([]error, 8)
	for i := range warnings {
		warnings[i] = fmt.Errorf("warning %d", i)
	}
	got := queue.WarningLines(warnings, false)
	if len(got) != 6 || got[4] != "warning 4" || got[5] != "… and 3 more" {
		t.Errorf("%q", got)
	}
}

func TestNoWarningIsLostWhateverItsKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		warnings := make([]error, rapid.IntRange(0, 40).Draw(t, "warnings"))
		jobs := map[queue.WarningKind]map[string]bool{}
		for i := range warnings {
			w := &queue.Warning{
				Kind:   queue.WarningKind(rapid.IntRange(0, int(queue.WarnOther)).Draw(t, "kind")),
				Job:    rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "job"),
				Weight: rapid.Float64Range(-1, 1).Draw(t, "weight"), Err: fmt.Errorf("warning %d", i),
			}
			name := w.Job
			if name == "" || w.Kind == queue.WarnOther {
				name = w.Error() // counts for itself
			}
			if warnings[i] = w; jobs[w.Kind] == nil {
				jobs[w.Kind] = map[string]bool{}
			}
			jobs[w.Kind][name] = true
		}
		all, before, counts := 0, queue.WarningKind(0), map[queue.WarningKind]int{}
		for _, g := range queue.GroupWarnings(warnings) {
			if g.Kind < before {
				t.Fatalf("kind %v after %v", g.Kind, before)
			}
			before, all, counts[g.Kind] = g.Kind, all+len(g.All), counts[g.Kind]+g.Count
			checkGroup(t, &g)
		}
		if all != len(warnings) {
			t.Fatalf("%d warnings in groups, want %d", all, len(warnings))
		}
		for kind, want := range jobs {
			if counts[kind] != len(want) {
				t.Fatalf("%v: %d jobs, want %d", kind, counts[kind], len(want))
			}
		}
	})
}

// checkGroup checks that all warnings of a group are of its kind, and none is worse than the worst.
func checkGroup(t *rapid.T, g *queue.WarningGroup) {
	worst, _ := errors.AsType[*queue.Warning](g.Worst)
	for _, err := range g.All {
		if w, _ := errors.AsType[*queue.Warning](err); w.Kind != g.Kind || w.Weight > worst.Weight {
			t.Fatalf("%+v in the group of %+v", w, worst)
		}
	}
}
