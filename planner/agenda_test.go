package planner_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
)

func TestAnAgendaGivesEventsByTimeAndThenByNumberHoweverTheyWereAddedAndMoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var agenda planner.Agenda
		var want []planner.Event // in order
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			e := planner.Event{
				At: float64(rapid.IntRange(0, 9).Draw(t, "time")) / 3, What: rapid.IntRange(0, 9).Draw(t, "number"),
			}
			switch step := rapid.IntRange(0, 4).Draw(t, "step"); {
			case step < 3 || len(agenda) == 0:
				agenda.Add(e)
				want = append(want, e)
			case step == 3:
				i := rapid.IntRange(0, len(agenda)-1).Draw(t, "place")
				moved := slices.Index(want, agenda[i])
				want[moved].At = e.At
				agenda.Move(i, e.At)
			default:
				if got := agenda.Pop(); got != want[0] {
					t.Fatalf("%v comes first, want %v", got, want[0])
				}
				want = want[1:]
			}
			slices.SortFunc(want, func(a, b planner.Event) int {
				return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.What, b.What))
			})
		}
		for _, e := range want {
			if got := agenda.Pop(); got != e {
				t.Fatalf("%v comes next, want %v", got, e)
			}
		}
	})
}
