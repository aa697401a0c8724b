package main

import (
	"context"
	"errors"
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

func newApp(t *terminal) *cli.App {
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
				return printVersion(t, false)
			}
			return cli.ShowAppHelp(c)
		},
		Flags: []cli.Flag{boolFlag("version", "print the version")},
		Commands: []*cli.Command{
			planCommand(t),
			compareCommand(t),
			consolidateCommand(t),
			correlateCommand(t),
			tuneCommand(t),
			explainCommand(t),
			modelCommand(t),
			generateCommand(t),
			importCommand(t),
			replayCommand(t),
			reproduceCommand(t),
			installCommand(t),
			doctorCommand(t),
			statusCommand(t),
			jobsCommand(t),
			jobCommand(t),
			savingsCommand(t),
			historyCommand(t),
			estimateCommand(t),
			predictCommand(t),
			reloadCommand(t),
			leversCommand(t),
			profileCommand(t),
			restoreCommand(t),
			prologCommand(t),
			epilogCommand(t),
			submitCommand(t),
			powerCommand(t, "suspend", "Slurm's SuspendProgram: switch nodes off by the site's own command"),
			powerCommand(t, "resume", "Slurm's ResumeProgram: switch nodes on by the site's own command"),
			configCommand(t),
			gpusCommand(t),
			completionCommand(t),
			manCommand(t, newApp),
			versionCommand(t),
		},
	}
	for _, c := range app.Commands {
		prepareCommand(app.Name, c)
		t.guardOutputs(c)
	}
	return app
}

func execute(ctx context.Context, t *terminal, args []string) error {
	app := newApp(t) //nolint:contextcheck // commands get it by RunContext
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
