package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/store"
)

// dbCommand is about the records of an epd, which may run meanwhile.
func dbCommand(stdout io.Writer) *cli.Command {
	state := &cli.StringFlag{Name: "state", EnvVars: []string{"EPD_STATE"}, Usage: "`DIR` of the records", Value: "/var/lib/epplan"}
	usage := func(_ *cli.Context, err error, _ bool) error { return usagef("%w", err) }
	sub := func(name, args, text, example string, count int, do func(c *cli.Context, path string) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: text, UsageText: strings.TrimSpace("epd db " + name + " [OPTIONS] " + args),
			Description: "Example: " + example, HideHelpCommand: true, OnUsageError: usage, Flags: []cli.Flag{state},
			Action: func(c *cli.Context) error {
				if c.NArg() != count {
					return usagef("epd db %s takes %d arguments, got %d", name, count, c.NArg())
				}
				return do(c, filepath.Join(c.String("state"), "records.db"))
			},
		}
	}
	return &cli.Command{
		Name: "db", Usage: "check, back up and export the records", HideHelpCommand: true, OnUsageError: usage,
		Subcommands: []*cli.Command{
			sub("check", "", "look for damage", "epd db check", 0, func(c *cli.Context, path string) error {
				found, err := store.Check(c.Context, path)
				for _, damage := range found {
					_, _ = fmt.Fprintln(stdout, damage)
				}
				if err == nil && len(found) > 0 {
					return errors.New("the database is damaged: restore a backup, or export what can be read")
				}
				return err
			}),
			sub("backup", "FILE", "copy the records to a new file, while epd runs too", "epd db backup /backup/records.db", 1, func(c *cli.Context, path string) error {
				return store.BackupFile(c.Context, path, c.Args().First())
			}),
			sub("export", "TABLE", "write a table as JSON lines: "+strings.Join(store.Tables(), ", "), "epd db export outcomes", 1, func(c *cli.Context, path string) (err error) {
				if _, err := os.Stat(path); err != nil {
					return err
				}
				s, err := store.Open(c.Context, path, nil)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, s.Close()) }()
				return s.Export(c.Context, stdout, c.Args().First())
			}),
		},
	}
}
