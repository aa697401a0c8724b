package modelfit

import (
	"cmp"
	"fmt"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner/join"
)

// fasterBelow is how many times as long a run must take at higher clocks to be doubted: in public tables,
// which are noisy, it is up to a fifth longer.
const fasterBelow = 1.25

// Doubts warns of measurements that can't be right: powers that the board can't have while it computes, and
// applications that are faster at lower clocks.
func (t *Table) Doubts() []error {
	least, most := t.Profile.IdleW, cmp.Or(t.Profile.PowerLimit.Max, join.MaxUnknownBoardPower)
	beyond := powerDoubt(fmt.Sprintf("beyond the %g W of a %s", float64(most), t.Profile.Name))
	below := powerDoubt(fmt.Sprintf("below the %g W of an idle %s", float64(least), t.Profile.Name))
	inverted := doubt{
		one: "application is faster at lower clocks", many: "applications are faster at lower clocks",
		want: "longer times there",
	}
	for _, app := range t.Apps {
		var slower, faster dvfsmodel.Sample
		for _, s := range app.Samples {
			at := fmt.Sprintf("%q at %s MHz: %g W", app.App, s.At().Short(), float64(s.Power))
			beyond.note(float64(s.Power/most), 1, at)
			below.note(float64(least/s.Power), join.IdleSpread, at)
			for _, o := range app.Samples {
				if o.Core <= s.Core && o.Mem <= s.Mem && o.Cap == s.Cap && s.Time*faster.Time > o.Time*slower.Time ||
					faster.Time == 0 {
					slower, faster = s, o
				}
			}
		}
		if faster.Time > 0 {
			inverted.note(slower.Time/faster.Time, fasterBelow, fmt.Sprintf(
				"%q at %s MHz: %.4g s, and %.4g s at %s MHz", app.App, slower.At().Short(), slower.Time,
				faster.Time, faster.At().Short()))
		}
	}
	var list []error
	for _, d := range []doubt{beyond, below, inverted} {
		if d.count > 0 {
			list = append(list, fmt.Errorf("%s, such as %s, want %s",
				report.Plural(d.count, d.one, d.many), d.worst, d.want))
		}
	}
	return list
}

// doubt counts measurements that can't be right in one way.
type doubt struct {
	one, many string // of what is doubted
	want      string
	count     int
	worst     string
	by        float64 // how far off the worst is
}

func powerDoubt(is string) doubt {
	return doubt{
		one: "measurement " + is, many: "measurements " + is,
		want: "the mean power of one GPU in watts",
	}
}

// note counts a measurement that is further off than may be.
func (d *doubt) note(by, most float64, measured string) {
	if by > most {
		if d.count++; by > d.by {
			d.worst, d.by = measured, by
		}
	}
}
