package jobarray

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/sweep"
	"github.com/epplan/epplan/slurm/hooks"
)

// ArrayFlag is the flag that has a job array do the work; 0 tasks are as many as suit.
const ArrayFlag = "slurm-array"

const (
	sbatchFlag  = "sbatch-args"
	programFlag = "slurm-epplab"
	dryRunFlag  = "dry-run"
)

// Flags have a command's work done by a job array.
func Flags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{
			Name: ArrayFlag, DefaultText: "as many as there are parts, up to 100",
			Usage: "have Slurm do the work in a job array; `[=N]`: in N tasks at most",
		},
		&cli.StringFlag{
			Name: sweep.FolderFlag, DefaultText: "epplab-sweep-… in the working directory",
			Usage: "of --slurm-array: `FOLDER` that all nodes share, for what is done already",
		},
		&cli.StringSliceFlag{
			Name: sbatchFlag, Usage: "of --slurm-array: further `OPTIONS` of sbatch, such as " +
				"'--partition=cpu --time=2:00:00'; repeat it for more",
		},
		&cli.StringFlag{
			Name: programFlag, DefaultText: "this program's own path",
			Usage: "of --slurm-array: `PATH` of epplab on the nodes",
		},
		terminal.DryRunFlag(),
		&cli.StringFlag{Name: sweep.TaskFlag, Hidden: true},
	}
}

// FlagNames returns the names of Flags.
func FlagNames() []string {
	flags := Flags()
	names := make([]string, len(flags))
	for i, f := range flags {
		names[i] = f.Names()[0]
	}
	return names
}

// IsSet reports whether a command's work is done in parts that are kept.
func IsSet(c *cli.Context) bool { return c.IsSet(ArrayFlag) || c.IsSet(sweep.TaskFlag) }

// Error is what keeps a command from having its work done.
type Error struct {
	Err   error
	Hint  string
	Usage bool // the command line is wrong
}

// Error returns the message.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Usage: true}
}

// Check says what is wrong with the flags; it is an *Error.
func Check(c *cli.Context) error {
	if n := c.Int(ArrayFlag); n < 0 {
		return usagef("--%s %d, want 0 or more", ArrayFlag, n)
	}
	if !IsSet(c) {
		for _, name := range FlagNames() {
			if c.IsSet(name) {
				return usagef("--%s is of --%s, want that too", name, ArrayFlag)
			}
		}
	}
	for _, word := range sbatchOptions(c) {
		if name, _, _ := strings.Cut(word, "="); name == "--array" || strings.HasPrefix(word, "-a") {
			return usagef("--%s has %s, want none: --%s=N says how many tasks there are", sbatchFlag, word,
				ArrayFlag)
		}
	}
	return nil
}

func sbatchOptions(c *cli.Context) []string {
	texts := c.StringSlice(sbatchFlag)
	words := make([]string, 0, len(texts))
	for _, text := range texts {
		words = append(words, hooks.ShellWords(text)...)
	}
	return words
}

// presentation are flags that say how results are shown, or how many parts are done at a time, and
// nothing about the parts themselves.
var presentation = []string{"json", "csv", "html", "svg", "curve", "jobs"}

// options returns a command and its flags, as one may type them, that say what its parts are.
func options(c *cli.Context) []string {
	left := append(FlagNames(), presentation...)
	words := []string{c.Command.Name}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || slices.Contains(left, name) {
			continue
		}
		switch f.(type) {
		case *cli.BoolFlag:
			words = append(words, fmt.Sprintf("--%s=%t", name, c.Bool(name)))
		case *cli.StringSliceFlag:
			for _, value := range c.StringSlice(name) {
				words = append(words, "--"+name+"="+value)
			}
		default:
			words = append(words, fmt.Sprintf("--%s=%v", name, c.Value(name)))
		}
	}
	return words
}
