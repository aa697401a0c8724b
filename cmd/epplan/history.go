package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
)

func historyCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "history",
		Usage: "show or export the jobs of imported logs",
		Description: "Users see their own jobs, operators all of the cluster. The table is as epplan " +
			"predict --train and epplan\n" +
			"replay --format jobs read it.\n" +
			"Example: epplan history --since 90d --out history.csv",
		Flags: []cli.Flag{
			sinceFlag("submissions"),
			&cli.StringFlag{Name: "out", Usage: "CSV `FILE` to write, - is standard output"},
			anySocketFlag(publicFirst), terminal.JSONFlag(),
		},
		Action: t.Runs(terminal.WithoutArgs(runHistory)),
	}
}

type historySummary struct {
	Jobs    int64       `json:"jobs"`
	From    time.Time   `json:"from,omitzero"`  // the first submission
	Until   time.Time   `json:"until,omitzero"` // the last end
	EnergyJ live.Number `json:"energy_j"`       // of jobs of which it is known
	Out     string      `json:"out,omitempty"`
}

func (s *historySummary) add(p *record.HistoryJob) {
	if s.Jobs++; s.Jobs == 1 {
		s.From = p.Submitted // they come in this order
	}
	if p.Ended.After(s.Until) {
		s.Until = p.Ended
	}
	if e, ok := p.EnergyJ.Get(); ok {
		s.EnergyJ = live.Known(s.EnergyJ.Or(0) + e)
	}
}

func runHistory(t *terminal.Terminal, c *cli.Context) error {
	since, err := parseTime("since", c.String("since"), time.Now())
	if err != nil {
		return err
	}
	s := &historySummary{Out: c.String("out")}
	if s.Out == "" {
		err = eachPastJob(c, since, func(p *record.HistoryJob) error {
			s.add(p)
			return nil
		})
	} else {
		err = t.Write(s.Out, func(w io.Writer) error { return exportHistory(c, w, since, s) })
	}
	switch {
	case err != nil || s.Out == "-":
		return err
	case c.Bool("json"):
		return t.PrintJSON(s)
	}
	var b strings.Builder
	report.WriteRow(&b, "Jobs", "%s, submitted from %s, ended until %s", report.Plural(int(s.Jobs), "job"),
		view.DateTime(s.From), view.DateTime(s.Until))
	if e, ok := s.EnergyJ.Get(); ok {
		report.WriteRow(&b, "Energy", "%s, of the jobs of which it is known", report.EnergyText(e))
	}
	if s.Out != "" {
		report.WriteRow(&b, "Written", "%s", terminal.Printable(s.Out))
	}
	return t.PrintText(b.String())
}

func exportHistory(c *cli.Context, w io.Writer, since time.Time, s *historySummary) error {
	table, err := joblog.NewTableWriter(w)
	if err != nil {
		return err
	}
	err = eachPastJob(c, since, func(p *record.HistoryJob) error {
		s.add(p)
		return table.Write(p)
	})
	if err != nil {
		return err
	}
	return table.Flush()
}

func eachPastJob(c *cli.Context, since time.Time, visit joblog.Visit) error {
	var last *record.HistoryJob
	for {
		page, err := ask(c, publicFirst,
			func(epd *epdapi.Client, ctx context.Context) (*epdapi.HistoryPage, error) {
				return epd.HistoryAfter(ctx, since, last)
			})
		if err != nil {
			return err
		}
		for i := range page.Jobs {
			if err := visit(&page.Jobs[i]); err != nil {
				return err
			}
		}
		if !page.More || len(page.Jobs) == 0 {
			return nil
		}
		next := &page.Jobs[len(page.Jobs)-1]
		if last != nil && next.Submitted.Equal(last.Submitted) && next.JobID == last.JobID {
			return fmt.Errorf("%s: epd answers the same page twice", epdapi.PathHistory)
		}
		last = next
	}
}
