package trace_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/lab/trace"
)

// slotsOf returns the slots of a log as text.
func slotsOf(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	_, err := trace.StreamUtilisation(strings.NewReader(text), "log.csv", 10, mostSeries,
		func(s *trace.UtilisationSlot) error {
			all = append(all, fmt.Sprint(s.Time, s.IDs, s.UtilPct))
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestALogIsStreamedSlotBySlotWithItsGaps(t *testing.T) {
	got := slotsOf(t, `time_s,gpu,util_pct
100,a,10
105,a,30
110,b,50
125,b,NaN
131,a,40
132,b,70
`)
	want := []string{"100 [a] [20]", "110 [a b] [NaN 50]", "120 [a b] [NaN NaN]", "130 [a b] [40 70]"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAStreamedJobIsTheMeanOfItsGPUs(t *testing.T) {
	got := slotsOf(t, `time_s,job,host,gpu,util_pct,mem_gb
0,train,n1,0,80,10
0,train,n1,1,40,12
0,,n1,2,0,0
10,train,n1,0,70,10
`)
	if want := []string{"0 [train] [60]", "10 [train] [70]"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// mostSeries are how many series logs of these tests may have.
const mostSeries = 8

func TestLogsThatCannotBeStreamedSayWhere(t *testing.T) {
	const head = "time_s,gpu,util_pct\n"
	var many strings.Builder
	many.WriteString(head)
	for i := range mostSeries + 1 {
		fmt.Fprintf(&many, "0,g%d,1\n", i)
	}
	for _, c := range []struct{ text, want string }{
		{head + "20,a,1\n5,b,1\n", "log.csv:3:1: time goes back, want all lines sorted by time"},
		{head + "0,a,1\n1e9,a,1\n", "log.csv:3:1: 100000000 slots without a sample, want fewer"},
		{head, "log.csv:1: no samples, want lines with a utilisation"},
		{many.String(), "log.csv:10: more than 8 GPUs or jobs, want fewer"},
	} {
		_, err := trace.StreamUtilisation(strings.NewReader(c.text), "log.csv", 10, mostSeries,
			func(*trace.UtilisationSlot) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.40q: error %v, want %s", c.text, err, c.want)
		}
	}
	enough := errors.New("enough")
	if _, err := trace.StreamUtilisation(strings.NewReader(head+"0,a,1\n"), "log.csv", 10, mostSeries,
		func(*trace.UtilisationSlot) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("error %v, want the callback's", err)
	}
}

func TestAStreamHasTheSlotsOfTheWholeLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		text.WriteString("time_s,job,gpu,util_pct,mem_gb\n")
		now := 0.0
		for range rapid.IntRange(1, 60).Draw(t, "lines") {
			now += rapid.Float64Range(0, 25).Draw(t, "step")
			fmt.Fprintf(&text, "%g,j%d,%d,%g,1\n", now, rapid.IntRange(0, 3).Draw(t, "job"),
				rapid.IntRange(0, 1).Draw(t, "gpu"), rapid.Float64Range(0, 100).Draw(t, "util"))
		}
		whole, err := trace.ReadUtilisation(strings.NewReader(text.String()), "log.csv", 10)
		if err != nil {
			t.Fatal(err)
		}
		series := make(map[string][]float64)
		for _, s := range whole.Series {
			if s.GPUs == 1 { // of several, the whole log holds each one's gaps
				series[s.ID] = s.UtilPct
			}
		}
		slot := 0
		_, err = trace.StreamUtilisation(strings.NewReader(text.String()), "log.csv", 10, mostSeries,
			func(s *trace.UtilisationSlot) error {
				for i, id := range s.IDs {
					if want, single := series[id]; single && !math.IsNaN(s.UtilPct[i]) &&
						math.Abs(s.UtilPct[i]-want[slot]) > 1e-9 {
						t.Fatalf("slot %d of %s is %g, want %g", slot, id, s.UtilPct[i], want[slot])
					}
				}
				slot++
				return nil
			})
		if err != nil || slot != len(whole.Series[0].UtilPct) {
			t.Fatalf("%d slots, want %d: %v", slot, len(whole.Series[0].UtilPct), err)
		}
	})
}
