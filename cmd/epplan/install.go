package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

func (t *terminal) installCommand() *cli.Command {
	return &cli.Command{
		Name:        "install",
		Usage:       "say what to put where",
		Description: "Example: epplan install slurm --dry-run --dir site",
		Subcommands: []*cli.Command{{
			Name:  "slurm",
			Usage: "what to add to a site's Slurm, exactly, and how to undo it",
			Description: "Reads slurm.conf and job_submit.lua of a folder and prints each change and how to undo it. Nothing is\n" +
				"written. A script of the site gains one line, its Prolog and Epilog stay. Scripts are checked by luac5.1\n" +
				"where it is installed, for one that doesn't load can end slurmctld.\n" +
				"Example: epplan install slurm --dry-run --dir site",
			Flags: []cli.Flag{
				boolFlag("dry-run", "print the changes; there is no other way yet"),
				&cli.StringFlag{Name: "dir", Usage: "`DIR` of slurm.conf", Value: "/etc/slurm"},
				&cli.StringFlag{Name: "submit-socket", Usage: "`PATH` at which epd answers job_submit", Value: "/run/epplan/submit.sock"},
				&cli.StringFlag{Name: "program", Usage: "`PATH` of epplan on the nodes", Value: "/usr/bin/epplan"},
			},
			Action: t.installSlurm,
		}},
	}
}

func (t *terminal) installSlurm(c *cli.Context) error {
	if err := takes(c, 0, 0, "none"); err != nil {
		return err
	}
	if !c.Bool("dry-run") {
		return usagef("epplan install changes nothing by itself yet: give --dry-run and make the changes that it prints")
	}
	dir, err := filepath.Abs(c.String("dir"))
	if err != nil {
		return err
	}
	conf, err := os.ReadFile(filepath.Join(dir, "slurm.conf")) //nolint:gosec // the administrator names it
	if err != nil {
		return err
	}
	script, err := os.ReadFile(filepath.Join(dir, "job_submit.lua")) //nolint:gosec // as above
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	plan, err := slurm.PlanInstall(slurm.Site{
		Dir: dir, Socket: c.String("submit-socket"), Binary: c.String("program"), Conf: string(conf),
		Script: string(script), HasScript: err == nil, CheckLua: func(name, text string) error { return t.checkLua(c, name, text) },
	})
	if err != nil {
		return err
	}
	for _, warning := range plan.Warnings {
		t.message("warning", warning)
	}
	return t.print(func(w io.Writer) error {
		if len(plan.Steps) == 0 {
			_, err := fmt.Fprintln(w, "Everything is in place.")
			return err
		}
		for i := range plan.Steps {
			if _, err := io.WriteString(w, stepText(i+1, &plan.Steps[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkLua reads a script as Slurm's Lua does, without running it.
func (t *terminal) checkLua(c *cli.Context, name, text string) error {
	check := exec.CommandContext(c.Context, "luac5.1", "-p", "-")
	check.Stdin = strings.NewReader(text)
	var complaint bytes.Buffer
	check.Stderr = &complaint
	err := check.Run()
	if errors.Is(err, exec.ErrNotFound) {
		t.message("warning", name+" is not checked: luac5.1 is not installed")
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %s", name, queue.Printable(strings.TrimSpace(complaint.String())))
	}
	return nil
}

// stepText is one change for people.
func stepText(number int, s *slurm.Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d. %s: %s\n", number, s.File, s.Why)
	if s.Drop != "" {
		fmt.Fprintf(&b, "   instead of  %s\n", queue.Printable(s.Drop))
	}
	switch {
	case s.Add != "":
		fmt.Fprintf(&b, "   add         %s\n", queue.Printable(s.Add))
	case s.New:
		fmt.Fprintf(&b, "   new file, mode %o:\n", s.Mode)
		for line := range strings.SplitSeq(strings.TrimSuffix(s.Text, "\n"), "\n") {
			fmt.Fprintf(&b, "   | %s\n", queue.Printable(line))
		}
	}
	fmt.Fprintf(&b, "   to undo     %s\n", queue.Printable(s.Undo))
	return b.String()
}
