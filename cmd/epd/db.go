package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/statedir"
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
				if errors.Is(err, store.ErrCorrupt) {
					found, err = append(found, err.Error()), nil
				}
				for _, damage := range found {
					_, _ = fmt.Fprintln(stdout, damage)
				}
				if err == nil && len(found) > 0 {
					return errors.New("the database is damaged: restore a backup, or export what can be read")
				}
				return err
			}),
			withFlags(sub("backup", "FILE", "copy the records to a new file, while epd runs too",
				"epd db backup /backup/records.db", 1, func(c *cli.Context, path string) error {
					copied, err := store.BackupWith(c.Context, path, c.Args().First(), store.CopyOptions{
						Replace: c.Bool("replace"), Progress: copyProgress(stderr),
					})
					if err != nil {
						return err
					}
					return printCopied(c, stdout, &copied)
				}),
				&cli.BoolFlag{
					Name: "replace", Usage: "replace FILE if it is there, once the copy is sound", DisableDefaultText: true,
				},
				jsonFlag()),
			withFlags(sub("restore", "FILE", "put a backup in the place of the records, while epd doesn't run",
				"epd db restore /backup/records.db", 1, func(c *cli.Context, path string) error {
					return restoreRecords(c, path, stdout, stderr)
				}), terminal.DryRunFlag(), jsonFlag()),
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

// withFlags returns a command with further flags.
func withFlags(c *cli.Command, flags ...cli.Flag) *cli.Command {
	c.Flags = append(c.Flags, flags...)
	return c
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "say what the copy has as JSON", DisableDefaultText: true}
}

// restoreRecords puts a backup in the place of the records. Neither they nor the backup may be those of
// an epd that runs: what it writes meanwhile would be lost.
func restoreRecords(c *cli.Context, path string, stdout, stderr io.Writer) error {
	backup := c.Args().First()
	if err := statedir.Check(filepath.Dir(path)); err != nil {
		return err
	}
	lock, err := daemon.LockState(filepath.Dir(path), roleController)
	if err != nil {
		return err
	}
	defer lock.Release()
	from := filepath.Dir(backup)
	if _, err := os.Stat(filepath.Join(from, roleController+".lock")); err == nil && from != filepath.Dir(path) {
		lock, err := daemon.LockState(from, roleController)
		if err != nil {
			return fmt.Errorf("%s isn't a backup: %w", backup, err)
		}
		defer lock.Release()
	}
	steps := []string{"copy " + backup + " to " + path}
	if _, err := os.Lstat(path); err == nil {
		steps = []string{"keep " + path + " beside itself as records.db.replaced-<time>", steps[0]}
	}
	if stop, err := terminal.Announce(c, steps...); stop {
		return err
	}
	copied, err := store.Restore(c.Context, backup, path, time.Now(), copyProgress(stderr))
	if err != nil {
		return err
	}
	return printCopied(c, stdout, &copied)
}

// copyProgress says how far a copy is that takes long.
func copyProgress(stderr io.Writer) func(written, all int64) {
	said := false
	return func(written, all int64) {
		switch {
		case written >= 0:
			said = true
			_, _ = fmt.Fprintf(stderr, "copied %s of about %s\n", megabytes(written), megabytes(all))
		case said:
			_, _ = fmt.Fprintln(stderr, "checking the copy")
		}
	}
}

// megabytes returns a number of bytes for people.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// printCopied says what a copy has.
func printCopied(c *cli.Context, stdout io.Writer, copied *store.Copied) error {
	if c.Bool("json") {
		text, err := json.Marshal(copied)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s\n", text)
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s: %s, checked: %s, %s, %s\n", copied.File, megabytes(copied.Bytes),
		countText(copied.Rows["jobs"], "job"), countText(copied.Rows["outcomes"], "run"),
		countText(copied.Rows["models"], "model version"))
	if err == nil && copied.Aside != "" {
		_, err = fmt.Fprintf(stdout, "what it replaced is %s\n", copied.Aside)
	}
	return err
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
