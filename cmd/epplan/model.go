package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/joint"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/report/fitreport"
)

func modelCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:        "model",
		Usage:       "fit, show and use models of how workloads respond to clocks",
		Description: "Example: epplan model show models.toml",
		Subcommands: []*cli.Command{
			fitCommand(t), fitContentionCommand(t), evaluateCommand(t), showCommand(t),
			optimumCommand(t),
		},
	}
}

func fitCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "fit",
		Usage:     "fit models to measured settings",
		ArgsUsage: "FILE.csv",
		Description: "FILE has the columns app, core_mhz, mem_mhz, cap_w, time_ms and power_w: a line for each application and\n" +
			"setting, at least 4 settings of each application. Clocks and caps may be missing or empty: nothing was set.\n" +
			"The result is a models file for plan --models, with the caps where they differ: plan --caps chooses among them.\n" +
			"What several applications have in common is in it as corrections of their forms; --form paper leaves it out,\n" +
			"and takes what was measured under the highest cap.\n" +
			"With --evaluate it is how well fits of all applications together predict, and what choosing settings by them\n" +
			"costs, with --slowdown 0.05 among those at most 5 % slower than the fastest.\n" +
			"Fits are best near the least energy; --focus inf weighs all settings alike, which suits tight deadlines.\n" +
			"Example: epplan model fit measured.csv --gpu-model GTX1080Ti -o fitted.toml",
		Flags: append(tableFlags("measurements"),
			&cli.StringFlag{
				Name: "gpu-model", DefaultText: "the known one that has all the clocks",
				Usage: "GPU `MODEL` that was measured",
			},
			profilesFlag(),
			&cli.StringFlag{
				Name: "form", Usage: "`FORM` to fit: best, by leave-one-setting-out error, or paper",
				Value: "best",
			},
			&cli.Float64Flag{
				Name:  "focus",
				Usage: "`EXCESS` of energy, a fraction, at which a setting counts half; inf: never",
				Value: dvfsmodel.DefaultFocus,
			},
			boolFlag("evaluate", "report errors and regret instead of models"),
			slowdownFlag("choose among settings this `PART` slower than the fastest at most, with --evaluate"),
			outputFlag(),
			boolFlag("json", "print JSON, with --evaluate"),
			boolFlag("csv", "print CSV, with --evaluate"),
		),
		Action: t.runs(takes(1, 1, "one file", runFit)),
	}
}

func runFit(t *terminal, c *cli.Context) error {
	switch evaluate := c.Bool("evaluate"); {
	case evaluate && c.IsSet("output"):
		return usagef("--evaluate prints a table, want no --output with it")
	case !evaluate && c.IsSet("slowdown"):
		return usagef("models are of all settings, want --evaluate with --slowdown")
	case !evaluate && (c.Bool("json") || c.Bool("csv")):
		return usagef("models are written as TOML, want --evaluate with --json or --csv")
	}
	opts := &dvfsmodel.FitOptions{Focus: c.Float64("focus")}
	switch form := c.String("form"); form {
	case "best":
	case "paper":
		opts.Forms = []dvfsmodel.Form{dvfsmodel.PaperForm()}
	default:
		return usagef("--form %q, want best or paper", form)
	}
	if !(opts.Focus > 0) {
		return usagef("--focus %v, want a number above 0 or inf", opts.Focus)
	}
	profiles, err := readProfiles(t, c.String("profiles"))
	if err != nil {
		return err
	}
	apps, err := readMeasurements(t, c)
	if err != nil {
		return err
	}
	profile, err := measuredOn(t, apps, profiles, c.String("gpu-model"))
	if err != nil {
		return err
	}
	if err := profile.CheckUnits(apps); err != nil {
		return fmt.Errorf("%s: %w", c.Args().First(), err)
	}
	if c.Bool("evaluate") {
		return evaluateFits(t, c, apps, profile, opts)
	}
	return writeFits(t, c, apps, profile, opts)
}

// measuredOn is the GPU model of the measurements: the one named, or the known
// one with the fewest clocks that has all of theirs.
func measuredOn(
	t *terminal, apps []dvfsmodel.AppSamples, profiles *config.Profiles, name string,
) (*config.Profile, error) {
	if name != "" {
		return profiles.Lookup(name)
	}
	best, err := profiles.MeasuredOn(apps)
	if err != nil {
		return nil, withHint(err, "name one with --gpu-model (known: "+
			strings.Join(profiles.Names(), ", ")+"), and describe it with --profiles if it is new")
	}
	t.notef("clocks of a %s: %.0f/%.0f MHz count as default", best.Name, float64(best.Default.Core),
		float64(best.Default.Mem))
	return best, nil
}

func evaluateFits(
	t *terminal, c *cli.Context, apps []dvfsmodel.AppSamples, profile *config.Profile,
	opts *dvfsmodel.FitOptions,
) error {
	slowdown, err := slowdownOf(c)
	if err != nil {
		return err
	}
	result, err := joint.Evaluate(apps, profile.Default, &joint.Options{Fit: opts, Slowdown: slowdown})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return t.printJSON(result)
	}
	return t.printTable(c, fitreport.Evaluation(result))
}

// writeFits fits every application and writes a models file. Applications that
// can't be fitted are named; the others are written all the same.
func writeFits(
	t *terminal, c *cli.Context, apps []dvfsmodel.AppSamples, profile *config.Profile,
	opts *dvfsmodel.FitOptions,
) error {
	plain, base, highest := pooled.Uncapped(apps, profile.Default)
	if base.Core <= 1 || base.Mem <= 1 {
		return fmt.Errorf("%s and the profile of %s lack core or memory clocks, want them for a model",
			c.Args().First(), profile.Name)
	}
	supported := profile.Pairs()
	switch {
	case highest == 0:
		apps = plain
	case len(opts.Forms) > 0:
		apps = plain
		t.notef("the form knows clocks only: it is fitted to what was measured under %g W", float64(highest))
	default:
		apps = pooled.Resolve(apps, profile.Default)
		supported = profile.PairsUnder(apps)
	}
	fits, errs := joint.Fit(apps, base, supported, opts)
	list := make([]config.Model, 0, len(apps))
	for i, app := range apps {
		if errs[i] != nil {
			t.message("error", fmt.Sprintf("application %q: %v", app.App, errs[i]))
			continue
		}
		for _, w := range fits[i].Warnings {
			t.warningf("application %q: %v", app.App, w)
		}
		list = append(list, config.NewModel(app.App, profile.Name, fits[i]))
		list[len(list)-1].Source = c.Args().First()
	}
	if len(list) > 0 {
		models, err := config.NewModels(list...)
		if err != nil {
			return err
		}
		if err := t.write(c.String("output"),
			func(w io.Writer) error { return config.WriteModels(w, models) }); err != nil {
			return err
		}
	}
	if failed := len(apps) - len(list); failed > 0 {
		return fmt.Errorf("%d of %d applications have no model", failed, len(apps))
	}
	return nil
}

func showCommand(t *terminal) *cli.Command {
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
			profilesFlag(),
			slowdownFlag("choose among settings this `PART` slower than the default ones at most"),
			boolFlag(frontierFlag, "show all settings that no other one beats in both time and energy"),
			jsonFlag(), csvFlag(),
		},
		Action: t.runs(takes(1, 1, "one models file", runShow)),
	}
}

// frontierFlag has all settings shown among which a choice of time and energy is.
const frontierFlag = "frontier"

func runShow(t *terminal, c *cli.Context) error {
	slowdown, err := slowdownOf(c)
	if err != nil {
		return err
	}
	models, err := parseFile(t, c.Args().First(), config.ReadModels)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	profiles, err := readProfiles(t, c.String("profiles"))
	if err != nil {
		return err
	}
	rows := make([]fitreport.Model, 0, len(models.All()))
	for _, m := range models.All() {
		row, err := fitreport.NewModel(&m, profiles, slowdown)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Pos, err)
		}
		rows = append(rows, row)
	}
	if c.Bool(frontierFlag) {
		return t.printTable(c, fitreport.Frontiers(rows))
	}
	return t.printTable(c, fitreport.Models(rows))
}
