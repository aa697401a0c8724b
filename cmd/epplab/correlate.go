package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner/correlate"

	"github.com/epplan/epplan/internal/cli/inputs"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/trace"
)

func correlateCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name: "correlate",
		Usage: "find the GPUs or jobs of a utilisation log that are busy at the same times, and " +
			"those that aren't",
		ArgsUsage: "LOG",
		Description: "LOG is a log as epplab consolidate reads it, its lines sorted by time; - is standard " +
			"input. It prints the\n" +
			"pairs with the least and with the greatest correlation (Pearson): what is least correlated shares a GPU best.\n" +
			"A slot without a sample of either side counts for neither. Where a side doesn't vary, or there are fewer than\n" +
			"--min-samples slots, a pair has no correlation.\n" +
			"With --window the log is read slot by slot, in memory that doesn't grow with its length, and pairs are ranked\n" +
			"by the mean of their correlations over the windows that end with each slot. With --pair it prints the\n" +
			"correlation of one pair, with --window in the course of time.\n" +
			"Example: epplab correlate utilisation.csv --top 3\n" +
			"Example: epplab correlate utilisation.csv --window 10m --pair n1/0,n1/1",
		Flags: []cli.Flag{
			inputs.SlotFlag("`TIME` over which samples are averaged"),
			&cli.DurationFlag{
				Name: "window", DefaultText: "the whole log", Usage: "`TIME` over which to correlate",
			},
			terminal.Between(&cli.IntFlag{
				Name: "top", Usage: "`COUNT` of pairs from either end", Value: defaultTop,
			}, 1, maxTop),
			&cli.IntFlag{
				Name: "min-samples", DefaultText: "10, at most half a window",
				Usage: "`COUNT` of slots that both have to have samples in", Value: defaultMinSamples,
			},
			&cli.StringFlag{Name: "pair", DefaultText: "all", Usage: "`A,B`: the names of two GPUs or jobs"},
			terminal.JSONFlag(), terminal.CSVFlag(),
		},
		Action: t.Runs(terminal.Takes(1, 1, "one log", runCorrelate)),
	}
}

const (
	defaultTop        = 10
	defaultMinSamples = 10
	maxTop            = 1_000_000
	maxWindowSlots    = 1 << 16 // slots

	// How many GPUs or jobs a log may have: without a window a pair takes 8 bytes, with
	// one a hundred.
	maxSeries, maxWindowedSeries = 8192, 1024
)

type correlateOptions struct {
	slotS  float64
	window int // slots; 0: the whole log
	top    int
	least  int // slots that both sides need
	a, b   string
}

func runCorrelate(t *terminal.Terminal, c *cli.Context) error {
	q, err := parseCorrelateFlags(c)
	if err != nil {
		return err
	}
	if q.a != "" {
		return correlatePair(t, c, q)
	}
	var found pairCorrelator = &fullCorrelator{correlateOptions: q}
	if q.window > 0 {
		found = &windowCorrelator{correlateOptions: q}
	}
	if err := streamCorrelation(t, c, q, found.add); err != nil {
		return err
	}
	ends := newExtremes(q.top)
	if err := found.collect(c.Context, ends); err != nil {
		return err
	}
	if ends.without > 0 {
		t.Message("note", terminal.Plural(ends.without, "pair has", "pairs have")+" no correlation: a side doesn't "+
			"vary, or too few slots have samples of both")
	}
	return t.PrintTable(c, correlationTable(ends.sortedPairs(), q.window > 0, true))
}

func parseCorrelateFlags(c *cli.Context) (*correlateOptions, error) {
	slot, window := c.Duration("slot"), c.Duration("window")
	q := &correlateOptions{slotS: slot.Seconds(), top: c.Int("top"), least: c.Int("min-samples")}
	if c.IsSet("window") {
		if window < 2*slot || window/slot > maxWindowSlots {
			return nil, terminal.Usagef("--window %v, want 2 to %d slots of %v", window, maxWindowSlots, slot)
		}
		q.window = int(window / slot)
	}
	if q.window > 0 && !c.IsSet("min-samples") {
		q.least = max(2, min(q.least, q.window/2))
	}
	if q.least < 2 || q.window > 0 && q.least > q.window {
		return nil, terminal.Usagef("--min-samples %d, want 2 or more, and no more than the window has slots", q.least)
	}
	return q, q.names(c)
}

func (q *correlateOptions) names(c *cli.Context) error {
	if !c.IsSet("pair") {
		return nil
	}
	var ok bool
	if q.a, q.b, ok = strings.Cut(c.String("pair"), ","); !ok || q.a == "" || q.b == "" || q.a == q.b {
		return terminal.Usagef("--pair %q, want two names with a comma between them", c.String("pair"))
	}
	return nil
}

func streamCorrelation(
	t *terminal.Terminal, c *cli.Context, q *correlateOptions, slot func(*trace.UtilisationSlot) error,
) error {
	most := maxSeries
	if q.window > 0 && q.a == "" {
		most = maxWindowedSeries
	}
	rest, err := terminal.ParseFile(t, c.Args().First(),
		func(r io.Reader, name string) (*trace.UtilisationSkips, error) {
			return trace.StreamUtilisation(r, name, q.slotS, most, func(s *trace.UtilisationSlot) error {
				if err := c.Err(); err != nil {
					return err
				}
				return slot(s)
			})
		})
	if err != nil {
		return err
	}
	noteLogRepairs(t, &trace.UtilisationLog{
		UtilisationSkips: *rest,
	})
	return nil
}

// seriesPair is two series and how they go together.
type seriesPair struct {
	a, b          string
	r             float64 // the correlation, or the mean of the windows'; NaN: none
	samples, gaps int     // slots; of a window: of the last one
	low, high     float64 // of the windows
	windows       int
	least         bool // of the least correlated
}

// pairCorrelator finds out how series go together from slots.
type pairCorrelator interface {
	add(s *trace.UtilisationSlot) error
	collect(ctx context.Context, ends *extremePairs) error
}

type fullCorrelator struct {
	*correlateOptions

	ids    []string
	series [][]float64
	slots  int
}

// maxCells is how many numbers are kept: 512 MB.
const maxCells = 1 << 26

func (l *fullCorrelator) add(s *trace.UtilisationSlot) error {
	for len(l.series) < len(s.IDs) {
		l.ids = append(l.ids, s.IDs[len(l.series)])
		l.series = append(l.series, slices.Repeat([]float64{math.NaN()}, l.slots))
	}
	if l.slots++; l.slots*len(l.series) > maxCells {
		return errors.New("the log is too long to be kept, want --window, or longer slots")
	}
	for i, u := range s.UtilPct {
		l.series[i] = append(l.series[i], u)
	}
	return nil
}

func (l *fullCorrelator) collect(ctx context.Context, ends *extremePairs) error {
	matrix, err := correlate.AllPairs(ctx, l.series, runtime.GOMAXPROCS(0))
	if err != nil {
		return err
	}
	whole := make([]bool, len(l.series))
	for i, s := range l.series {
		whole[i] = !slices.ContainsFunc(s, math.IsNaN)
	}
	for i := range l.series {
		if err := ctx.Err(); err != nil {
			return err
		}
		for j := range i {
			p := seriesPair{a: l.ids[j], b: l.ids[i], r: math.NaN(), samples: l.slots}
			r, ok := matrix.At(j, i)
			if !whole[i] || !whole[j] {
				found := correlate.Pearson(l.series[j], l.series[i])
				p.samples, p.gaps = found.Samples, found.Gaps
			}
			if ok && p.samples >= l.least {
				p.r = r
			}
			ends.add(p)
		}
	}
	return nil
}

// extremePairs are those pairs of many that have the least and the greatest correlations.
type extremePairs struct {
	top       int // from either end
	kept      []seriesPair
	low, high float64 // what lies between them is of neither end
	without   int     // pairs that have no correlation
}

func newExtremes(top int) *extremePairs {
	return &extremePairs{top: top, low: math.Inf(1), high: math.Inf(-1)}
}

func (e *extremePairs) add(p seriesPair) {
	const room = 4096
	switch {
	case math.IsNaN(p.r):
		e.without++
		return
	case p.r > e.low && p.r < e.high:
		return
	}
	if e.kept = append(e.kept, p); len(e.kept) >= room+4*e.top {
		e.keepExtremes()
	}
}

func (e *extremePairs) keepExtremes() {
	slices.SortFunc(e.kept, byCorrelation)
	if len(e.kept) > 2*e.top {
		e.kept = slices.Delete(e.kept, e.top, len(e.kept)-e.top)
		e.low, e.high = e.kept[e.top-1].r, e.kept[e.top].r
	}
}

// sortedPairs has the pairs from the least correlation on.
func (e *extremePairs) sortedPairs() []seriesPair {
	e.keepExtremes()
	for i := range e.kept {
		e.kept[i].least = i < len(e.kept)-i-1 || i == 0
	}
	return e.kept
}

func byCorrelation(a, b seriesPair) int {
	return cmp.Or(cmp.Compare(a.r, b.r), strings.Compare(a.a, b.a), strings.Compare(a.b, b.b))
}

// correlationTable is a row for each pair; of a pair that was asked for nobody wants to know
// which end it is of.
func correlationTable(list []seriesPair, windows, ends bool) *report.Table {
	const digits = 3
	return report.TableOf(list, func(row *report.Row, p *seriesPair) {
		end := "most"
		if p.least {
			end = "least"
		}
		if ends {
			row.Add(report.Column{Key: "end", Head: "of the", Left: true}, report.Text(end))
		}
		row.Add(report.Column{Key: "a", Head: "GPU or job", Left: true, Max: 40}, report.Text(p.a))
		row.Add(report.Column{Key: "b", Head: "and", Left: true, Max: 40}, report.Text(p.b))
		row.Add(report.Column{Key: "correlation", Head: "correlation", Digits: digits}, report.Number(p.r))
		if windows {
			row.Add(report.Column{Key: "lowest", Head: "lowest", Digits: digits}, report.Number(p.low))
			row.Add(report.Column{Key: "highest", Head: "highest", Digits: digits}, report.Number(p.high))
			row.Add(report.Column{Key: "windows", Head: "windows"}, report.Count(p.windows))
		} else {
			row.Add(report.Column{Key: "samples", Head: "slots"}, report.Count(p.samples))
			row.Add(report.Column{Key: "gaps", Head: "gaps"}, report.Count(p.gaps))
		}
	})
}
