package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/trace"
)

const (
	leaveOneOut   = "leave-one-workload-out"
	defaultProbes = 3
)

func evaluateCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "evaluate",
		Usage:     "what clocks chosen from a few measured settings and other workloads would cost",
		ArgsUsage: "FILE.csv",
		Description: "FILE has the columns app, core_mhz, mem_mhz, time_ms and power_w: a line for each application and\n" +
			"setting, the same settings for all. Each application in turn is left out: what the others have in common is\n" +
			"learnt, --probes settings of it are measured, each where most is to be learnt, and clocks are chosen. The\n" +
			"regret is its measured energy there above the least measured, in percent; errors are those at settings that\n" +
			"weren't probed, in percent, and missing where there are none or nothing was probed.\n" +
			"Example: epplan model evaluate measured.csv --leave-one-workload-out --probes 3",
		Flags: []cli.Flag{
			boolFlag(leaveOneOut, "leave each workload out in turn; there is no other way yet"),
			atLeast(&cli.IntFlag{
				Name: "probes", Usage: "`COUNT` of settings that are measured of a left-out workload",
				Value: defaultProbes,
			}, 0),
			jsonFlag(), csvFlag(),
		},
		Action: t.runs(takes(1, 1, "one file", runEvaluatePrior)),
	}
}

func runEvaluatePrior(t *terminal, c *cli.Context) error {
	if !c.Bool(leaveOneOut) {
		return usagef("want --%s: a prior is judged by workloads that it didn't see", leaveOneOut)
	}
	probes := c.Int("probes")
	apps, err := parseFile(t, c.Args().First(), trace.ReadDVFS)
	if err != nil {
		return fmt.Errorf("read measurements: %w", err)
	}
	reports, err := pooled.Evaluate(apps, probes)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Args().First(), err)
	}
	result := reports[probes]
	if c.Bool("json") {
		result.RegretMean, result.RegretMax = thousandths(result.RegretMean), thousandths(result.RegretMax)
		return t.printJSON(result)
	}
	return t.printTable(c, priorTable(&result))
}

// thousandths rounds as tables of regrets are.
func thousandths(x float64) float64 {
	const digits = 1000
	return math.Round(x*digits) / digits
}

func priorTable(r *pooled.Report) *report.Table {
	const percent = 100
	part := func(x float64) report.Value { return report.Number(x / percent) }
	all := pooled.LeftOutResult{App: "(all)", Regret: r.RegretMean, TimeMAPE: r.TimeMAPE, PowerMAPE: r.PowerMAPE}
	clocks := func(o *pooled.LeftOutResult, list ...dvfsmodel.Setting) report.Value {
		if o.Chosen == (dvfsmodel.Setting{}) { // of all workloads there are none
			return report.Value{}
		}
		return report.Text(clockList(list...))
	}
	rows := append(slices.Clone(r.Workloads), all)
	return report.TableOf(rows, func(row *report.Row, o *pooled.LeftOutResult) {
		row.Add(report.Column{Key: "app", Head: "application", Left: true, Max: 32}, report.Text(o.App))
		row.Add(report.Column{Key: "probes", Head: "probes", Left: true, Note: "core/memory MHz"},
			clocks(o, o.Probes...))
		row.Add(report.Column{Key: "chosen", Head: "chosen", Left: true}, clocks(o, o.Chosen))
		row.Add(report.Column{Key: "best", Head: "best", Left: true}, clocks(o, o.Best))
		row.Add(report.Column{Key: "regret", Head: "regret", Unit: report.Fraction}, part(o.Regret))
		row.Add(report.Column{Key: "time_mape", Head: "time error", Unit: report.Fraction},
			part(float64(o.TimeMAPE)))
		row.Add(report.Column{Key: "power_mape", Head: "power error", Unit: report.Fraction},
			part(float64(o.PowerMAPE)))
	})
}

func clockList(list ...dvfsmodel.Setting) string {
	return strings.Join(textsOf(list, func(c dvfsmodel.Setting) string {
		return fmt.Sprintf("%g/%g", float64(c.Core), float64(c.Mem))
	}), " ")
}
