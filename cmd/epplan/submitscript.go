package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/dryrun"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/slurm"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// announceTimeout is how long a job waits for epd before it is submitted.
const announceTimeout = 5 * time.Second

func submitScript(t *terminal.Terminal, c *cli.Context) error {
	const most = 1000 // options
	if err := terminal.CheckArgs(c, 1, most, "one batch script, and options of sbatch after --"); err != nil {
		return err
	}
	name, options := c.Args().First(), c.Args().Tail()
	if name == "-" || strings.HasPrefix(name, "-") {
		return terminal.Usagef("%q, want a batch script in a file before --", name)
	}
	script, err := readScript(t, name)
	if err != nil {
		return err
	}
	sbatch, err := exec.LookPath("sbatch")
	if err != nil {
		return terminal.WithHint(errors.New("sbatch isn't there"),
			"epplan submit runs where jobs are submitted")
	}
	if err := announce(t, c, name, script, options); err != nil {
		t.Message("warning", "epd isn't told of the job's code: "+err.Error())
	}
	if stop, err := dryrun.Announce(c,
		"run "+strings.Join(append([]string{sbatch}, append(options, name)...), " ")); stop {
		return err
	}
	cmd := exec.CommandContext(c.Context, sbatch, append(options, name)...) //nolint:gosec // the user's own
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.Stdin, t.Stdout, t.Stderr
	err = cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() > 0 {
		return &terminal.StatusError{Code: ended.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("sbatch: %w", err)
	}
	return nil
}

func announce(t *terminal.Terminal, c *cli.Context, name string, script []byte, options []string) error {
	s := &slurm.Submission{
		Version: slurm.ProtocolVersion, Kind: "batch", UID: uint32(max(0, os.Getuid())),
		Name:   slurm.Hex(filepath.Base(name)),
		Script: slurm.Hex(script),
	}
	quoted := terminal.TextsOf(options, strconv.Quote)
	chdir := ""
	all := slurm.SbatchOptions(string(script) + "\n")
	// These go before the script's.
	all = append(all, slurm.SbatchOptions("#SBATCH "+strings.Join(quoted, " "))...)
	for _, o := range all {
		switch o.Name {
		case "comment", "job-name":
			if err := s.SetOption(o.Name, o.Value); err != nil {
				return err
			}
		case "chdir":
			chdir = o.Value
		}
	}
	read := followCode(t, c, s, chdir)
	if read == nil {
		return nil
	}
	for _, s := range read.Skipped {
		t.Message("warning", "not read: "+s.Name+" "+s.Why)
	}
	if stop, err := dryrun.Announce(c, fmt.Sprintf("tell epd at %s what the code in %s looks like",
		c.String("socket"), report.Plural(len(read.Files), "file"))); stop {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, announceTimeout)
	defer cancel()
	epd := epdapi.New(c.String("socket"))
	request := &epdapi.CodeRequest{Submission: *s, Code: epdCode(read)}
	answer, err := epd.Announce(ctx, request)
	if err == nil && answer.WantsText {
		request.Code = withCodeText(request.Code, read)
		_, err = epd.Announce(ctx, request)
	}
	return err
}
