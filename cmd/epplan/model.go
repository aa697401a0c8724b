package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/joint"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/modelfit"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/fitreport"
	"github.com/epplan/epplan/queue"
)

func modelCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:        "model",
		Usage:       "fit, show and use models of how workloads respond to clocks",
		Description: "Example: epplan model show models.toml",
		Subcommands: []*cli.Command{
			fitCommand(t), evaluateCommand(t), showCommand(t), optimumCommand(t),
		},
	}
}

func fitCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "fit",
		Usage:     "fit models to measured settings",
		ArgsUsage: "FILE.csv",
		Description: "FILE has the columns app, core_mhz, mem_mhz, cap_w, time_ms and power_w: a line for each application and\n" +
			"setting, at least 4 settings of each application. Clocks and caps may be missing or empty: nothing was set.\n" +
			"The result is a models file for plan --models, with the caps where they differ: plan --caps chooses among them.\n" +
			"Plans choose among the clocks that were measured. With --any-clocks they choose among all of the GPU model.\n" +
			"What several applications have in common is in it as corrections of their forms, where that helps at settings\n" +
			"left out; --form paper leaves it out, and takes what was measured under the highest cap.\n" +
			"With --evaluate it is how well such fits predict settings left out, and what the choices of the models file\n" +
			"cost, with --slowdown 0.05 among those at most 5 % slower than the fastest.\n" +
			"Fits are best near the least energy; --focus inf weighs all settings alike, which suits tight deadlines.\n" +
			"Example: epplan model fit measured.csv --gpu-model GTX1080Ti -o fitted.toml",
		Flags: append(
			setup.TableFlags("measurements"),
			&cli.StringFlag{
				Name: "gpu-model", DefaultText: "the known one that has all the clocks",
				Usage: "GPU `MODEL` that was measured",
			},
			setup.ProfilesFlag(),
			&cli.StringFlag{
				Name: "form", Usage: "`FORM` to fit: best, by leave-one-setting-out error, or paper",
				Value: "best",
			},
			&cli.Float64Flag{
				Name:  "focus",
				Usage: "`EXCESS` of energy, a fraction, at which a setting counts half; inf: never",
				Value: dvfsmodel.DefaultFocus,
			},
			terminal.BoolFlag("evaluate", "report errors and regret instead of models"),
			setup.SlowdownFlag(
				"choose among settings this `PART` slower than the fastest at most, with --evaluate",
			),
			terminal.BoolFlag(anyClocks,
				"let plans choose clocks of the GPU model that weren't measured, too"),
			terminal.OutputFlag(),
			terminal.BoolFlag("json", "print JSON, with --evaluate"),
			terminal.BoolFlag("csv", "print CSV, with --evaluate"),
		),
		Action: t.Runs(terminal.WithArgs(1, 1, "one file", runFit)),
	}
}

func runFit(t *terminal.Terminal, c *cli.Context) error {
	switch evaluate := c.Bool("evaluate"); {
	case evaluate && c.IsSet("out"):
		return terminal.Usagef("--evaluate prints a table, want no --output with it")
	case !evaluate && c.IsSet("slowdown"):
		return terminal.Usagef("models are of all settings, want --evaluate with --slowdown")
	case !evaluate && (c.Bool("json") || c.Bool("csv")):
		return terminal.Usagef("models are written as TOML, want --evaluate with --json or --csv")
	}
	opts := &dvfsmodel.FitOptions{Focus: c.Float64("focus")}
	switch form := c.String("form"); form {
	case "best":
	case "paper":
		opts.Forms = []dvfsmodel.Form{dvfsmodel.PaperForm()}
	default:
		return terminal.Usagef("--form %q, want best or paper", form)
	}
	if !(opts.Focus > 0) {
		return terminal.Usagef("--focus %v, want a number above 0 or inf", opts.Focus)
	}
	profiles, err := setup.KnownProfiles(t, c)
	if err != nil {
		return err
	}
	apps, err := setup.ReadMeasurements(t, c)
	if err != nil {
		return err
	}
	profile, err := measuredProfile(t, apps, profiles, c.String("gpu-model"))
	if err != nil {
		return err
	}
	if err := profile.CheckUnits(apps); err != nil {
		return fmt.Errorf("%s: %w", c.Args().First(), err)
	}
	table := &modelfit.Table{
		File: c.Args().First(), Apps: apps, Profiles: profiles, Profile: profile, Options: opts,
		AnyClocks: c.Bool(anyClocks),
	}
	for _, doubt := range table.Doubts() {
		t.Warningf("%v", doubt)
	}
	if c.Bool("evaluate") {
		return evaluateFits(t, c, table)
	}
	return writeFits(t, c, table)
}

// measuredProfile returns the GPU model of the measurements: the one named, or the known
// one with the fewest clocks that has all of theirs.
func measuredProfile(
	t *terminal.Terminal, apps []dvfsmodel.AppSamples, profiles *config.Profiles, name string,
) (*config.Profile, error) {
	if name != "" {
		return profiles.Lookup(name)
	}
	best, err := profiles.MeasuredOn(apps)
	if err != nil {
		return nil, terminal.WithHint(err, "name one with --gpu-model (known: "+
			strings.Join(profiles.Names(), ", ")+"), and describe it with --profiles if it is new")
	}
	t.Notef("clocks of a %s: %.0f/%.0f MHz count as default", best.Name, float64(best.Default.Core),
		float64(best.Default.Mem))
	return best, nil
}

// evaluateFits prints how well fits predict settings left out, and what the choices of the models file cost.
func evaluateFits(t *terminal.Terminal, c *cli.Context, table *modelfit.Table) error {
	slowdown, err := setup.SlowdownOf(c)
	if err != nil {
		return err
	}
	fit, err := table.Fit()
	if err != nil {
		fit = &modelfit.Result{Failures: []error{fmt.Errorf("%w: regrets are those of fits in memory", err)}}
	}
	for _, failure := range fit.Failures {
		t.Warningf("%v", failure)
	}
	result, err := joint.Evaluate(table.Apps, table.Profile.Default, &joint.Options{
		Fit: table.Options, Slowdown: slowdown,
		Chosen: func(app string) (dvfsmodel.Setting, bool) { return table.Choice(fit.Models, app, slowdown) },
	})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return t.PrintJSON(result)
	}
	return t.PrintTable(c, fitreport.EvaluationTable(result))
}

// writeFits fits every application and writes a models file. Applications that can't be fitted, and those
// whose model plans couldn't use, are named; the others are written all the same.
func writeFits(t *terminal.Terminal, c *cli.Context, table *modelfit.Table) error {
	fit, err := table.Fit()
	if err != nil {
		return err
	}
	if fit.OnlyUnder > 0 {
		t.Notef("the form knows clocks only: it is fitted to what was measured under %g W",
			float64(fit.OnlyUnder))
	}
	for _, w := range fit.Warnings {
		t.Warningf("%v", w)
	}
	for _, failure := range fit.Failures {
		t.Message("error", failure.Error())
	}
	if len(fit.Models) > 0 {
		models, err := config.NewModels(fit.Models...)
		if err == nil {
			err = t.Write(c.String("out"),
				func(w io.Writer) error { return config.WriteModels(w, models) })
		}
		if err != nil {
			return err
		}
	}
	if len(fit.Failures) > 0 {
		return fmt.Errorf("%d of %d applications have no model", len(fit.Failures), len(table.Apps))
	}
	return nil
}

func showCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "what a models file says, and the clocks that it leads to",
		ArgsUsage: "MODELS.toml",
		Description: "For each model: run time, power and energy of one repetition at default clocks, and " +
			"the clocks, run time\n" +
			"and energy where it uses the least, and the power cap there, if the model knows caps and the GPU takes them.\n" +
			"--slowdown 0.05 is for those at most 5 % slower than at default clocks.\n" +
			"--frontier shows all settings, of clocks and of the caps that the model knows, than which none is both faster\n" +
			"and takes less energy, from the fastest to the one of the least energy.\n" +
			"Example: epplan model show models.toml",
		Flags: []cli.Flag{
			setup.ProfilesFlag(),
			setup.SlowdownFlag("choose among settings this `PART` slower than the default ones at most"),
			terminal.BoolFlag(anyClocks, "choose among all clocks of the GPU model, measured or not"),
			terminal.BoolFlag(frontierFlag,
				"show all settings that no other one beats in both time and energy"),
			terminal.JSONFlag(),
			terminal.CSVFlag(),
		},
		Action: t.Runs(terminal.WithArgs(1, 1, "one models file", runShow)),
	}
}

const (
	anyClocks    = "any-clocks" // clocks may be chosen that weren't measured
	frontierFlag = "frontier"   // all settings are shown among which a choice of time and energy is
)

func runShow(t *terminal.Terminal, c *cli.Context) error {
	slowdown, err := setup.SlowdownOf(c)
	if err != nil {
		return err
	}
	models, err := terminal.ParseFile(t, c.Args().First(), config.ReadModels)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	profiles, err := setup.KnownProfiles(t, c)
	if err != nil {
		return err
	}
	rows := make([]fitreport.Model, 0, len(models.All()))
	for _, m := range models.All() {
		if c.Bool(anyClocks) {
			m.Clocks = nil
		}
		row, err := fitreport.NewModel(&m, profiles, slowdown)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Pos, err)
		}
		rows = append(rows, row)
	}
	if c.Bool(frontierFlag) {
		return t.PrintTable(c, fitreport.Frontiers(rows))
	}
	return t.PrintTable(c, fitreport.Models(rows))
}

const (
	leaveOneOut   = "leave-one-workload-out"
	defaultProbes = 3
)

func evaluateCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "evaluate",
		Usage:     "what clocks chosen from a few measured settings and other workloads would cost",
		ArgsUsage: "FILE.csv",
		Description: "FILE is as for model fit: a line for each application and setting. Each application in turn is left out:\n" +
			"what the others have in common is learnt, --probes settings of it are measured, each where most is to be\n" +
			"learnt, and a setting is chosen. The regret is its measured energy there above the least measured, in percent;\n" +
			"errors are those at settings that weren't probed, in percent, and missing where there are none or nothing was\n" +
			"probed.\n" +
			"Example: epplan model evaluate measured.csv --leave-one-workload-out --probes 3",
		Flags: append(setup.TableFlags("measurements"),
			terminal.BoolFlag(leaveOneOut, "leave each workload out in turn; there is no other way yet"),
			terminal.AtLeast(&cli.IntFlag{
				Name: "probes", Usage: "`COUNT` of settings that are measured of a left-out workload",
				Value: defaultProbes,
			}, 0),
			&cli.StringFlag{
				Name:  "gpu-model",
				Usage: "GPU `MODEL` that was measured: clocks that aren't set are its default ones",
			},
			setup.ProfilesFlag(),
			setup.SlowdownFlag("choose among settings this `PART` slower than the fastest at most"),
			terminal.JSONFlag(), terminal.CSVFlag(),
		),
		Action: t.Runs(terminal.WithArgs(1, 1, "one file", runEvaluatePrior)),
	}
}

func runEvaluatePrior(t *terminal.Terminal, c *cli.Context) error {
	if !c.Bool(leaveOneOut) {
		return terminal.Usagef("want --%s: a prior is judged by workloads that it didn't see", leaveOneOut)
	}
	probes := c.Int("probes")
	slowdown, err := setup.SlowdownOf(c)
	if err != nil {
		return err
	}
	profiles, err := setup.KnownProfiles(t, c)
	if err != nil {
		return err
	}
	apps, err := setup.ReadMeasurements(t, c)
	if err != nil {
		return err
	}
	opts := &pooled.EvaluateOptions{Slowdown: slowdown}
	if name := c.String("gpu-model"); name != "" {
		profile, err := profiles.Lookup(name)
		if err == nil {
			err = profile.CheckUnits(apps)
		}
		if err != nil {
			return err
		}
		opts.Base = profile.Default
	}
	reports, err := pooled.EvaluateWith(apps, probes, opts)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Args().First(), err)
	}
	result := reports[probes]
	if c.Bool("json") {
		return t.PrintJSON(fitreport.Rounded(result))
	}
	return t.PrintTable(c, fitreport.LeftOutTable(&result))
}

func optimumCommand(t *terminal.Terminal) *cli.Command {
	symbols := terminal.TextsOf(dvfsmodel.ParamList(), func(p dvfsmodel.Param) string { return p.Symbol })
	return &cli.Command{
		Name:      "optimum",
		Usage:     "the best setting of single workloads",
		ArgsUsage: "FILE.csv",
		Description: "FILE has the columns id, " + strings.Join(symbols, ", ") +
			" (normalised, watts and seconds) and optionally\n" +
			"limit, the longest run time (inf: none); other columns are ignored. - is standard input.\n" +
			"Example: epplan model optimum --range wide params.csv --csv",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "range", Usage: "scaling `INTERVAL`: wide or narrow", Value: "wide"},
			&cli.StringFlag{
				Name: "objective", Usage: "`GOAL` to minimise: energy, edp, ed2p or time", Value: "energy",
			},
			&cli.Float64Flag{
				Name:  "time-price",
				Usage: "`WATTS`, the joules that a second of run time costs beside its own",
			},
			terminal.CSVFlag(), terminal.JSONFlag(),
		},
		Action: t.Runs(terminal.WithArgs(1, 1, "one file", runOptimum)),
	}
}

type optimumRow struct {
	id      string
	point   *dvfsmodel.Point // nil: none is fast enough
	minTime float64
}

func runOptimum(t *terminal.Terminal, c *cli.Context) error {
	r, err := dvfsmodel.RangeByName(c.String("range"))
	if err != nil {
		return terminal.Usagef("--range: %v", err)
	}
	objective, err := dvfsmodel.ObjectiveByName(c.String("objective"))
	if err != nil {
		return terminal.Usagef("--objective: %v", err)
	}
	objective.TimeWeight += c.Float64("time-price")
	if err := objective.Validate(); err != nil {
		return terminal.Usagef("--time-price: %v", err)
	}
	var rows []optimumRow
	err = t.Read(c.Args().First(), func(in io.Reader, name string) error {
		batch, err := queue.Read(in, name, queue.Params)
		if err != nil {
			return fmt.Errorf("read parameters: %w", err)
		}
		rows, err = optima(batch, &r, objective)
		return err
	})
	if err != nil {
		return err
	}
	return t.PrintTable(c, optimumTable(rows))
}

// optima answers each row; an infeasible limit is an answer.
func optima(batch *queue.Batch, r *dvfsmodel.Range, o dvfsmodel.Objective) ([]optimumRow, error) {
	rows := make([]optimumRow, len(batch.Jobs))
	for i := range batch.Jobs {
		job := &batch.Jobs[i]
		rows[i] = optimumRow{id: job.ID, minTime: r.MinTime(*job.Model)}
		switch pt, err := r.Optimum(*job.Model, o, job.Limit); {
		case err == nil:
			rows[i].point = &pt
		case !errors.Is(err, dvfsmodel.ErrInfeasible):
			return nil, fmt.Errorf("%s: %w", job.Pos, err)
		}
	}
	return rows, nil
}

func optimumTable(rows []optimumRow) *report.Table {
	return report.TableOf(rows, func(row *report.Row, r *optimumRow) {
		feasible, pt := 1, r.point
		number := report.Number[float64]
		if pt == nil {
			feasible, pt = 0, &dvfsmodel.Point{}
			number = func(float64) report.Value { return report.Value{} }
		}
		row.Add(report.Column{Key: "id", Head: "id", Left: true, Max: 32}, report.Text(r.id))
		row.Add(report.Column{Key: "feasible", Head: "feasible"}, report.Count(feasible))
		row.Add(report.Column{Key: "v", Head: "V"}, number(float64(pt.Scaling.V)))
		row.Add(report.Column{Key: "fc", Head: "fc"}, number(pt.Scaling.Fc))
		row.Add(report.Column{Key: "fm", Head: "fm"}, number(pt.Scaling.Fm))
		row.Add(report.Column{Key: "time_s", Head: "time", Unit: report.Seconds}, number(pt.Time))
		row.Add(report.Column{Key: "power_w", Head: "power", Unit: report.Watts}, number(float64(pt.Power)))
		row.Add(report.Column{Key: "energy_j", Head: "energy", Unit: report.Joules},
			number(float64(pt.Energy)))
		row.Add(report.Column{Key: "min_time_s", Head: "shortest", Unit: report.Seconds},
			report.Number(r.minTime))
	})
}
