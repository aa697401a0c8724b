package trace_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/lab/trace"
)

func TestCoRunsAreReadWithTheirLoadBySlot(t *testing.T) {
	all, err := trace.ReadCoRuns(strings.NewReader("tasks,slowdown,memory,load_pct,note\n"+
		"2,1.25,0.5,90 130 110,first\n1,1,0,40,\n"), "runs.csv")
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if o := all[0]; o.Slowdown != 1.25 || o.Tasks != 2 || o.Memory != 0.5 || len(o.LoadPct) != 3 ||
		o.LoadPct[1] != 130 {
		t.Errorf("%+v", o)
	}
}

func TestBadCoRunsSayWhereAndWhatWasExpected(t *testing.T) {
	const head = "slowdown,tasks,load_pct,memory\n"
	for _, c := range []struct{ text, want string }{
		{"", "runs.csv: is empty, want a header"},
		{
			"slowdown,tasks\n",
			"runs.csv:1: column load_pct is missing, want slowdown, tasks, load_pct, memory",
		},
		{head, "runs.csv:1: no samples, want a line for each"},
		{head + "0,2,90,0.5\n", `runs.csv:2:1: slowdown is "0", want more than 0`},
		{head + "1.2,1.5,90,0.5\n", `runs.csv:2:5: tasks is "1.5", want a whole number of 1 or more`},
		{head + "1.2,2,90 x,0.5\n", `runs.csv:2:7: load_pct has "x", want per cent from 0 on`},
		{head + "1.2,2,,0.5\n", "runs.csv:2:7: no load_pct, want per cent by slot"},
		{head + "1.2,2,90,50\n", `runs.csv:2:10: memory is "50", want 0 to 1`},
	} {
		_, err := trace.ReadCoRuns(strings.NewReader(c.text), "runs.csv")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %s", c.text, err, c.want)
		}
	}
}

func FuzzCoRunsNeverPanic(f *testing.F) {
	f.Add("slowdown,tasks,load_pct,memory\n1.2,2,90 120,0.5\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := trace.ReadCoRuns(strings.NewReader(text), "runs.csv")
		for i := range all {
			if err == nil && (all[i].Tasks < 1 || !(all[i].Slowdown > 0) || len(all[i].LoadPct) == 0) {
				t.Fatalf("%+v", all[i])
			}
		}
	})
}
