package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner/correlate"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/trace"
)

// windowCorrelator follows the correlations of all pairs over a window. What it keeps
// follows from the window and the number of series, not from the length of the
// log.
type windowCorrelator struct {
	*correlateOptions

	ids    []string
	recent [][]float64 // the latest slots, as many as a window has, for when a series comes in
	moving *correlate.Candidates
	sums   []windowStats // by pair: those of series i begin at i(i-1)/2
}

type windowStats struct {
	sum, low, high float64
	windows        int
	last           correlate.Result
}

func (w *windowCorrelator) add(s *trace.UtilisationSlot) error {
	values := slices.Clone(s.UtilPct)
	if len(s.IDs) > len(w.ids) {
		if err := w.addSeries(s.IDs); err != nil {
			return err
		}
	}
	if len(w.recent) == w.window {
		w.recent = append(w.recent[:0], w.recent[1:]...)
	}
	w.recent = append(w.recent, values)
	if err := w.moving.AddSample(values); err != nil {
		return err
	}
	w.addWindow()
	return nil
}

// addSeries takes in series that weren't there before: until now they have only
// had gaps.
func (w *windowCorrelator) addSeries(ids []string) error {
	w.ids = slices.Clone(ids)
	earlier := make([][]int, len(ids))
	all := make([]int, len(ids))
	for i := range ids {
		all[i], earlier[i] = i, all[:i]
	}
	w.sums = append(w.sums, make([]windowStats, len(ids)*(len(ids)-1)/2-len(w.sums))...)
	var err error
	if w.moving, err = correlate.NewCandidates(len(ids), w.window, earlier); err != nil {
		return err
	}
	for i, values := range w.recent {
		for len(values) < len(ids) {
			values = append(values, math.NaN())
		}
		w.recent[i] = values
		if err := w.moving.AddSample(values); err != nil {
			return err
		}
	}
	return nil
}

// addWindow adds up the correlations of the window that ends now.
func (w *windowCorrelator) addWindow() {
	at := 0
	for i := range w.ids {
		for j := range i {
			s := &w.sums[at]
			at++
			if s.last = w.moving.Pearson(i, j); !s.last.OK || s.last.Samples < w.least {
				continue
			}
			if s.windows == 0 {
				s.low, s.high = s.last.R, s.last.R
			}
			s.low, s.high = min(s.low, s.last.R), max(s.high, s.last.R)
			s.sum += s.last.R
			s.windows++
		}
	}
}

func (w *windowCorrelator) collect(_ context.Context, ends *extremePairs) error {
	at := 0
	for i := range w.ids {
		for j := range i {
			s := &w.sums[at]
			at++
			ends.add(seriesPair{
				a: w.ids[j], b: w.ids[i], r: s.sum / float64(s.windows), low: s.low, high: s.high,
				windows: s.windows, samples: s.last.Samples, gaps: s.last.Gaps,
			})
		}
	}
	return nil
}

// windowCorrelation is a pair's correlation over the window that ends with a slot.
type windowCorrelation struct {
	time float64
	correlate.Result
}

// correlatePair prints how two series go together: over the whole log, or in
// the course of time.
func correlatePair(t *terminal.Terminal, c *cli.Context, q *correlateOptions) error {
	var x, y []float64 // of the whole log
	var course []windowCorrelation
	window, err := correlate.NewWindow(max(2, q.window))
	if err != nil {
		return err
	}
	seen := make([]string, 0, 2)
	err = streamCorrelation(t, c, q, func(s *trace.UtilisationSlot) error {
		a, b := slices.Index(s.IDs, q.a), slices.Index(s.IDs, q.b)
		seen = s.IDs
		left, right := valueAt(s, a), valueAt(s, b)
		if q.window == 0 {
			x, y = append(x, left), append(y, right)
			return nil
		}
		window.Add(left, right)
		m := windowCorrelation{s.Time, window.Pearson()}
		if m.Samples < q.least {
			m.OK = false
		}
		course = append(course, m)
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range []string{q.a, q.b} {
		if !slices.Contains(seen, name) {
			return terminal.WithHint(fmt.Errorf("%s has no %s", c.Args().First(), terminal.Printable(name)),
				"epplab correlate without --pair prints the names that it has")
		}
	}
	if q.window > 0 {
		return t.PrintTable(c, windowTable(course))
	}
	r := correlate.Pearson(x, y)
	p := seriesPair{a: q.a, b: q.b, r: math.NaN(), samples: r.Samples, gaps: r.Gaps}
	if r.OK && r.Samples >= q.least {
		p.r = r.R
	}
	return t.PrintTable(c, correlationTable([]seriesPair{p}, false, false))
}

func valueAt(s *trace.UtilisationSlot, series int) float64 {
	if series < 0 {
		return math.NaN()
	}
	return s.UtilPct[series]
}

// windowTable is a row for each window, with dates where the log has them.
func windowTable(course []windowCorrelation) *report.Table {
	const digits = 3
	until := report.Column{Head: "until", Note: "s"}
	if slices.ContainsFunc(course, func(m windowCorrelation) bool { return m.time >= minUnixTime }) {
		until.Note = ""
	}
	return report.TableOf(course, func(row *report.Row, m *windowCorrelation) {
		r := report.Value{}
		if m.OK {
			r = report.Number(m.R)
		}
		row.Add(report.Column{Key: "time_s"}, report.Number(m.time))
		row.Add(until, report.Text(timeText(m.time)))
		row.Add(report.Column{Key: "correlation", Head: "correlation", Digits: digits}, r)
		row.Add(report.Column{Key: "samples", Head: "slots"}, report.Count(m.Samples))
		row.Add(report.Column{Key: "gaps", Head: "gaps"}, report.Count(m.Gaps))
	})
}

// minUnixTime is the time from which on seconds count from 1970.
const minUnixTime = 1e9

// timeText is a time of a log: a date where it counts from 1970, as the log has
// it, else seconds.
func timeText(seconds float64) string {
	if seconds < minUnixTime {
		return strconv.FormatFloat(seconds, 'f', -1, 64)
	}
	return time.Unix(int64(seconds), 0).UTC().Format(time.DateTime)
}
