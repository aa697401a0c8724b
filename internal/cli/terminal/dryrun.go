package terminal

import (
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/slurm"
)

const flagName = "dry-run"

// DryRunFlag is that of every command that touches Slurm, a GPU, or what epd knows.
func DryRunFlag() cli.Flag {
	return &cli.BoolFlag{
		Name: flagName, Usage: "say what would be done, and do nothing", DisableDefaultText: true,
	}
}

// IsDryRun reports whether the flag is given.
func IsDryRun(c *cli.Context) bool { return c.Bool(flagName) }

// maxStepText is how long a line may be.
const maxStepText = 1000

// Announce says under --dry-run on the program's standard output what a command is
// about to do, a line each. Where it returns true nothing is to be done.
func Announce(c *cli.Context, steps ...string) (stop bool, err error) {
	if !IsDryRun(c) {
		return false, nil
	}
	var b strings.Builder
	for _, step := range steps {
		b.WriteString("would " + slurm.Printable(step, maxStepText) + "\n")
	}
	if len(steps) == 0 {
		b.WriteString("would do nothing\n")
	}
	_, err = io.WriteString(c.App.Writer, b.String())
	return true, err
}
