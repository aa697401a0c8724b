package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/configfiles"
	"github.com/epplan/epplan/internal/report/gpureport"
	"github.com/epplan/epplan/internal/smi"
)

func configCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:        "config",
		Usage:       "write, check and show configurations",
		Description: "Example: epplan config show",
		Subcommands: []*cli.Command{
			{
				Name:        "init",
				Usage:       "write a commented configuration with the defaults",
				ArgsUsage:   "[FILE]",
				Description: "An existing file is left alone.\nExample: epplan config init epplan.toml",
				Action:      t.Runs(terminal.WithArgs(0, 1, "at most one file", runConfigInit)),
			},
			{
				Name:      "check",
				Usage:     "tell whether a configuration is right",
				ArgsUsage: "FILE",
				Description: "It reads the files that FILE names, too, and asks Slurm, where that answers, for its " +
					"partitions " +
					"and nodes.\nExample: epplan config check epplan.toml",
				Flags: []cli.Flag{setup.ProfilesFlag()},
				Action: func(c *cli.Context) error {
					loaded, err := loadConfig(t, c, 1)
					if err != nil {
						return err
					}
					doubtful, err := configfiles.CheckNamed(c.Context, loaded)
					if err != nil {
						return err
					}
					t.Warn(doubtful)
					t.Message("note", c.Args().First()+" is right")
					return nil
				},
			},
			{
				Name:        "show",
				Usage:       "show every setting in effect and where it comes from",
				ArgsUsage:   "[FILE]",
				Description: "Example: epplan config show epplan.toml",
				Flags:       []cli.Flag{setup.ProfilesFlag()},
				Action: func(c *cli.Context) error {
					loaded, err := loadConfig(t, c, 0)
					if err != nil {
						return err
					}
					return t.Print(loaded.Show)
				},
			},
		},
	}
}

func runConfigInit(t *terminal.Terminal, c *cli.Context) error {
	name := cmp.Or(c.Args().First(), "-")
	if err := refuseExisting(name); err != nil {
		return err
	}
	return t.WriteText(name, config.DefaultText())
}

// refuseExisting refuses the name of a file that is there already; "-" is standard output.
func refuseExisting(name string) error {
	if _, err := os.Lstat(name); err == nil && name != "-" {
		return terminal.WithHint(fmt.Errorf("%s is there already", name),
			"choose another name, or remove it first")
	}
	return nil
}

func initCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a configuration with the nodes and GPUs that Slurm or nvidia-smi knows",
		ArgsUsage: "[FILE]",
		Description: "FILE is epplan.toml unless it is named; - is standard output. Slurm is asked first (scontrol); where it\n" +
			"doesn't answer, the file is about this machine, by nvidia-smi. GPU models that epplan doesn't know are\n" +
			"described as nvidia-smi has them. Nodes that can't be planned with are left out, and named.\n" +
			"Example: epplan init - --nodes nodes.txt",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "nodes", Usage: "`FILE` with what scontrol show node -d printed; -: standard input",
				DefaultText: "Slurm is asked",
			},
			&cli.StringFlag{Name: "gpu-model", Usage: "GPU `MODEL` of nodes whose GPUs have no type in Slurm"},
		},
		Action: t.Runs(terminal.WithArgs(0, 1, "at most one file", runInit)),
	}
}

func runInit(t *terminal.Terminal, c *cli.Context) error {
	name := cmp.Or(c.Args().First(), "epplan.toml")
	if err := refuseExisting(name); err != nil {
		return err
	}
	found, err := setup.Discover(c.Context, t, c.String("nodes"), c.String("gpu-model"))
	if err != nil {
		return err
	}
	text, leftOut, err := found.Text()
	for _, line := range leftOut {
		t.Warningf("left out: %s", line)
	}
	if err != nil {
		return err
	}
	if err := t.WriteText(name, text); err != nil || name == "-" {
		return err
	}
	t.Notef("%s written; epplan plan BATCH in this folder uses it", name)
	return nil
}

func gpusCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "gpus",
		Usage:     "list the GPU models that are known: clocks, power, what can be locked",
		ArgsUsage: "[NAME]",
		Description: "NAME is a GPU model however nvidia-smi, NVML or Slurm writes it, and only that one is shown then. Keys\n" +
			"among the estimates weren't measured by anybody: plans that rest on them say so. Clocks \"in no plan\" are in\n" +
			"the driver's table, and no plan chooses them. Live, the GPU's own driver says what can be locked.\n" +
			"Example: epplan gpus H100",
		Flags: []cli.Flag{
			setup.ProfilesFlag(), terminal.JSONFlag(),
			&cli.StringFlag{Name: "config", Usage: "TOML `FILE` whose [[gpu]] tables are listed, too"},
		},
		Action: t.Runs(terminal.WithArgs(0, 1, "at most one GPU model", runGPUs)),
		Subcommands: []*cli.Command{
			{
				Name:      "add",
				Usage:     "describe GPU models by what nvidia-smi or AMD's tools print",
				ArgsUsage: "FILE",
				Description: "FILE is the output of nvidia-smi -q -x, of nvidia-smi -q followed by nvidia-smi -q -d SUPPORTED_CLOCKS, of\n" +
					"rocm-smi -a, or of amd-smi static; - is standard input. Each GPU model in it becomes a [[gpu]] table for\n" +
					"--profiles or a configuration. Values that aren't in the output, such as idle power, are estimated and marked so.\n" +
					"Example: epplan gpus add smi.txt",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "name", Usage: "`NAME` of the GPU model, if the output has none"},
					&cli.StringFlag{
						Name:  "out",
						Usage: "`FILE` to write the tables to, behind what it has: for --profiles, or a configuration",
					},
				},
				Action: t.Runs(
					terminal.WithArgs(1, 1, "the output of nvidia-smi, rocm-smi or amd-smi", runAddGPUs),
				),
			},
		},
	}
}

func runAddGPUs(t *terminal.Terminal, c *cli.Context) error {
	models, err := terminal.ParseFile(
		t,
		c.Args().First(),
		func(r io.Reader, name string) ([]smi.Model, error) {
			return smi.Read(r, name, &smi.Options{Name: c.String("name"), Known: config.BuiltinProfiles()})
		},
	)
	if err != nil {
		return err
	}
	var there []byte
	out := cmp.Or(c.String("out"), "-")
	if out != "-" {
		if there, err = os.ReadFile(out); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	text, err := smi.Append(there, out, models)
	if err != nil {
		return err
	}
	for i := range models {
		for _, note := range models[i].Notes {
			t.Message("note", note)
		}
	}
	return t.WriteText(out, string(text))
}

func runGPUs(t *terminal.Terminal, c *cli.Context) error {
	s := &setup.Setup{}
	if err := s.Configure(t, c); err != nil {
		return err
	}
	known := s.Profiles // and those of a configuration, if there is one
	if c.IsSet("config") {
		known = s.Config.Profiles()
	}
	models, err := gpureport.List(known, c.Args().Slice()...)
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return t.PrintJSON(models)
	case c.NArg() > 0:
		return t.PrintText(models[0].Text())
	}
	return t.PrintTable(c, gpureport.Table(models))
}

// loadConfig reads the named file; without one it is the default
// configuration, if that is allowed.
func loadConfig(t *terminal.Terminal, c *cli.Context, least int) (*config.Config, error) {
	if err := terminal.CheckArgs(c, least, 1, "one configuration file"); err != nil {
		return nil, err
	}
	if c.NArg() == 0 {
		return config.Default(), nil
	}
	profiles, err := setup.ReadProfiles(t, c.String("profiles"))
	if err != nil {
		return nil, err
	}
	return terminal.ParseFile(t, c.Args().First(), func(r io.Reader, name string) (*config.Config, error) {
		return config.Load(r, name, profiles)
	})
}
