package terminal

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

// Program is a command-line program, without a terminal to run at.
type Program struct {
	Name, Usage, Description string
	Version                  string
	Commands                 func(t *Terminal) []*cli.Command // makes them anew
	Values                   completion.Values                // of flags and arguments that have a few
	// Groups divide the commands in the help, which omits commands without a group. Nil: no division.
	Groups []Group
	// BareValues has what flags stand for that may be given without a value.
	BareValues map[string]string
	// Moved has the new spellings of commands and flags that another program has now, by the old ones without
	// the program's name, such as "generate openb" or "predict --code".
	Moved map[string]string
	Pages manual.Book // what the manual pages have in common, but for program, date and version
}

// Group is a heading with its commands.
type Group struct {
	Name     string
	Commands []string
}

// NewTerminal returns a terminal at which the program may run.
func (p *Program) NewTerminal(stdin io.Reader, stdout, stderr io.Writer) *Terminal {
	return &Terminal{
		Program: p, Stdin: stdin, Stdout: stdout, Stderr: stderr,
		Progress: isTerminal(stderr), Now: time.Now, color: isTerminal(stdout) && os.Getenv("NO_COLOR") == "",
	}
}

// Silent returns a terminal of the same program that shows nothing.
func (t *Terminal) Silent() *Terminal {
	return &Terminal{Program: t.Program, Stdout: io.Discard, Stderr: io.Discard}
}

// Run runs the program: it reads and writes what it is given and returns the exit status.
func (p *Program) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := p.NewTerminal(stdin, stdout, stderr)
	done := make(chan error, 1)
	go func() { done <- t.Execute(ctx, args) }()
	return t.Finish(ctx, t.Await(ctx, done))
}

// Execute runs the command that the arguments name.
func (t *Terminal) Execute(ctx context.Context, args []string) error {
	app := t.Program.App(t)
	t.args = args
	if completion.IsRequest(args) {
		return completion.WriteCandidates(t.Stdout, app, args, t.Program.Values)
	}
	arranged, err := t.Program.parseArgs(app, args)
	if err == nil {
		err = app.RunContext(ctx, arranged.libraryArgs())
	}
	var usage *UsageError
	if errors.As(err, &usage) && usage.Hint == "" {
		usage.Hint = arranged.commandName() + " --help lists the flags and shows an example"
	}
	return err
}

// gracePeriod is how long an interrupted command may take to stop by itself.
const gracePeriod = 500 * time.Millisecond

// Await waits for a command. One that was interrupted and doesn't stop within
// the grace period, because it waits for input for example, is given up: files
// are put in place as a whole, so that none is left half-written. One that has
// begun to plan ends by itself.
func (t *Terminal) Await(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if t.KeepsPartial.Load() {
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

// App returns the program's commands as the library runs them.
func (p *Program) App(t *Terminal) *cli.App {
	app := &cli.App{
		Name:                      p.Name,
		Usage:                     p.Usage,
		UsageText:                 p.Name + " COMMAND [ARGUMENTS] [OPTIONS]",
		Description:               p.Description,
		HideVersion:               true,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true, // a policy may have commas in it
		Reader:                    t.Stdin,
		Writer:                    t.Stdout,
		ErrWriter:                 t.Stderr,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return &UsageError{Msg: err.Error()}
		},
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				return t.printVersion(false)
			}
			return cli.ShowAppHelp(c)
		},
		Flags:    []cli.Flag{BoolFlag("version", "print the version")},
		Commands: append(p.Commands(t), completionCommand(t), manCommand(t), versionCommand(t)),
	}
	for _, c := range app.Commands {
		t.addCommonFlags(c)
		prepareCommand(app.Name, c)
	}
	if len(p.Groups) > 0 {
		app.CustomAppHelpTemplate = strings.Replace(cli.AppHelpTemplate,
			`{{template "visibleCommandCategoryTemplate" .}}`, p.grouped(app.Commands), 1)
	}
	return app
}

// grouped returns the commands by groups, as the help shows them.
func (p *Program) grouped(commands []*cli.Command) string {
	var b strings.Builder
	for _, g := range p.Groups {
		b.WriteString("\n   " + g.Name + ":")
		for _, name := range g.Commands {
			for _, c := range commands {
				if c.Name == name {
					fmt.Fprintf(&b, "\n     %-11s %s", c.Name, c.Usage)
				}
			}
		}
	}
	return b.String()
}

// prepareCommand gives a command the manners of this program: its usage line is what
// one types, and usage errors are returned, not printed.
func prepareCommand(parent string, c *cli.Command) {
	name := parent + " " + c.Name
	c.HideHelpCommand = true
	c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return &UsageError{Msg: err.Error()} }
	args, passed, passes := strings.Cut(c.ArgsUsage, " [--")
	c.UsageText = strings.TrimSpace(name + " " + args)
	if len(c.VisibleFlags()) > 0 {
		c.UsageText += " [OPTIONS]"
	}
	if passes {
		c.UsageText += " [--" + passed
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
func completionCommand(t *Terminal) *cli.Command {
	name := t.Program.Name
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a shell completion script",
		ArgsUsage: "bash|zsh|fish",
		Description: "Source what is printed from the shell's start-up file: . " + name + ".bash\n" +
			"Example: " + name + " completion bash > " + name + ".bash",
		Action: t.Runs(WithArgs(1, 1, "a shell: bash, zsh or fish", runCompletion)),
	}
}

func runCompletion(t *Terminal, c *cli.Context) error {
	script := completion.Script(c.Args().First(), t.Program.Name)
	if script == "" {
		return Usagef("unknown shell %q, want bash, zsh or fish", c.Args().First())
	}
	return t.PrintText(script)
}

// manCommand writes the program's manual pages, of commands made anew so that they have the flags of their
// definition alone.
func manCommand(t *Terminal) *cli.Command {
	name := t.Program.Name
	return &cli.Command{
		Name:      "man",
		Usage:     "write the manual pages of all commands",
		ArgsUsage: "FOLDER",
		Description: "Pages go to FOLDER/man1; man finds them where FOLDER is in MANPATH. Packages bring them along.\n" +
			"Their date is today's, or what SOURCE_DATE_EPOCH says.\n" +
			"Example: " + name + " man manual",
		Action: t.Runs(WithArgs(1, 1, "a folder", func(t *Terminal, c *cli.Context) error {
			book, err := t.Program.book(t)
			if err != nil {
				return err
			}
			if err := book.Write(c.Args().First()); err != nil {
				return err
			}
			t.Notef("wrote the pages; man -M %s %s shows one", c.Args().First(), name)
			return nil
		})),
	}
}

// book returns the manual of the program.
func (p *Program) book(t *Terminal) (*manual.Book, error) {
	date, err := manual.Date(os.Getenv("SOURCE_DATE_EPOCH"), time.Now())
	if err != nil {
		return nil, err
	}
	book := p.Pages
	book.App, book.Section, book.Date, book.Version = p.App(t), 1, date, p.Version
	return &book, nil
}

func versionCommand(t *Terminal) *cli.Command {
	return &cli.Command{
		Name:        "version",
		Usage:       "print the version",
		Description: "Example: " + t.Program.Name + " version --json",
		Flags:       []cli.Flag{JSONFlag()},
		Action: t.Runs(WithoutArgs(func(t *Terminal, c *cli.Context) error {
			return t.printVersion(c.Bool("json"))
		})),
	}
}

func (t *Terminal) printVersion(asJSON bool) error {
	version := t.Program.Version
	return t.Print(func(w io.Writer) error {
		if asJSON {
			return json.NewEncoder(w).Encode(struct {
				Version string `json:"version"`
				Go      string `json:"go"`
			}{version, runtime.Version()})
		}
		_, err := fmt.Fprintf(w, "%s %s (%s)\n", t.Program.Name, version, runtime.Version())
		return err
	})
}
