package budget

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/textfile"
)

// Series is a standing budget over time: at dates, at times of every day, or at seconds of a plan.
type Series struct {
	steps     []Step        // at dates; of a plan, at seconds from the zero time on
	daily     []dailyBudget // ascending; else nil
	inSeconds bool
}

// dailyBudget holds from a time of every day on.
type dailyBudget struct {
	at    time.Time // its hour, minute and second alone
	watts dvfsmodel.Watt
}

var seriesColumns = []textfile.Column{
	{Name: "time", Aliases: []string{"timestamp", "datetime"}, Required: true}, {Name: "watts", Required: true},
}

// planColumns have the seconds of a plan.
var planColumns = []textfile.Column{{Name: secondsColumn, Required: true}, seriesColumns[1]}

const (
	secondsColumn = "time_s"
	maxSeconds    = 1e9
)

// maxSeriesRows is three years of hours.
const maxSeriesRows = 3 * 366 * 24

// ReadSeries reads a budget over time from a table with the columns time and watts, each row from its time
// on: times with a date and an offset, or times such as 17:00 of every day. The first bad cell is an error
// with its place.
func ReadSeries(r io.Reader, name string) (*Series, error) { return readSeries(r, name, false) }

// ReadPlanSeries is [ReadSeries] of a plan: the column time_s, seconds of the plan, may stand for time.
func ReadPlanSeries(r io.Reader, name string) (*Series, error) { return readSeries(r, name, true) }

func readSeries(r io.Reader, name string, ofPlan bool) (*Series, error) {
	rows, err := textfile.OpenTable(r, name, "time and watts", textfile.OnlyText)
	if err != nil {
		return nil, err
	}
	s, columns := &Series{}, seriesColumns
	if s.inSeconds = ofPlan && rows.Has(secondsColumn); s.inSeconds {
		columns = planColumns
	}
	at, _, err := rows.Arrange(columns, nil)
	if err != nil {
		return nil, err
	}
	if err := rows.Each(func() error { return s.add(rows, at[0].At, at[1].At) }); err != nil {
		return nil, err
	}
	if len(s.steps)+len(s.daily) == 0 {
		return nil, &textfile.SyntaxError{Pos: rows.CellAt(0), Msg: "no rows", Want: "one or more"}
	}
	return s, nil
}

// add reads a row.
func (s *Series) add(rows *textfile.Table, timeAt, wattsAt int) error {
	watts, err := rows.Number(wattsAt)
	if err != nil {
		return err
	}
	power, err := strconv.ParseFloat(watts, 64)
	if err != nil || !(power > 0 && power <= maxWatts) {
		return &textfile.SyntaxError{
			Pos: rows.CellAt(wattsAt), Msg: "watts is " + textfile.Quoted(rows.Cell(wattsAt)),
			Want: fmt.Sprintf("a number above 0, up to %g", float64(maxWatts)),
		}
	}
	text := rows.Cell(timeAt)
	fault := &textfile.SyntaxError{Pos: rows.CellAt(timeAt), Msg: "time is " + textfile.Quoted(text)}
	if len(s.steps)+len(s.daily) == maxSeriesRows {
		fault.Msg = fmt.Sprintf("more than %d rows", maxSeriesRows)
		return fault
	}
	if s.inSeconds {
		return s.addSeconds(rows, timeAt, dvfsmodel.Watt(power))
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if clock, err := time.Parse(layout, text); err == nil && len(s.steps) == 0 {
			if n := len(s.daily); n > 0 && !clock.After(s.daily[n-1].at) {
				fault.Want = "one after that of the row before"
				return fault
			}
			s.daily = append(s.daily, dailyBudget{clock, dvfsmodel.Watt(power)})
			return nil
		}
	}
	when, zoned, ok := textfile.Moment(text)
	switch n := len(s.steps); {
	case len(s.daily) > 0:
		fault.Want = "a time of every day, as in the first row"
		return fault
	case !ok || !zoned:
		fault.Want = "one such as 2026-01-31T13:00:00Z, or 17:00 for every day"
		return fault
	case n > 0 && !when.After(s.steps[n-1].From):
		fault.Want = "one after that of the row before"
		return fault
	}
	s.steps = append(s.steps, Step{when, dvfsmodel.Watt(power)})
	return nil
}

// addSeconds adds a budget from a second of a plan on.
func (s *Series) addSeconds(rows *textfile.Table, timeAt int, watts dvfsmodel.Watt) error {
	text, err := rows.Number(timeAt)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(text, 64)
	when := time.Time{}.Add(time.Duration(seconds * float64(time.Second)))
	if n := len(s.steps); err != nil || !(seconds >= 0 && seconds <= maxSeconds) ||
		n > 0 && !when.After(s.steps[n-1].From) {
		return &textfile.SyntaxError{
			Pos: rows.CellAt(timeAt), Msg: secondsColumn + " is " + textfile.Quoted(rows.Cell(timeAt)),
			Want: "0 or more, and more than in the row before",
		}
	}
	s.steps = append(s.steps, Step{when, watts})
	return nil
}

// HasClock reports whether the budget holds at dates or times of day, not at seconds of a plan.
func (s *Series) HasClock() bool { return !s.inSeconds }

// daysAhead is how many days ahead steps are told apart.
const daysAhead = 8

// Steps returns the budget as a [Schedule] has it, from the day before a time on, in whose zone every day's
// times are. More than some days ahead it is the least that is to come. Where a standing budget is lower,
// that counts; 0: there is none.
func (s *Series) Steps(now time.Time, standing dvfsmodel.Watt) []Step {
	return s.Ahead(now, standing, daysAhead)
}

// Ahead is [Series.Steps] for so many days ahead. Seconds of a plan count from now on.
func (s *Series) Ahead(now time.Time, standing dvfsmodel.Watt, days int) []Step {
	if standing == 0 {
		standing = unlimited
	}
	var steps []Step
	first, last := now.AddDate(0, 0, -1), now.AddDate(0, 0, days)
	for _, step := range s.steps {
		if s.inSeconds {
			step.From = now.Add(step.From.Sub(time.Time{}))
		}
		step.Watts = min(step.Watts, standing)
		switch n := len(steps); {
		case n > 0 && !step.From.After(first):
			steps[0] = step
		case n > 0 && steps[n-1].From.After(last):
			steps[n-1].Watts = min(steps[n-1].Watts, step.Watts)
		default:
			steps = append(steps, step)
		}
	}
	for day := -1; len(s.daily) > 0 && day <= days; day++ {
		for _, d := range s.daily {
			hour, minute, second := d.at.Clock()
			year, month, date := now.Date()
			from := time.Date(year, month, date+day, hour, minute, second, 0, now.Location())
			steps = append(steps, Step{from, min(d.watts, standing)})
		}
	}
	if len(s.daily) > 0 {
		least := slices.MinFunc(steps, func(x, y Step) int { return cmp.Compare(x.Watts, y.Watts) })
		year, month, date := now.Date()
		steps = append(steps, Step{time.Date(year, month, date+days+1, 0, 0, 0, 0, now.Location()), least.Watts})
	}
	// Where clocks are set forward, a time that there isn't comes behind those after it.
	slices.SortStableFunc(steps, func(x, y Step) int { return x.From.Compare(y.From) })
	return steps
}
