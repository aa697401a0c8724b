package planreport

import (
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
)

// A reason that is unknown to planner gets its default words: that tells which
// ones are known.
func TestEveryReasonHasShortWords(t *testing.T) {
	unknown := planner.Reason{Clocks: 255, Place: 255}
	for code := range 255 {
		clocks := planner.Reason{Clocks: planner.ClockReason(code), Place: 255}
		if (code == 0 || clocks.String() != unknown.String()) && clockWords[clocks.Clocks] == "" {
			t.Errorf("no short words for %q", clocks)
		}
		place := planner.Reason{Clocks: 255, Place: planner.PlaceReason(code)}
		if (code == 0 || place.String() != unknown.String()) && placeWords[place.Place] == "" {
			t.Errorf("no short words for %q", place)
		}
	}
}

func TestAPlanThatMissesDeadlinesMayTakeLessThanTheBound(t *testing.T) {
	for energy, want := range map[dvfsmodel.Joule][3]string{
		103: {"3.00 %", "above", "which no schedule that is in time can beat"},
		100: {"0 %", "above", "which no schedule that is in time can beat"},
		99:  {"1.00 %", "below", "the least for keeping all deadlines"},
	} {
		s := Summary{Objective: float64(energy), ObjectiveBound: 100, ObjectiveUnit: "J"}
		part, side := s.boundDistance()
		if got := [3]string{part, side, s.boundText()}; got != want {
			t.Errorf("%v J against a bound of 100 J: %q, want %q", float64(energy), got, want)
		}
	}
}

func TestOfAnotherObjectiveTheBestAndTheGapAreByIt(t *testing.T) {
	of := func(policy string, energy dvfsmodel.Joule, objective float64) Run {
		return Run{Summary: Summary{
			Policy: policy, JobsTotal: 1, Energy: energy, Bound: 80, Objective: objective,
			ObjectiveBound: 1000, ObjectiveUnit: "J + 50·GPU·s",
		}}
	}
	runs := []Run{of("frugal", 90, 1300), of("quick", 110, 1100), of("even", 100, 1200)}
	c := runsByProblem(runs)[0]
	c.chooseBest()
	got := c.bestText()
	for _, want := range []string{
		"quick has the least objective of all 3 plans", "1100 (J + 50·GPU·s)",
		"10.0 % above what no schedule can beat",
		"The next one, even, has 9.09 % more, and takes 9.09 % less energy",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q, want %q in it", got, want)
		}
	}
	var b strings.Builder
	if err := WriteComparison(&b, runs, &report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"how far the objective is above", "110.000   10 "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s\nwant %q in it", b.String(), want)
		}
	}
}

func TestAnAmountIsInTheUnitOfTheObjective(t *testing.T) {
	scale := report.CommonScale(report.Joules, 5, 4.43042e7)
	for unit, want := range map[string]string{
		"J": "44.304 MJ", "GPU·s": "4.4304·10⁷ GPU·s", "J + 50·GPU·s": "4.4304·10⁷ (J + 50·GPU·s)",
		"(J + 50·GPU·s)·GPU·s": "4.4304·10⁷ (J + 50·GPU·s)·GPU·s",
	} {
		s := Summary{ObjectiveUnit: unit}
		if got := s.objectiveText(4.43042e7, scale); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&Summary{ObjectiveUnit: "EUR"}).objectiveText(31.7933, scale); got != "31.793 EUR" {
		t.Errorf("%q, want 31.793 EUR", got)
	}
}

func TestDotsInTheSamePlaceShareTheirName(t *testing.T) {
	point := func(time float64) dvfsmodel.Point {
		return dvfsmodel.Point{Time: time, Power: 1000, Energy: dvfsmodel.Joule(1e6 - 100*time)}
	}
	for other, want := range map[float64][]string{
		100: {">runs here, default<"},
		200: {">runs here<", ">default<"},
	} {
		j := &jobCurve{
			id: "a", optimalPoints: []dvfsmodel.Point{point(100), point(200)}, chosen: point(100),
			defaultPoint: point(other),
		}
		var names []string
		wide, _, _ := strings.Cut(string(drawJobCurves("id", []*jobCurve{j})), "pic narrow")
		for _, text := range strings.Split(wide, "<text")[1:] {
			for _, name := range []string{">runs here, default<", ">runs here<", ">default<"} {
				if strings.Contains(text[:strings.Index(text, "/text")+1], name) {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("dots at 100 s and %v s are called %q, want %q", other, names, want)
		}
	}
}

func TestColoursFollowTheClock(t *testing.T) {
	for _, c := range []struct {
		clock float64
		want  string
	}{
		{0, "#215499"},
		{.5, "#215499"},
		{.625, "#447ab3"},
		{1, "#f0dea6"},
		{2, "#cd5038"},
	} {
		if got := clockColor(c.clock).hex(); got != c.want {
			t.Errorf("the colour of %v is %s, want %s", c.clock, got, c.want)
		}
	}
}
