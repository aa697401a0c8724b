package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/completion"
	"github.com/epplan/epplan/internal/cli/manual"
)

// program is a command-line program, without a terminal to run at.
type program struct {
	name, usage, description string
	version                  string
	commands                 func(t *terminal) []*cli.Command // makes them anew
	values                   completion.Values                // of flags and arguments that have a few
	bareValues               map[string]string                // what flags stand for that may be given without a value
	// moved has the new spellings of commands and flags that another program has now, by the old ones without
	// the program's name, such as "generate openb" or "predict --code".
	moved map[string]string
	pages manual.Book // what the manual pages have in common, but for program, date and version
}

// newTerminal returns a terminal at which the program may run.
func (p *program) newTerminal(stdin io.Reader, stdout, stderr io.Writer) *terminal {
	return &terminal{
		program: p, stdin: stdin, stdout: stdout, stderr: stderr,
		progress: isTerminal(stderr), now: time.Now, color: isTerminal(stdout) && os.Getenv("NO_COLOR") == "",
	}
}

// silent returns a terminal of the same program that shows nothing.
func (t *terminal) silent() *terminal {
	return &terminal{program: t.program, stdout: io.Discard, stderr: io.Discard}
}

// run runs the program: it reads and writes what it is given and returns the exit status.
func (p *program) run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := p.newTerminal(stdin, stdout, stderr)
	done := make(chan error, 1)
	go func() { done <- t.execute(ctx, args) }()
	return t.finish(ctx, t.await(ctx, done))
}

// execute runs the command that the arguments name.
func (t *terminal) execute(ctx context.Context, args []string) error {
	app := t.program.app(t) //nolint:contextcheck // commands get it by RunContext
	t.args = args
	if completion.IsRequest(args) {
		return completion.WriteCandidates(t.stdout, app, args, t.program.values)
	}
	arranged, err := t.program.parseArgs(app, args)
	if err == nil {
		err = app.RunContext(ctx, arranged.libraryArgs())
	}
	var usage *usageError
	if errors.As(err, &usage) && usage.hint == "" {
		usage.hint = arranged.commandName() + " --help lists the flags and shows an example"
	}
	return err
}

// gracePeriod is how long an interrupted command may take to stop by itself.
const gracePeriod = 500 * time.Millisecond

// await waits for a command. One that was interrupted and doesn't stop within
// the grace period, because it waits for input for example, is given up: files
// are put in place as a whole, so that none is left half-written. One that has
// begun to plan ends by itself.
func (t *terminal) await(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if t.keepsPartial.Load() {
		return <-done
	}
	timer := time.NewTimer(gracePeriod)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return ctx.Err()
	}
}

// app returns the program's commands as the library runs them.
func (p *program) app(t *terminal) *cli.App {
	app := &cli.App{
		Name:                      p.name,
		Usage:                     p.usage,
		UsageText:                 p.name + " COMMAND [ARGUMENTS] [OPTIONS]",
		Description:               p.description,
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
		Flags:    []cli.Flag{boolFlag("version", "print the version")},
		Commands: append(p.commands(t), completionCommand(t), manCommand(t), versionCommand(t)),
	}
	for _, c := range app.Commands {
		prepareCommand(app.Name, c)
		t.guardOutputs(c)
	}
	return app
}

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

// completionCommand prints scripts with which shells complete the program's commands.
func completionCommand(t *terminal) *cli.Command {
	name := t.program.name
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a shell completion script",
		ArgsUsage: "bash|zsh|fish",
		Description: "Source what is printed from the shell's start-up file: . " + name + ".bash\n" +
			"Example: " + name + " completion bash > " + name + ".bash",
		Action: t.runs(takes(1, 1, "a shell: bash, zsh or fish", runCompletion)),
	}
}

func runCompletion(t *terminal, c *cli.Context) error {
	script := completion.Script(c.Args().First(), t.program.name)
	if script == "" {
		return usagef("unknown shell %q, want bash, zsh or fish", c.Args().First())
	}
	return t.printText(script)
}

// manCommand writes the program's manual pages, of commands made anew so that they have the flags of their
// definition alone.
func manCommand(t *terminal) *cli.Command {
	name := t.program.name
	return &cli.Command{
		Name:      "man",
		Usage:     "write the manual pages of all commands",
		ArgsUsage: "FOLDER",
		Description: "Pages go to FOLDER/man1; man finds them where FOLDER is in MANPATH. Packages bring them along.\n" +
			"Their date is today's, or what SOURCE_DATE_EPOCH says.\n" +
			"Example: " + name + " man manual",
		Action: t.runs(takes(1, 1, "a folder", func(t *terminal, c *cli.Context) error {
			book, err := t.program.book(t)
			if err != nil {
				return err
			}
			if err := book.Write(c.Args().First()); err != nil {
				return err
			}
			t.notef("wrote the pages; man -M %s %s shows one", c.Args().First(), name)
			return nil
		})),
	}
}

// book returns the manual of the program.
func (p *program) book(t *terminal) (*manual.Book, error) {
	date, err := manual.Date(os.Getenv("SOURCE_DATE_EPOCH"), time.Now())
	if err != nil {
		return nil, err
	}
	book := p.pages
	book.App, book.Section, book.Date, book.Version = p.app(t), 1, date, p.version
	return &book, nil
}

func versionCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:        "version",
		Usage:       "print the version",
		Description: "Example: " + t.program.name + " version --json",
		Flags:       []cli.Flag{jsonFlag()},
		Action: t.runs(takesNone(func(t *terminal, c *cli.Context) error {
			return t.printVersion(c.Bool("json"))
		})),
	}
}

func (t *terminal) printVersion(asJSON bool) error {
	version := t.program.version
	return t.print(func(w io.Writer) error {
		if asJSON {
			return json.NewEncoder(w).Encode(struct {
				Version string `json:"version"`
				Go      string `json:"go"`
			}{version, runtime.Version()})
		}
		_, err := fmt.Fprintf(w, "%s %s (%s)\n", t.program.name, version, runtime.Version())
		return err
	})
}
