package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/jobarray"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/spelling"
)

// The library stops looking for flags at the first positional argument, answers
// unknown commands with help and success, and takes a flag for the value of
// another one. So the arguments are taken apart here and handed over in the
// order that it expects.

// parsedArgs is a command line taken apart.
type parsedArgs struct {
	path           []string // of commands, the program first
	commands       []*cli.Command
	flags          []cli.Flag // of the last command
	options        []string   // flags, each followed by its value
	flagsWithValue []cli.Flag // those of them that have a value
	positional     []string
}

func parseArgs(app *cli.App, args []string) (*parsedArgs, error) {
	a := &parsedArgs{path: []string{app.Name}, commands: app.Commands, flags: app.Flags}
	if len(args) == 0 {
		return a, nil
	}
	rest, err := a.takeCommands(args[1:])
	if err != nil {
		return a, err
	}
	return a, a.takeFlags(rest)
}

// libraryArgs is the command line as the library expects it.
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
	if bare, ok := bareValues[flag.Names()[0]]; ok && !hasValue {
		a.options[len(a.options)-1] += "=" + bare
		return rest, nil
	}
	if !hasValue {
		if len(rest) == 0 || a.isFlag(rest[0]) {
			return nil, usagef("%s has no value, want one after it", arg)
		}
		value, rest = rest[0], rest[1:]
		a.options = append(a.options, value)
	}
	return rest, checkValue(flag, value)
}

// bareValues are what flags stand for that may be given without a value. With one they
// are --flag=VALUE: the next word isn't theirs.
var bareValues = map[string]string{jobarray.ArrayFlag: "0"}

// refuseRepeated refuses a flag that is given before, unless it may be repeated: the library
// would take the last value and say nothing.
func (a *parsedArgs) refuseRepeated(flag cli.Flag, arg string) error {
	if _, several := flag.(*cli.StringSliceFlag); several {
		return nil
	}
	if slices.Contains(a.flagsWithValue, flag) {
		return usagef("%s is given twice, want it once", strings.SplitN(arg, "=", 2)[0])
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
		return usagef("--%s is %q, want %s", flag.Names()[0], value, want)
	}
	return nil
}

func (a *parsedArgs) unknownCommand(name string) error {
	names := textsOf(a.commands, func(c *cli.Command) string { return c.Name })
	hint := fmt.Sprintf("the commands of %s are %s", a.commandName(), strings.Join(names, ", "))
	if near := spelling.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s %s?", a.commandName(), near)
	}
	return &usageError{msg: fmt.Sprintf("unknown command %q", name), hint: hint}
}

func (a *parsedArgs) unknownFlag(arg string) error {
	given, _, _ := strings.Cut(arg, "=")
	names := textsOf(a.flags, func(f cli.Flag) string { return f.Names()[0] })
	hint := ""
	switch near := spelling.Nearest(strings.TrimLeft(given, "-"), names); {
	case near != "":
		hint = fmt.Sprintf("did you mean --%s?", near)
	case len(a.commands) > 0:
		hint = fmt.Sprintf("flags come after the command; %s --help lists the commands", a.commandName())
	}
	return &usageError{msg: fmt.Sprintf("%s has no flag %s", a.commandName(), given), hint: hint}
}

func boolFlag(name, usage string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Usage: usage, DisableDefaultText: true}
}

// between has a flag refuse numbers below the least and above the most.
func between(f *cli.IntFlag, least, most int) *cli.IntFlag {
	f.Action = func(_ *cli.Context, n int) error {
		switch {
		case n >= least && n <= most:
			return nil
		case most == math.MaxInt:
			return usagef("--%s %d, want %d or more", f.Name, n, least)
		}
		return usagef("--%s %d, want %d to %d", f.Name, n, least, most)
	}
	return f
}

func atLeast(f *cli.IntFlag, least int) *cli.IntFlag { return between(f, least, math.MaxInt) }

// refuse reports the first of the flags that is given, and why it may not be.
func refuse(c *cli.Context, why string, flags ...string) error {
	for _, flag := range flags {
		if c.IsSet(flag) {
			return usagef("--%s %s", flag, why)
		}
	}
	return nil
}

// rowsFlag is how much of a table people see.
func rowsFlag(of string) *cli.IntFlag {
	return &cli.IntFlag{
		Name: "rows", Usage: "`COUNT` of " + of + " in the table; -1: all", Value: report.DefaultRows,
		Action: func(_ *cli.Context, rows int) error {
			if rows < 1 && rows != -1 {
				return usagef("--rows %d, want 1 or more, or -1 for all", rows)
			}
			return nil
		},
	}
}

// searchTimeFlag is how long a search may take that is always bounded.
func searchTimeFlag(usage string, usual time.Duration) *cli.DurationFlag {
	return &cli.DurationFlag{
		Name: "time-limit", Usage: usage, Value: usual,
		Action: func(_ *cli.Context, limit time.Duration) error {
			if limit <= 0 {
				return usagef("--time-limit %v, want more than 0", limit)
			}
			return nil
		},
	}
}

// defaultSlot is how long a slot of a log lasts.
const defaultSlot = time.Minute

func workersFlag() *cli.IntFlag {
	return atLeast(&cli.IntFlag{
		Name: "jobs", Aliases: []string{"j"}, DefaultText: "as many as processors",
		Usage: "`COUNT` of runs at a time",
	}, 1)
}

// slotFlag is how a log of utilisation is cut into slots.
func slotFlag(usage string) *cli.DurationFlag {
	return &cli.DurationFlag{
		Name: "slot", Usage: usage, Value: defaultSlot,
		Action: func(_ *cli.Context, slot time.Duration) error {
			if slot < time.Millisecond {
				return usagef("--slot %v, want 1ms or more", slot)
			}
			return nil
		},
	}
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

// takes is a command that has so many positional arguments.
func takes(
	least, most int, want string, command func(*terminal, *cli.Context) error,
) func(*terminal, *cli.Context) error {
	return func(t *terminal, c *cli.Context) error {
		if err := checkArgs(c, least, most, want); err != nil {
			return err
		}
		return command(t, c)
	}
}

// takesNone is a command without positional arguments.
func takesNone(command func(*terminal, *cli.Context) error) func(*terminal, *cli.Context) error {
	return takes(0, 0, "none", command)
}

func jsonFlag() *cli.BoolFlag { return boolFlag("json", "print JSON") }

func csvFlag() *cli.BoolFlag { return boolFlag("csv", "print CSV") }

func seedFlag() *cli.Uint64Flag {
	return &cli.Uint64Flag{
		Name: "seed", Usage: "`NUMBER` from which the random ones follow", Value: planner.DefaultSeed,
	}
}

func outputFlag() *cli.StringFlag {
	return &cli.StringFlag{
		Name: "output", Aliases: []string{"o"}, Usage: "`FILE` to write; -: standard output", Value: "-",
	}
}

func parseNumbers(flag, text string) ([]float64, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	all := make([]float64, len(parts))
	for i, part := range parts {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || math.IsNaN(x) {
			return nil, usagef("--%s: %q, want numbers separated by commas", flag, part)
		}
		all[i] = x
	}
	return all, nil
}

func parsePolicy(text string, params policy.Params) (*planner.Policy, error) {
	p, err := policy.Parse(text, params)
	if err != nil {
		return nil, &usageError{msg: err.Error(), hint: "epplan compare --help lists the policies"}
	}
	return p, nil
}

// contentionFlag is the file with a fitted curve, and what counts without it.
func contentionFlag(otherwise string) cli.Flag {
	return &cli.StringFlag{
		Name: "contention", DefaultText: otherwise,
		Usage: "`FILE` with what sharing costs, as epplan model contention writes it",
	}
}

func slowdownFlag(usage string) cli.Flag {
	return &cli.Float64Flag{Name: "slowdown", Usage: usage, DefaultText: "as slow as it likes"}
}

// slowdownOf is the flag's part, or without it as slow as it likes.
func slowdownOf(c *cli.Context) (float64, error) {
	part := c.Float64("slowdown")
	switch {
	case !c.IsSet("slowdown"):
		return math.Inf(1), nil
	case !(part >= 0):
		return 0, usagef("--slowdown %v, want 0 or more, such as 0.05", part)
	}
	return part, nil
}
