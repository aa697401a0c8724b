package terminal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/slurm/hooks"
)

// HTMLFlag returns the flag for a report in HTML.
func HTMLFlag() *cli.StringFlag {
	return &cli.StringFlag{
		Name: "html", Usage: "write a report to `FILE`, to be opened in a browser; - is standard output, " +
			"in place of the table",
	}
}

// CheckHTML refuses a report that has no name, that would be written over
// another file of the command's, or mixed with other output. Those files are named by flags.
func CheckHTML(c *cli.Context, others ...string) error {
	name := c.String("html")
	switch {
	case !c.IsSet("html"):
		return nil
	case name == "":
		return Usagef("--html is empty, want the name of a file")
	}
	if name == "-" {
		for _, format := range []string{"json", "csv"} {
			if c.Bool(format) {
				return Usagef("--html - and --%s are both given, want one of them on standard output", format)
			}
		}
	}
	if _, err := os.Stat(filepath.Dir(name)); errors.Is(err, fs.ErrNotExist) { // before what may take minutes
		return writeError(name, err)
	}
	for _, flag := range others {
		if IsSameTarget(name, c.String(flag)) {
			return Usagef("%s is to be written twice, want names of their own for --html and --%s", name,
				flag)
		}
	}
	return nil
}

// WithHTML writes the report, if one is wanted, and then what else is printed,
// unless the report is what goes to standard output.
func (t *Terminal) WithHTML(c *cli.Context, report func(io.Writer) error, rest func() error) error {
	name := c.String("html")
	if name == "" {
		return rest()
	}
	if err := t.Write(name, report); err != nil || name == "-" {
		return err
	}
	return rest()
}

// Provenance says by which command a report was made, and of what.
func (t *Terminal) Provenance(facts ...page.Fact) page.Facts {
	return append(facts, page.Fact{Name: "Command", Text: t.commandLine()},
		page.Fact{Name: "Program", Text: t.Program.Name + " " + t.Program.Version})
}

func (t *Terminal) commandLine() string {
	words := slices.Clone(t.args)
	for i, word := range words {
		words[i] = hooks.ShellQuote(word)
	}
	words[0] = t.Program.Name
	return strings.Join(words, " ")
}
