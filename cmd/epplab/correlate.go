package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/sharing"
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
			"--min-samples slots, a pair has no correlation. With --pair it prints the correlation of one pair.\n" +
			"Example: epplab correlate utilisation.csv --top 3\n" +
			"Example: epplab correlate utilisation.csv --pair n1/0,n1/1",
		Flags: []cli.Flag{
			setup.SlotFlag("`TIME` over which samples are averaged"),
			terminal.Between(&cli.IntFlag{
				Name: "top", Usage: "`COUNT` of pairs from either end", Value: defaultTop,
			}, 1, maxTop),
			terminal.AtLeast(&cli.IntFlag{
				Name: "min-samples", Usage: "`COUNT` of slots that both have to have samples in",
				Value: defaultMinSamples,
			}, 2),
			&cli.StringFlag{Name: "pair", DefaultText: "all", Usage: "`A,B`: the names of two GPUs or jobs"},
			terminal.JSONFlag(), terminal.CSVFlag(),
		},
		Action: t.Runs(terminal.WithArgs(1, 1, "one log", runCorrelate)),
	}
}

const (
	defaultTop        = 10
	defaultMinSamples = 10
	maxTop            = 1_000_000

	// maxSeries is the number of GPUs or jobs that a log may have.
	maxSeries = 8192
)

type correlateOptions struct {
	slotS float64
	top   int
	least int // slots that both sides need
	a, b  string
}

func runCorrelate(t *terminal.Terminal, c *cli.Context) error {
	q, err := parseCorrelateFlags(c)
	if err != nil {
		return err
	}
	log := &correlatedLog{correlateOptions: q}
	if err := streamCorrelation(t, c, q, log.add); err != nil {
		return err
	}
	if q.a != "" {
		return log.printPair(t, c)
	}
	ends := newExtremes(q.top)
	if err := log.collect(c.Context, ends); err != nil {
		return err
	}
	if ends.without > 0 {
		t.Message(
			"note",
			report.Plural(ends.without, "pair has", "pairs have")+" no correlation: a side doesn't "+
				"vary, or too few slots have samples of both",
		)
	}
	return t.PrintTable(c, correlationTable(ends.sortedPairs(), true))
}

func parseCorrelateFlags(c *cli.Context) (*correlateOptions, error) {
	q := &correlateOptions{
		slotS: c.Duration("slot").Seconds(), top: c.Int("top"), least: c.Int("min-samples"),
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
	rest, err := terminal.ParseFile(t, c.Args().First(),
		func(r io.Reader, name string) (*trace.UtilisationSkips, error) {
			return trace.StreamUtilisation(r, name, q.slotS, maxSeries, func(s *trace.UtilisationSlot) error {
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
	r             float64 // the correlation; NaN: none
	samples, gaps int     // slots
	least         bool    // of the least correlated
}

// correlatedLog keeps a log's utilisation by series.
type correlatedLog struct {
	*correlateOptions

	ids    []string
	series [][]float64
	slots  int
}

// maxCells is how many numbers are kept: 512 MB.
const maxCells = 1 << 26

func (l *correlatedLog) add(s *trace.UtilisationSlot) error {
	for len(l.series) < len(s.IDs) {
		l.ids = append(l.ids, s.IDs[len(l.series)])
		l.series = append(l.series, slices.Repeat([]float64{math.NaN()}, l.slots))
	}
	kept := len(l.series)
	if l.a != "" {
		kept = 2
	}
	if l.slots++; l.slots*kept > maxCells {
		return errors.New("the log is too long to be kept, want longer slots")
	}
	for i, u := range s.UtilPct {
		if l.a == "" || l.ids[i] == l.a || l.ids[i] == l.b {
			l.series[i] = append(l.series[i], u)
		}
	}
	return nil
}

// pair correlates two series.
func (l *correlatedLog) pair(a, b int) seriesPair {
	found := sharing.Pearson(l.series[a], l.series[b])
	p := seriesPair{a: l.ids[a], b: l.ids[b], r: math.NaN(), samples: found.Samples, gaps: found.Gaps}
	if found.OK && found.Samples >= l.least {
		p.r = found.R
	}
	return p
}

// collect correlates all pairs.
func (l *correlatedLog) collect(ctx context.Context, ends *extremePairs) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	var adding sync.Mutex
	for i := range l.series {
		group.Go(func() error {
			pairs := make([]seriesPair, i)
			for j := range pairs {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				pairs[j] = l.pair(j, i)
			}
			adding.Lock()
			defer adding.Unlock()
			for _, p := range pairs {
				ends.add(p)
			}
			return nil
		})
	}
	return group.Wait()
}

// printPair prints how the two series that were asked for go together.
func (l *correlatedLog) printPair(t *terminal.Terminal, c *cli.Context) error {
	a, b := slices.Index(l.ids, l.a), slices.Index(l.ids, l.b)
	for i, name := range []string{l.a, l.b} {
		if []int{a, b}[i] < 0 {
			return terminal.WithHint(fmt.Errorf("%s has no %s", c.Args().First(), terminal.Printable(name)),
				"epplab correlate without --pair prints the names that it has")
		}
	}
	return t.PrintTable(c, correlationTable([]seriesPair{l.pair(a, b)}, false))
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

// correlationTable returns a row for each pair; of a pair that was asked for nobody wants to know
// which end it is of.
func correlationTable(list []seriesPair, ends bool) *report.Table {
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
		row.Add(report.Column{Key: "samples", Head: "slots"}, report.Count(p.samples))
		row.Add(report.Column{Key: "gaps", Head: "gaps"}, report.Count(p.gaps))
	})
}
