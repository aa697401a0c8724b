package savings_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/savings"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// secondBySecond is the oracle of [savings.Slots]: it adds up each second of each run, whose times are whole
// seconds.
func secondBySecond(runs []record.RunEnergy, from time.Time, seconds, count int) []savings.Slot {
	slots := make([]savings.Slot, count)
	for _, r := range runs {
		each := 1 / r.Ended.Sub(r.Started).Seconds()
		for at := r.Started; at.Before(r.Ended); at = at.Add(time.Second) {
			k := int(at.Unix()-from.Unix()) / seconds
			if at.Before(from) || k >= count {
				continue
			}
			slots[k].Used += each * r.GPUJ
			slots[k].Default += each * r.DefaultJ.Or(r.GPUJ)
			if r.Arm == live.ArmHeldOut {
				slots[k].HeldOut += each * r.GPUJ
			}
		}
	}
	return slots
}

func TestTheEnergyOfRunsIsSpreadOverTheirRunTime(t *testing.T) {
	from := time.Unix(1_700_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		seconds, count := rapid.IntRange(1, 90).Draw(t, "seconds"), rapid.IntRange(1, 12).Draw(t, "slots")
		whole := rapid.Bool().Draw(t, "all runs are in the period")
		first, last := -200, seconds*count+200
		if whole {
			first, last = 0, seconds*count
		}
		runs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) record.RunEnergy {
			begin := rapid.IntRange(first, last).Draw(t, "begin")
			end := rapid.IntRange(begin, last).Draw(t, "end")
			r := record.RunEnergy{
				Started: from.Add(time.Duration(begin) * time.Second),
				Ended:   from.Add(time.Duration(end) * time.Second),
				Arm:     rapid.SampledFrom([]live.Arm{live.ArmTreated, live.ArmHeldOut}).Draw(t, "arm"),
				GPUJ:    rapid.Float64Range(0, 1e9).Draw(t, "energy"),
			}
			if rapid.Bool().Draw(t, "predicted") {
				r.DefaultJ = live.Known(rapid.Float64Range(0, 1e9).Draw(t, "at default clocks"))
			}
			return r
		}), 0, 12).Draw(t, "runs")
		got := savings.Slots(runs, from, time.Duration(seconds)*time.Second, count)
		all, used := 0.0, 0.0
		for i, want := range secondBySecond(runs, from, seconds, count) {
			if !same(got[i].Used, want.Used) || !same(got[i].Default, want.Default) ||
				!same(got[i].HeldOut, want.HeldOut) {
				t.Fatalf("slot %d is %+v, want %+v", i, got[i], want)
			}
			all += got[i].Used
		}
		for i := range runs {
			if runs[i].Ended.After(runs[i].Started) {
				used += runs[i].GPUJ
			}
		}
		if whole && math.Abs(all-used) > 1e-9*max(1, used) {
			t.Fatalf("the slots have %v J, the runs %v J", all, used)
		}
	})
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }
