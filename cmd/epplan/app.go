package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// command is a cli command with the manners of this program: usage errors are
// returned, not printed, and the help ends in an example.
func command(c *cli.Command) *cli.Command {
	c.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
		return &usageError{msg: err.Error(), hint: fmt.Sprintf("epplan %s --help lists the flags", c.Name)}
	}
	c.HideHelpCommand = true
	for i := range c.Subcommands {
		command(c.Subcommands[i])
	}
	return c
}

func (t *terminal) app() *cli.App {
	return &cli.App{
		Name:  "epplan",
		Usage: "plan batches of GPU jobs that use little energy and miss no deadline",
		Description: "Example: epplan plan batch.csv --cluster cluster.toml --models models.toml\n" +
			"Exit status: 0 done, 1 failed, 2 usage, 3 some jobs can't be planned in time, 130 interrupted.",
		HideVersion:          true,
		HideHelpCommand:      true,
		EnableBashCompletion: true,
		Reader:               t.stdin,
		Writer:               t.stdout,
		ErrWriter:            t.stderr,
		ExitErrHandler:       func(*cli.Context, error) {},
		OnUsageError:         func(_ *cli.Context, err error, _ bool) error { return &usageError{msg: err.Error()} },
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				return t.printVersion(false)
			}
			return cli.ShowAppHelp(c)
		},
		Flags: []cli.Flag{&cli.BoolFlag{Name: "version", Usage: "print the version"}},
		Commands: []*cli.Command{
			command(t.planCommand()),
			command(t.compareCommand()),
			command(t.explainCommand()),
			command(t.modelCommand()),
			command(t.generateCommand()),
			command(t.reproduceCommand()),
			command(t.configCommand()),
			command(t.completionCommand()),
			command(t.versionCommand()),
		},
	}
}

// execute runs the command line.
func (t *terminal) execute(ctx context.Context, args []string) error {
	app := t.app()
	args, err := flagsFirst(app, args)
	if err != nil {
		return err
	}
	return app.RunContext(ctx, args)
}

// flagsFirst moves flags before the positional arguments of their command,
// where the library expects them, and finds commands that don't exist, which
// the library would answer with help and success.
func flagsFirst(app *cli.App, args []string) ([]string, error) {
	if len(args) < 2 || args[len(args)-1] == "--generate-bash-completion" {
		return args, nil
	}
	sorted := []string{args[0]}
	rest := args[1:]
	commands, flags := app.Commands, app.Flags
	for len(rest) > 0 && len(commands) > 0 && !strings.HasPrefix(rest[0], "-") {
		next := find(commands, rest[0])
		if next == nil {
			return nil, unknownCommand(commands, sorted[1:], rest[0])
		}
		sorted, rest = append(sorted, rest[0]), rest[1:]
		commands, flags = next.Subcommands, next.Flags
	}
	options, positional := split(flags, rest)
	sorted = append(sorted, options...)
	if len(positional) > 0 {
		sorted = append(append(sorted, "--"), positional...)
	}
	return sorted, nil
}

// split separates flags, with their values, from positional arguments.
func split(flags []cli.Flag, args []string) (options, positional []string) {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return options, append(positional, args[i+1:]...)
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			positional = append(positional, arg)
		default:
			options = append(options, arg)
			if takesValue(flags, arg) && i+1 < len(args) {
				i++
				options = append(options, args[i])
			}
		}
	}
	return options, positional
}

// takesValue tells whether the next argument belongs to the flag.
func takesValue(flags []cli.Flag, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				_, isBool := f.(*cli.BoolFlag)
				return !isBool
			}
		}
	}
	return false
}

func find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

func unknownCommand(commands []*cli.Command, path []string, name string) error {
	names := make([]string, 0, len(commands))
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	where := strings.Join(append([]string{"epplan"}, path...), " ")
	return &usageError{
		msg:  fmt.Sprintf("unknown command %q", name),
		hint: fmt.Sprintf("the commands of %s are %s", where, strings.Join(names, ", ")),
	}
}

// arguments checks the number of positional arguments.
func arguments(c *cli.Context, least, most int, want string) error {
	if n := c.NArg(); n < least || n > most {
		return &usageError{
			msg:  fmt.Sprintf("%d arguments, want %s", n, want),
			hint: fmt.Sprintf("epplan %s --help shows an example", c.Command.FullName()),
		}
	}
	return nil
}
