package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/slurm/hooks"
)

// slurmctld takes no other submission while job_submit.lua waits, so epplan
// submit ends after submitTimeout, whatever happens.
const (
	submitTimeout    = 80 * time.Millisecond // with the program's start less than 100 ms
	maxSubmitTimeout = 10 * time.Second      // of --within
	maxHex           = 32 << 10              // of --hex
)

const submitName = "submit"

func isSubmitCommand(args []string) bool {
	return len(args) > 1 && args[1] == submitName && slices.ContainsFunc(args[2:], func(arg string) bool {
		return strings.HasPrefix(strings.TrimLeft(arg, "-"), "hex") && strings.HasPrefix(arg, "-")
	})
}

// submitBound returns what --within says, before anything else is looked at.
func submitBound(args []string) time.Duration {
	for i, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		if d, err := time.ParseDuration(value); name == "--within" && err == nil && d > 0 &&
			d <= maxSubmitTimeout {
			return d
		}
	}
	return submitTimeout
}

// runSubmit runs epplan submit, which is given the work, within a time.
func runSubmit(
	ctx context.Context, t *terminal.Terminal, within time.Duration, work func(context.Context) error,
) int {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	select {
	case err := <-done:
		if errors.Is(err, context.DeadlineExceeded) {
			ctx = context.WithoutCancel(ctx) // a failure of epd's, not of ours
		}
		return t.Finish(ctx, err)
	case <-ctx.Done():
		t.Message("error", "no answer in time: the job goes on as it is")
		return terminal.ExitUnreachable
	}
}

func submitCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      submitName,
		Usage:     "submit a batch script by sbatch, after telling epd what its code looks like",
		ArgsUsage: "SCRIPT [-- SBATCH_OPTIONS]",
		Description: "Reads the source code that the script runs, such as python train.py below this folder, so that epd can\n" +
			"predict a job that never ran. epd receives only numeric features, from which the source can't be recovered.\n" +
			"Then sbatch is started, whatever epd says, with the options that follow --; the exit status is sbatch's.\n" +
			"With --hex, it asks what to note on a job, for job_submit.lua where slurmctld has no lua-socket (epplan install\n" +
			"slurm --popen): what the hook says, in hexadecimal digits; the answer is a line of JSON within 100 ms.\n" +
			"Example: epplan submit --within 5s --hex " +
			"7b2276223a312c226b696e64223a226261746368222c22756964223a317d",
		Flags: []cli.Flag{
			noCodeFlag(), terminal.DryRunFlag(),
			&cli.StringFlag{Name: "hex", Usage: "the submission in `DIGITS` 0 to 9 and a to f"},
			&cli.StringFlag{
				Name: "socket", Usage: "`PATH` at which epd answers job_submit", Value: defaultSubmitSocket,
				EnvVars: []string{"EPPLAN_SUBMIT_SOCKET"},
			},
			&cli.DurationFlag{
				Name: "within", Usage: "`TIME` after which it ends, for tests", Value: submitTimeout,
			},
		},
		Action: t.Runs(askSubmit),
	}
}

func askSubmit(t *terminal.Terminal, c *cli.Context) error {
	if !c.IsSet("hex") {
		return submitScript(t, c)
	}
	if err := terminal.CheckArgs(c, 0, 0, "none"); err != nil {
		return err
	}
	digits := c.String("hex")
	if digits == "" || len(digits) > maxHex || strings.Trim(digits, "0123456789abcdef") != "" {
		return terminal.Usagef("--hex has %d characters, want 2 to %d of 0 to 9 and a to f", len(digits),
			maxHex)
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return terminal.Usagef("--hex: %v", err)
	}
	submission, err := hooks.DecodeSubmission(strings.NewReader(string(raw)))
	if err != nil {
		return err
	}
	if stop, err := terminal.Announce(c, "ask epd at "+c.String("socket")+" what to note on the job"); stop {
		return err
	}
	answer, err := epdapi.New(c.String("socket")).Submit(c.Context, &submission)
	if err != nil {
		return fmt.Errorf("the job goes on as it is: %w", err)
	}
	return t.Print(func(w io.Writer) error { return json.NewEncoder(w).Encode(answer) })
}

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
	if stop, err := terminal.Announce(c,
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
	s := &hooks.Submission{
		Version: hooks.ProtocolVersion, Kind: "batch", UID: uint32(max(0, os.Getuid())),
		Name:   hooks.Hex(filepath.Base(name)),
		Script: hooks.Hex(script),
	}
	quoted := terminal.TextsOf(options, strconv.Quote)
	chdir := ""
	all := hooks.SbatchOptions(string(script) + "\n")
	// These go before the script's.
	all = append(all, hooks.SbatchOptions("#SBATCH "+strings.Join(quoted, " "))...)
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
	if stop, err := terminal.Announce(c, fmt.Sprintf("tell epd at %s what the code in %s looks like",
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
