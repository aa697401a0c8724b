package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/completion"
)

// prepareCommand gives a command the manners of this program: its usage line is what
// one types, and usage errors are returned, not printed.
func prepareCommand(parent string, c *cli.Command) {
	name := parent + " " + c.Name
	c.HideHelpCommand = true
	c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return &usageError{msg: err.Error()} }
	c.UsageText = strings.TrimSpace(name + " " + c.ArgsUsage)
	if len(c.Flags) > 0 {
		c.UsageText += " [OPTIONS]"
	}
	if len(c.Subcommands) > 0 && c.Action == nil {
		c.UsageText = name + " COMMAND"
		c.Action = cli.ShowSubcommandHelp
	}
	for _, sub := range c.Subcommands {
		prepareCommand(name, sub)
	}
}

// boolFlag is a flag without a value.
func boolFlag(name, usage string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Usage: usage, DisableDefaultText: true}
}

func (t *terminal) app() *cli.App {
	app := &cli.App{
		Name:      "epplan",
		Usage:     "plan batches of GPU jobs that use little energy and miss no deadline",
		UsageText: "epplan COMMAND [ARGUMENTS] [OPTIONS]",
		Description: "epplan help COMMAND tells more. Results go to standard output, everything else to standard error.\n" +
			"Exit status: 0 done, 1 failed, 2 usage, 3 some jobs can't be planned in time, 4 can't reach " +
			"epd, 130 interrupted.\n\n" +
			"Example: epplan plan batch.csv --cluster cluster.toml --models models.toml",
		HideVersion:               true,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true, // a policy may have commas in it
		Reader:                    t.stdin,
		Writer:                    t.stdout,
		ErrWriter:                 t.stderr,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return &usageError{msg: err.Error()}
		},
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				return t.printVersion(false)
			}
			return cli.ShowAppHelp(c)
		},
		Flags: []cli.Flag{boolFlag("version", "print the version")},
		Commands: []*cli.Command{
			t.planCommand(),
			t.compareCommand(),
			t.consolidateCommand(),
			t.correlateCommand(),
			t.tuneCommand(),
			t.explainCommand(),
			t.modelCommand(),
			t.generateCommand(),
			t.importCommand(),
			t.replayCommand(),
			t.reproduceCommand(),
			t.installCommand(),
			t.doctorCommand(),
			t.statusCommand(),
			t.jobsCommand(),
			t.jobCommand(),
			t.savingsCommand(),
			t.historyCommand(),
			t.estimateCommand(),
			t.predictCommand(),
			t.reloadCommand(),
			t.leversCommand(),
			t.profileCommand(),
			t.restoreCommand(),
			t.prologCommand(),
			t.epilogCommand(),
			t.submitCommand(),
			t.suspendCommand(),
			t.resumeCommand(),
			t.configCommand(),
			t.completionCommand(),
			t.manCommand(),
			t.versionCommand(),
		},
	}
	for _, c := range app.Commands {
		prepareCommand(app.Name, c)
		t.guardOutputs(c)
	}
	return app
}

// execute runs the command line.
func (t *terminal) execute(ctx context.Context, args []string) error {
	app := t.app() //nolint:contextcheck // commands get it by RunContext
	t.args = args
	if completion.IsRequest(args) {
		return completion.WriteCandidates(t.stdout, app, args, completionValues())
	}
	arranged, err := parseArgs(app, args)
	if err == nil {
		err = app.RunContext(ctx, arranged.libraryArgs())
	}
	var usage *usageError
	if errors.As(err, &usage) && usage.hint == "" {
		usage.hint = arranged.commandName() + " --help lists the flags and shows an example"
	}
	return err
}

// checkArgs checks how many positional arguments there are, that at most one output
// format is asked for, and that standard input is read once.
func checkArgs(c *cli.Context, least, most int, want string) error {
	if c.Bool("json") && c.Bool("csv") {
		return usagef("--json and --csv are both given, want one")
	}
	inputs := c.Args().Slice()
	for _, flag := range []string{
		"config", "cluster", "contention", "profiles", "pods", "nodes", "power",
		"arrivals", "node-order",
	} {
		inputs = append(inputs, c.String(flag))
	}
	inputs = append(inputs, c.StringSlice("models")...)
	if first := slices.Index(inputs, "-"); first >= 0 && slices.Contains(inputs[first+1:], "-") {
		return usagef("standard input is read twice, want one - only")
	}
	switch n := c.NArg(); {
	case n == 0 && least > 0:
		return usagef("no arguments, want %s", want)
	case n == 1 && most == 0:
		return usagef("an argument %q, want none", c.Args().First())
	case n < least || n > most:
		return &usageError{msg: fmt.Sprintf("%d arguments, want %s", n, want)}
	}
	return nil
}
