package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/store"
)

// dbCommand is about the records of an epd, which may run meanwhile.
func dbCommand(stdout, stderr io.Writer) *cli.Command {
	state := &cli.StringFlag{
		Name: "state", EnvVars: []string{"EPD_STATE"}, Usage: "`DIR` of the records",
		Value: "/var/lib/epplan",
	}
	sub := func(name, args, text, example string, count int, do func(
		c *cli.Context, path string,
	) error,
	) *cli.Command {
		return &cli.Command{
			Name: name, Usage: text, UsageText: strings.TrimSpace("epd db " + name + " [OPTIONS] " + args),
			Description: "Example: " + example, HideHelpCommand: true, OnUsageError: refuseUsage,
			Flags: []cli.Flag{state},
			Action: func(c *cli.Context) error {
				if c.NArg() != count {
					return usagef("epd db %s takes %d arguments, got %d", name, count, c.NArg())
				}
				acting, err := actAsOwner(c.String("state"))
				if err == nil {
					err = do(c, filepath.Join(c.String("state"), "records.db"))
				}
				if err != nil && acting {
					err = fmt.Errorf("as user %d, whose folder %s is: %w", os.Geteuid(),
						c.String("state"), err)
				}
				return err
			},
		}
	}
	return &cli.Command{
		Name: "db", Usage: "check, back up, export and mend the records", HideHelpCommand: true,
		OnUsageError: refuseUsage,
		Subcommands: append([]*cli.Command{
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
			sub("backup", "FILE", "copy the records to a new file, while epd runs too",
				"epd db backup /backup/records.db", 1, func(c *cli.Context, path string) error {
					return store.Backup(c.Context, path, c.Args().First())
				}),
			sub("export", "TABLE", "write a table as JSON lines: "+strings.Join(store.Tables(), ", "),
				"epd db export outcomes", 1, func(c *cli.Context, path string) (err error) {
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
		}, forgetCommands(stdout, stderr)...),
	}
}

// actAsOwner has root act as the user whose folder it is, and reports whether it does:
// what a controller's user may have put there then reaches nothing of root's. There
// is no way back.
func actAsOwner(dir string) (acting bool, err error) {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return false, nil //nolint:nilerr // whoever opens the records says so
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return false, nil
	}
	uid, gid := int(owner.Uid), int(owner.Uid) // of a user whom nobody knows: a group of the same number
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		if known, err := strconv.Atoi(u.Gid); err == nil {
			gid = known
		}
	}
	err = syscall.Setgroups([]int{gid})
	if err == nil {
		err = syscall.Setresgid(gid, gid, gid)
	}
	if err == nil {
		err = syscall.Setresuid(uid, uid, uid)
	}
	if err != nil {
		return false, fmt.Errorf("act as user %d, whose folder %s is: %w", uid, dir, err)
	}
	return true, nil
}
