package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
)

func (t *terminal) configCommand() *cli.Command {
	profiles := func() cli.Flag {
		return &cli.StringFlag{Name: "profiles", Usage: "TOML `FILE` with further GPU models"}
	}
	return &cli.Command{
		Name:        "config",
		Usage:       "write, check and show configurations",
		Description: "Example: epplan config init > epplan.toml",
		Action:      func(c *cli.Context) error { return cli.ShowSubcommandHelp(c) },
		Subcommands: []*cli.Command{
			{
				Name:        "init",
				Usage:       "write a commented configuration with the defaults",
				ArgsUsage:   "[FILE]",
				Description: "An existing file is left alone.\nExample: epplan config init epplan.toml",
				Action:      t.configInit,
			},
			{
				Name:        "check",
				Usage:       "tell whether a configuration is right",
				ArgsUsage:   "FILE",
				Description: "Example: epplan config check epplan.toml",
				Flags:       []cli.Flag{profiles()},
				Action: func(c *cli.Context) error {
					if _, err := t.loadConfig(c, 1); err != nil {
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
				Flags:       []cli.Flag{profiles()},
				Action: func(c *cli.Context) error {
					loaded, err := t.loadConfig(c, 0)
					if err != nil {
						return err
					}
					return t.print(loaded.Show)
				},
			},
		},
	}
}

func (t *terminal) configInit(c *cli.Context) error {
	if err := arguments(c, 0, 1, "at most one file"); err != nil {
		return err
	}
	name := c.Args().First()
	if name == "" {
		name = "-"
	}
	if _, err := os.Lstat(name); err == nil {
		return &hintedError{err: fmt.Errorf("%s is there already", name), hint: "choose another name, or remove it first"}
	}
	return t.write(name, func(w io.Writer) error {
		_, err := io.WriteString(w, config.DefaultText())
		return err
	})
}

// loadConfig reads the named file; without one it is the default
// configuration, if that is allowed.
func (t *terminal) loadConfig(c *cli.Context, least int) (*config.Config, error) {
	if err := arguments(c, least, 1, "one configuration file"); err != nil {
		return nil, err
	}
	if c.NArg() == 0 {
		return config.Default(), nil
	}
	profiles, err := readProfiles(c.String("profiles"))
	if err != nil {
		return nil, err
	}
	var loaded *config.Config
	err = t.read(c.Args().First(), func(r io.Reader, name string) error {
		loaded, err = config.Load(r, name, profiles)
		return err
	})
	return loaded, err
}
