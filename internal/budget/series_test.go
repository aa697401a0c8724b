package budget_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/budget"
)

func seriesOf(t *testing.T, text string) *budget.Series {
	t.Helper()
	s, err := budget.ReadSeries(strings.NewReader(text), "hours.csv")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A budget of every day holds at its times by the clock on the wall, also where clocks are set forward and
// back.
func TestABudgetOfEveryDayHoldsByTheClock(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s := seriesOf(t, "time,watts\n00:00,300\n02:30,250\n03:00,200\n17:00:30,100\n20:00,300\n")
	for _, day := range []time.Time{
		time.Date(2026, 3, 28, 0, 0, 0, 0, zone), time.Date(2026, 10, 24, 0, 0, 0, 0, zone),
		time.Date(2026, 7, 1, 0, 0, 0, 0, zone),
	} {
		for now := day; now.Before(day.AddDate(0, 0, 3)); now = now.Add(13 * time.Minute) {
			schedule := budget.Schedule{Steps: s.Steps(now, 0)}
			for ahead := time.Duration(0); ahead < 7*24*time.Hour; ahead += 97 * time.Minute {
				at := now.Add(ahead).In(zone)
				want := dvfsmodel.Watt(300)
				switch clock := at.Format("15:04:05"); {
				case clock >= "20:00:00":
				case clock >= "17:00:30":
					want = 100
				case clock >= "03:30:00":
					want = 200
				case clock >= "02:00:00":
					continue // is there twice, or not at all
				}
				if got := schedule.At(at); got != want && !(clockSet(at) && got <= 300) {
					t.Fatalf("seen from %s: %v W at %s, want %v", now, got, at, want)
				}
			}
			if least := schedule.LeastEver(now); least != 100 {
				t.Fatalf("%s: least %v", now, least)
			}
		}
	}
}

// clockSet reports whether clocks are set forward or back on the day of a time.
func clockSet(at time.Time) bool {
	y, m, d := at.Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, at.Location()).Sub(time.Date(y, m, d, 0, 0, 0, 0, at.Location())) !=
		24*time.Hour
}

func TestABudgetAtDatesHoldsFromEachOnAndTheLowerOneCounts(t *testing.T) {
	s := seriesOf(t, "time;watts\n2026-01-31T13:00:00Z;300\n2026-01-31 15:00+01:00;100\n2026-01-31T16:00:00Z;500\n")
	at := func(hour int) time.Time { return time.Date(2026, 1, 31, hour, 30, 0, 0, time.UTC) }
	for standing, want := range map[dvfsmodel.Watt][]dvfsmodel.Watt{
		0: {300, 300, 100, 500}, 250: {250, 250, 100, 250},
	} {
		schedule := budget.Schedule{Steps: s.Steps(at(0), standing)}
		for i, hour := range []int{5, 13, 14, 23} {
			if got := schedule.At(at(hour)); got != want[i] {
				t.Errorf("with %v W standing: %v W at %v:30, want %v", standing, got, hour, want[i])
			}
		}
	}
}

// Of a year of hours the days that matter are told apart, and what comes later counts as the least of it.
func TestALongBudgetIsShortAheadAndNeverAboveWhatIsToCome(t *testing.T) {
	var text strings.Builder
	text.WriteString("time,watts\n")
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	wattsAt := func(hour int) dvfsmodel.Watt { return dvfsmodel.Watt(1000 - hour*37%501) }
	const hours = 365 * 24
	for hour := range hours {
		fmt.Fprintf(&text, "%s,%v\n", begin.Add(time.Duration(hour)*time.Hour).Format(time.RFC3339), wattsAt(hour))
	}
	s := seriesOf(t, text.String())
	for day := 3; day < 360; day += 7 {
		now := begin.AddDate(0, 0, day)
		schedule := budget.Schedule{Steps: s.Steps(now, 0)}
		if n := len(schedule.Steps); n > 24*(daysKept+1) {
			t.Fatalf("%d steps", n)
		}
		least := dvfsmodel.Watt(1e9)
		for hour := day * 24; hour < hours; hour++ {
			got, want := schedule.At(begin.Add(time.Duration(hour)*time.Hour)), wattsAt(hour)
			if least = min(least, want); got > want || got != want && hour < (day+8)*24 {
				t.Fatalf("day %d: %v W in hour %d, want %v", day, got, hour, want)
			}
		}
		if got := schedule.LeastEver(now); got != least {
			t.Errorf("day %d: least %v, want %v", day, got, least)
		}
	}
}

// daysKept are those that are told apart: one before now, eight after.
const daysKept = 9

func TestABadBudgetOverTimeIsAnErrorWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"time,watts\n":                                              "no rows",
		"time\n17:00\n":                                             "watts",
		"time,watts\n17:00,0\n":                                     "hours.csv:2:7: watts is \"0\"",
		"time,watts\n17:00,2e12\n":                                  "hours.csv:2:7",
		"time,watts\n17:00,5\n09:00,5\n":                            "hours.csv:3:1: time is \"09:00\"",
		"time,watts\n25:00,5\n":                                     "or 17:00 for every day",
		"time,watts\n2026-01-31 13:00,5\n":                          "hours.csv:2:1: time is",
		"time,watts\n17:00,5\n2026-01-31T13:00:00Z,5\n":             "a time of every day",
		"time,watts\n2026-01-31T13:00:00Z,5\n17:00,5\n":             "hours.csv:3:1",
		"time,watts\n2026-01-31T13:00:00Z,5\n2026-01-31T13:00Z,5\n": "hours.csv:3:1",
	} {
		if s, err := budget.ReadSeries(strings.NewReader(text), "hours.csv"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", text, s, err, want)
		}
	}
}

// A plan reads the same files as epd, and seconds of its own: far ahead both count as the least to come.
func TestAPlanReadsBudgetsBySecondsAndByTheClock(t *testing.T) {
	begin := time.Date(2026, 11, 30, 16, 0, 0, 0, time.UTC)
	for text, want := range map[string]map[time.Duration]dvfsmodel.Watt{
		"time_s,watts\n0,500\n7200,300\n10800.5,600\n": {0: 500, 2 * time.Hour: 300, 4 * time.Hour: 600},
		"time,watts\n00:00,500\n17:00,300\n20:00,600\n": {
			0: 500, time.Hour: 300, 4 * time.Hour: 600, 25 * time.Hour: 300, 300 * time.Hour: 300,
		},
		"time,watts\n2026-11-30T12:00Z,500\n2026-11-30T18:00+01:00,300\n": {0: 500, 2 * time.Hour: 300},
	} {
		s, err := budget.ReadPlanSeries(strings.NewReader(text), "hours.csv")
		if err != nil {
			t.Fatal(err)
		}
		schedule := budget.Schedule{Steps: s.Ahead(begin, 0, 3)}
		for ahead, want := range want {
			if got := schedule.At(begin.Add(ahead)); got != want {
				t.Errorf("%q: %v W after %v, want %v", text, got, ahead, want)
			}
		}
	}
	if _, err := budget.ReadSeries(strings.NewReader("time_s,watts\n0,500\n"), "hours.csv"); err == nil {
		t.Error("epd takes seconds of nothing")
	}
}
