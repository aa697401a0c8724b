package factors

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/hours"
)

// Rates price the energy of plans: by the hour what a series states, and by constant factors the rest. Nil
// rates have no price.
type Rates struct {
	constant config.Factors // 0 for what the series states
	hourly   [len(kinds)]hours.Prices
	// Known is the time for which the series has rows, seconds of the plans; zero: nothing changes by the hour.
	Known planner.Interval
}

// NewRates returns the rates of plans whose second 0 is at a time, zero if unknown, and whose last task
// arrives so many seconds later. Without a file all is constant. The error names what isn't priced, and why; the
// rates price the rest.
func NewRates(f *config.Factors, file string, begin time.Time, last float64) (*Rates, error) {
	r := &Rates{constant: *f}
	if file == "" {
		return r, nil
	}
	s, err := ReadFile(file)
	end := begin.Add(time.Duration(last * float64(time.Second)))
	switch {
	case err != nil:
	case begin.IsZero():
		err = errors.New("the jobs' times are no dates with a zone, want --at TIME for when their second 0 is")
	case end.Before(s.times[0]) || !begin.Before(s.End()):
		err = fmt.Errorf("%s has %s to %s, and the jobs arrive from %s to %s", file, utcText(s.times[0]),
			utcText(s.End()), utcText(begin), utcText(end))
	default:
		r.Known = planner.Interval{From: s.times[0].Sub(begin).Seconds(), To: s.End().Sub(begin).Seconds()}
	}
	var unpriced []string
	for kind, name := range kinds {
		if s != nil && !s.States(Kind(kind)) {
			continue
		}
		*factorOf(&r.constant, Kind(kind)) = 0
		if err == nil {
			r.hourly[kind], _ = s.Prices(Kind(kind), begin, end.Sub(begin)+MaxQueued, f)
		}
		unpriced = append(unpriced, name)
	}
	if err != nil {
		r.constant.Series = ""
		err = fmt.Errorf("no %s stated, which [factors] series has by the hour: %w",
			strings.Join(unpriced, " and no "), err)
	}
	return r, err
}

// MaxQueued is for how long after the last arrival jobs may be at work.
const MaxQueued = 366 * 24 * time.Hour

func utcText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Hourly reports whether anything is priced by the hour.
func (r *Rates) Hourly() bool { return r != nil && r.Known.Len() > 0 }

// During returns the mean factors of energy that is used evenly over a time.
func (r *Rates) During(t planner.Interval) config.Factors {
	return r.mean(func(pr hours.Prices) float64 { return pr.Integral(t) / max(1, t.Len()) })
}

// Of returns the mean factors of a plan's energy, each joule at its own time. Plans that share GPUs by
// profile have none by the hour.
func (r *Rates) Of(p *planner.Problem, plan *planner.Plan) config.Factors {
	return r.mean(func(pr hours.Prices) float64 {
		cost, err := pr.Cost(p, plan)
		if err != nil {
			return 0 // GPUs are shared by profile
		}
		return cost / max(1, float64(plan.Ledger.Total()))
	})
}

// mean returns the constant factors, and those of a price per joule for the rest.
func (r *Rates) mean(price func(hours.Prices) float64) (f config.Factors) {
	if r == nil {
		return f
	}
	f = r.constant
	for kind, pr := range r.hourly {
		if len(pr.Function) > 0 {
			*factorOf(&f, Kind(kind)) = price(pr) * dvfsmodel.JoulesPerKWh / max(1, f.PUE)
		}
	}
	return f
}
