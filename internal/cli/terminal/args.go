package terminal

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/spelling"
)

// The library stops looking for flags at the first positional argument, answers
// unknown commands with help and success, and takes a flag for the value of
// another one. So the arguments are taken apart here and handed over in the
// order that it expects.

// parsedArgs is a command line taken apart.
type parsedArgs struct {
	program        *Program
	path           []string // of commands, the program first
	commands       []*cli.Command
	flags          []cli.Flag // of the last command
	options        []string   // flags, each followed by its value
	flagsWithValue []cli.Flag // those of them that have a value
	positional     []string
}

func (p *Program) parseArgs(app *cli.App, args []string) (*parsedArgs, error) {
	a := &parsedArgs{program: p, path: []string{app.Name}, commands: app.Commands, flags: app.Flags}
	if len(args) == 0 {
		return a, nil
	}
	rest, err := a.takeCommands(args[1:])
	if err != nil {
		return a, err
	}
	return a, a.takeFlags(rest)
}

// libraryArgs returns the command line as the library expects it.
func (a *parsedArgs) libraryArgs() []string {
	line := slices.Concat(a.path, a.options)
	if len(a.positional) > 0 {
		line = append(append(line, "--"), a.positional...)
	}
	return line
}

func (a *parsedArgs) commandName() string { return strings.Join(a.path, " ") }

// takeCommands takes the commands at the beginning. "help" among them asks for
// the help of the last one.
func (a *parsedArgs) takeCommands(args []string) (rest []string, err error) {
	help, takesOthers := false, false
	for len(args) > 0 && len(a.commands) > 0 && !strings.HasPrefix(args[0], "-") {
		name := args[0]
		if takesOthers && name != "help" && !a.hasCommand(name) {
			break
		}
		args = args[1:]
		if name == "help" {
			help = true
			continue
		}
		i := slices.IndexFunc(a.commands, func(c *cli.Command) bool { return c.HasName(name) })
		if i < 0 {
			return nil, a.unknownCommand(name)
		}
		a.path = append(a.path, a.commands[i].Name)
		takesOthers = a.commands[i].ArgsUsage != ""
		a.commands, a.flags = a.commands[i].Subcommands, a.commands[i].Flags
	}
	if help {
		return []string{"--help"}, nil
	}
	return args, nil
}

func (a *parsedArgs) hasCommand(name string) bool {
	return slices.ContainsFunc(a.commands, func(c *cli.Command) bool { return c.HasName(name) })
}

// takeFlags separates flags, with their values, from positional arguments.
func (a *parsedArgs) takeFlags(args []string) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			a.positional = append(a.positional, args...)
			return nil
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			a.positional = append(a.positional, arg)
		case arg == "-h" || strings.TrimLeft(arg, "-") == "help":
			a.options, a.positional = []string{"--help"}, nil // nothing else counts
			return nil
		default:
			var err error
			if args, err = a.takeFlag(arg, args); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *parsedArgs) takeFlag(arg string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	flag := a.findFlag(name)
	if flag == nil {
		return nil, a.unknownFlag(arg)
	}
	a.options = append(a.options, arg)
	if _, isBool := flag.(*cli.BoolFlag); isBool {
		return rest, nil
	}
	if err := a.refuseRepeated(flag, arg); err != nil {
		return nil, err
	}
	if bare, ok := a.program.BareValues[flag.Names()[0]]; ok && !hasValue {
		a.options[len(a.options)-1] += "=" + bare
		return rest, nil
	}
	if !hasValue {
		if len(rest) == 0 || a.isFlag(rest[0]) {
			return nil, Usagef("%s has no value, want one after it", arg)
		}
		value, rest = rest[0], rest[1:]
		a.options = append(a.options, value)
	}
	if err := a.movedError(arg + " " + value); err != nil {
		return nil, err
	}
	return rest, checkValue(flag, value)
}

// refuseRepeated refuses a flag that is given before, unless it may be repeated: the library
// would take the last value and say nothing.
func (a *parsedArgs) refuseRepeated(flag cli.Flag, arg string) error {
	if _, several := flag.(*cli.StringSliceFlag); several {
		return nil
	}
	if slices.Contains(a.flagsWithValue, flag) {
		return Usagef("%s is given twice, want it once", strings.SplitN(arg, "=", 2)[0])
	}
	a.flagsWithValue = append(a.flagsWithValue, flag)
	return nil
}

func (a *parsedArgs) findFlag(name string) cli.Flag {
	i := slices.IndexFunc(a.flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return a.flags[i]
}

func (a *parsedArgs) isFlag(arg string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return strings.HasPrefix(arg, "-") && name != "" && a.findFlag(name) != nil
}

// checkValue reports whether a flag can have a value.
func checkValue(flag cli.Flag, value string) error {
	var err error
	want := ""
	switch flag.(type) {
	case *cli.Float64Flag:
		want = "a number"
		var x float64
		if x, err = strconv.ParseFloat(value, 64); math.IsNaN(x) {
			err = strconv.ErrSyntax
		}
	case *cli.IntFlag:
		want = "a whole number"
		_, err = strconv.Atoi(value)
	case *cli.Uint64Flag:
		want = "a whole number, 0 or more"
		_, err = strconv.ParseUint(value, 10, 64)
	case *cli.DurationFlag:
		want = "a time such as 90s or 6h"
		_, err = time.ParseDuration(value)
	}
	if err != nil {
		return Usagef("--%s is %q, want %s", flag.Names()[0], value, want)
	}
	return nil
}

// movedError returns a usage error for an old spelling of a command or flag that another program has now,
// nil for others.
func (a *parsedArgs) movedError(word string) error {
	spelling := strings.Join(append(slices.Clone(a.path[1:]), word), " ")
	now, ok := a.program.Moved[spelling]
	if !ok {
		return nil
	}
	return &UsageError{
		Msg:  fmt.Sprintf("%s %s has moved", a.path[0], spelling),
		Hint: now,
	}
}

func (a *parsedArgs) unknownCommand(name string) error {
	if err := a.movedError(name); err != nil {
		return err
	}
	names := TextsOf(a.commands, func(c *cli.Command) string { return c.Name })
	hint := fmt.Sprintf("the commands of %s are %s", a.commandName(), strings.Join(names, ", "))
	if near := spelling.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s %s?", a.commandName(), near)
	}
	return &UsageError{Msg: fmt.Sprintf("unknown command %q", name), Hint: hint}
}

func (a *parsedArgs) unknownFlag(arg string) error {
	given, _, _ := strings.Cut(arg, "=")
	if err := a.movedError(given); err != nil {
		return err
	}
	names := TextsOf(a.flags, func(f cli.Flag) string { return f.Names()[0] })
	hint := ""
	switch near := spelling.Nearest(strings.TrimLeft(given, "-"), names); {
	case near != "":
		hint = fmt.Sprintf("did you mean --%s?", near)
	case len(a.commands) > 0:
		hint = fmt.Sprintf("flags come after the command; %s --help lists the commands", a.commandName())
	}
	return &UsageError{Msg: fmt.Sprintf("%s has no flag %s", a.commandName(), given), Hint: hint}
}

// BoolFlag returns a flag without a value.
func BoolFlag(name, usage string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Usage: usage, DisableDefaultText: true}
}

// Between has a flag refuse numbers below the least and above the most.
func Between(f *cli.IntFlag, least, most int) *cli.IntFlag {
	f.Action = func(_ *cli.Context, n int) error {
		switch {
		case n >= least && n <= most:
			return nil
		case most == math.MaxInt:
			return Usagef("--%s %d, want %d or more", f.Name, n, least)
		}
		return Usagef("--%s %d, want %d to %d", f.Name, n, least, most)
	}
	return f
}

// AtLeast has a flag refuse numbers below the least.
func AtLeast(f *cli.IntFlag, least int) *cli.IntFlag { return Between(f, least, math.MaxInt) }

// Refuse reports the first of the flags that is given, and why it may not be.
func Refuse(c *cli.Context, why string, flags ...string) error {
	for _, flag := range flags {
		if c.IsSet(flag) {
			return Usagef("--%s %s", flag, why)
		}
	}
	return nil
}

// RowsFlag returns how much of a table people see.
func RowsFlag(of string) *cli.IntFlag {
	return &cli.IntFlag{
		Name: "rows", Usage: "`COUNT` of " + of + " in the table; -1: all", Value: report.DefaultRows,
		Action: func(_ *cli.Context, rows int) error {
			if rows < -1 {
				return Usagef("--rows %d, want 0 or more, or -1 for all", rows)
			}
			return nil
		},
	}
}

// WorkersFlag returns the flag that says how many parts are done at a time.
func WorkersFlag() *cli.IntFlag {
	return AtLeast(&cli.IntFlag{
		Name: "jobs", Aliases: []string{"j"}, DefaultText: "as many as processors",
		Usage: "`COUNT` of runs at a time",
	}, 1)
}

// CheckArgs checks how many positional arguments there are, that at most one output
// format is asked for, and that standard input is read once.
func CheckArgs(c *cli.Context, least, most int, want string) error {
	if c.Bool("json") && c.Bool("csv") {
		return Usagef("--json and --csv are both given, want one")
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
		return Usagef("standard input is read twice, want one - only")
	}
	switch n := c.NArg(); {
	case n == 0 && least > 0:
		return Usagef("no arguments, want %s", want)
	case n == 1 && most == 0:
		return Usagef("an argument %q, want none", c.Args().First())
	case n < least || n > most:
		return &UsageError{Msg: fmt.Sprintf("%d arguments, want %s", n, want)}
	}
	return nil
}

// WithArgs returns a command that has so many positional arguments.
func WithArgs(
	least, most int, want string, command func(*Terminal, *cli.Context) error,
) func(*Terminal, *cli.Context) error {
	return func(t *Terminal, c *cli.Context) error {
		if err := CheckArgs(c, least, most, want); err != nil {
			return err
		}
		return command(t, c)
	}
}

// WithoutArgs returns a command without positional arguments.
func WithoutArgs(command func(*Terminal, *cli.Context) error) func(*Terminal, *cli.Context) error {
	return WithArgs(0, 0, "none", command)
}

// JSONFlag returns the flag for JSON.
func JSONFlag() *cli.BoolFlag { return BoolFlag("json", "print JSON") }

// CSVFlag returns the flag for CSV.
func CSVFlag() *cli.BoolFlag { return BoolFlag("csv", "print CSV") }

// OutputFlag returns the flag that names the file for the result.
func OutputFlag() *cli.StringFlag {
	return &cli.StringFlag{
		Name: "out", Aliases: []string{"output", "o"}, Usage: "`FILE` to write; -: standard output", Value: "-",
		Action: func(_ *cli.Context, name string) error {
			if slices.Contains([]string{asTable, asWide, asMarkdown, asLaTeX, "json", "csv", "html"}, name) {
				return Usagef("--out %s would write a file of that name; if that is meant, ./%[1]s", name)
			}
			return nil
		},
	}
}

// ParseNumbers reads numbers separated by commas; an empty text has none.
func ParseNumbers(flag, text string) ([]float64, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	all := make([]float64, len(parts))
	for i, part := range parts {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || math.IsNaN(x) {
			return nil, Usagef("--%s: %q, want numbers separated by commas", flag, part)
		}
		all[i] = x
	}
	return all, nil
}
