package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/configfiles"
	"github.com/epplan/epplan/internal/report/gpureport"
	"github.com/epplan/epplan/slurm"
)

func configCommand(t *terminal) *cli.Command {
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
				Action:      t.runs(takes(0, 1, "at most one file", runConfigInit)),
			},
			{
				Name:      "check",
				Usage:     "tell whether a configuration is right",
				ArgsUsage: "FILE",
				Description: "It reads the files that FILE names, too, and asks Slurm, where that answers, for its " +
					"partitions " +
					"and nodes.\nExample: epplan config check epplan.toml",
				Flags: []cli.Flag{profilesFlag()},
				Action: func(c *cli.Context) error {
					loaded, err := loadConfig(t, c, 1)
					if err != nil {
						return err
					}
					if err := checkNamed(t, c, loaded); err != nil {
						return err
					}
					t.message("note", c.Args().First()+" is right")
					return nil
				},
			},
			{
				Name:        "show",
				Usage:       "show every setting in effect and where it comes from",
				ArgsUsage:   "[FILE]",
				Description: "Example: epplan config show epplan.toml",
				Flags:       []cli.Flag{profilesFlag()},
				Action: func(c *cli.Context) error {
					loaded, err := loadConfig(t, c, 0)
					if err != nil {
						return err
					}
					return t.print(loaded.Show)
				},
			},
		},
	}
}

// checkNamed reads what a configuration names: files, and partitions, nodes and users where somebody knows
// them.
func checkNamed(t *terminal, c *cli.Context, loaded *config.Config) error {
	refused, doubtful := configfiles.Check(loaded)
	if len(refused) > 0 {
		return errors.Join(refused...)
	}
	if err := loaded.CheckClocks(); err != nil {
		return err
	}
	const patience = 3 * time.Second
	client := slurm.NewClient(slurm.ExecRunner{Timeout: patience}, patience)
	if nodes, _, err := client.Nodes(c.Context); err == nil && len(nodes) > 0 {
		doubtful = append(doubtful, loaded.WarningsBeside(config.NamesIn(nodes))...)
	}
	for _, name := range loaded.Live.Operators {
		// id asks all that the machine has accounts from, as a static program can't.
		err := exec.CommandContext(c.Context, "id", "-u", "--", name).Run() //nolint:gosec // one argument, behind --
		if _, unknown := errors.AsType[*exec.ExitError](err); unknown {
			doubtful = append(doubtful, fmt.Errorf("live.operators has %q, and this machine knows no such user", name))
		}
	}
	t.warn(doubtful)
	return nil
}

func runConfigInit(t *terminal, c *cli.Context) error {
	name := c.Args().First()
	if name == "" {
		name = "-"
	}
	if _, err := os.Lstat(name); err == nil && name != "-" {
		return withHint(fmt.Errorf("%s is there already", name), "choose another name, or remove it first")
	}
	return t.write(name, func(w io.Writer) error {
		_, err := io.WriteString(w, config.DefaultText())
		return err
	})
}

func gpusCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "gpus",
		Usage:     "list the GPU models that are known: clocks, power, what can be locked",
		ArgsUsage: "[NAME]",
		Description: "NAME is a GPU model however nvidia-smi, NVML or Slurm writes it, and only that one is shown then. Keys\n" +
			"among the estimates weren't measured by anybody: plans that rest on them say so. Clocks \"in no plan\" are in\n" +
			"the driver's table, and no plan chooses them. Live, the GPU's own driver says what can be locked.\n" +
			"Example: epplan gpus H100",
		Flags: []cli.Flag{
			profilesFlag(), jsonFlag(),
			&cli.StringFlag{Name: "config", Usage: "TOML `FILE` whose [[gpu]] tables are listed, too"},
		},
		Action: t.runs(takes(0, 1, "at most one GPU model", runGPUs)),
	}
}

func runGPUs(t *terminal, c *cli.Context) error {
	s := &setup{}
	if err := s.configure(t, c); err != nil {
		return err
	}
	known := s.profiles // and those of a configuration, if there is one
	if c.IsSet("config") {
		known = s.config.Profiles()
	}
	models, err := gpureport.List(known, c.Args().Slice()...)
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return t.printJSON(models)
	case c.NArg() > 0:
		return t.printText(models[0].Text())
	}
	return t.printTable(c, gpureport.Table(models))
}

// loadConfig reads the named file; without one it is the default
// configuration, if that is allowed.
func loadConfig(t *terminal, c *cli.Context, least int) (*config.Config, error) {
	if err := checkArgs(c, least, 1, "one configuration file"); err != nil {
		return nil, err
	}
	if c.NArg() == 0 {
		return config.Default(), nil
	}
	profiles, err := readProfiles(t, c.String("profiles"))
	if err != nil {
		return nil, err
	}
	return parseFile(t, c.Args().First(), func(r io.Reader, name string) (*config.Config, error) {
		return config.Load(r, name, profiles)
	})
}
