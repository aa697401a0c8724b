package powerbudget

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
)

// TestRunsDuringAnInterval: an oracle looks at every run.
func TestRunsDuringAnInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) planner.Interval {
			from := rapid.Float64Range(0, 20).Draw(t, what)
			return planner.Interval{From: from, To: from + rapid.Float64Range(0.1, 10).Draw(t, "for")}
		}
		var runs nodeRuns
		all := make([]planner.Interval, rapid.IntRange(0, 20).Draw(t, "runs"))
		for task := range all {
			all[task] = draw("run")
			runs.add(nodeRun{Interval: all[task], task: task})
		}
		during := draw("during")
		var got, want []int
		for run := range runs.during(during) {
			got = append(got, run.task)
		}
		for task, run := range all {
			if run.To > during.From && run.From < during.To {
				want = append(want, task)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("tasks %v, want %v", got, want)
		}
	})
}
