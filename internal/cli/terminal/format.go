package terminal

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/epplan/epplan/internal/cli/manual"
	"github.com/epplan/epplan/internal/report"
)

// Formats of a result for people, as --output names them.
const (
	asTable    = "table"
	asWide     = "wide"
	asMarkdown = "md"
	asLaTeX    = "latex"
)

// addCommonFlags gives a command, and those below it, the flags that all have: how much it says, and if it
// prints a result also how and where to.
func (t *Terminal) addCommonFlags(c *cli.Command) {
	for _, sub := range c.Subcommands {
		t.addCommonFlags(sub)
	}
	if c.Action == nil || strings.Contains(c.ArgsUsage, "--") { // what follows has flags of its own
		return
	}
	names := make([]string, 0, 2*len(c.Flags))
	for _, f := range c.Flags {
		names = append(names, f.Names()...)
	}
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Hidden: true},
		&cli.StringFlag{Name: "color", Usage: "`WHEN`", Value: "auto", Hidden: true},
	}
	var formats []string
	if slices.Contains(names, "json") && !slices.Contains(names, "output") {
		formats = []string{asTable, asWide, "json"}
		for _, more := range []string{"csv", "html"} {
			if slices.Contains(names, more) {
				formats = append(formats, more)
			}
		}
		formats = append(formats, asMarkdown, asLaTeX)
		flags = append(flags, &cli.StringFlag{
			Name: "output", Aliases: []string{"o"}, DefaultText: asTable,
			Usage: "print as `FORMAT`: " + orList(formats),
		})
		if !slices.Contains(names, "out") {
			flags = append(flags,
				&cli.StringFlag{Name: "out", Usage: manual.ResultFile, DefaultText: "standard output"})
			action := c.Action
			c.Action = func(ctx *cli.Context) error { return t.runIntoFile(ctx.String("out"), action, ctx) }
		}
	}
	c.Flags = slices.Concat(c.Flags, flags)
	c.Before = func(ctx *cli.Context) error {
		t.outputs = namedOutputs(ctx, c.Flags)
		return cmp.Or(t.setOutputStyle(ctx), t.setFormat(ctx, formats))
	}
}

// orList returns words as a list that ends with "or".
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// setOutputStyle sets how much is said, and in which colours.
func (t *Terminal) setOutputStyle(c *cli.Context) error {
	if t.quiet = c.Bool("quiet"); t.quiet {
		t.Progress = false
	}
	switch when := c.String("color"); when {
	case "always", "never":
		t.color = when == "always"
	case "auto":
		t.color = t.color && !toFile(c.String("out"))
	default:
		return Usagef("--color %q, want auto, always or never", when)
	}
	return nil
}

func toFile(name string) bool { return name != "" && name != "-" }

// setFormat sets the flag of the format that --output names, or how a result for people looks.
func (t *Terminal) setFormat(c *cli.Context, formats []string) error {
	if !c.IsSet("output") || formats == nil {
		return nil
	}
	format := c.String("output")
	if !slices.Contains(formats, format) {
		return Usagef("--output %q, want %s", format, orList(formats))
	}
	for _, other := range []string{"json", "csv", "html"} {
		if c.IsSet(other) && (other != "html" || format == "html" || c.String("html") == "-") {
			return Usagef("--output and --%s are both given, want one", other)
		}
	}
	switch t.format = format; format {
	case "json", "csv":
		return c.Set(format, "true")
	case "html":
		return c.Set("html", "-")
	}
	return nil
}

// runIntoFile runs a command and puts what it prints into a file, also if it then fails: a plan with jobs
// that end late is printed. Nothing printed leaves the file as it was.
func (t *Terminal) runIntoFile(name string, command cli.ActionFunc, c *cli.Context) error {
	if !toFile(name) {
		return command(c)
	}
	var printed bytes.Buffer
	stdout := t.Stdout
	t.Stdout = &printed
	err := command(c)
	t.Stdout = stdout
	if err != nil && printed.Len() == 0 {
		return err
	}
	return errors.Join(t.WriteText(name, printed.String()), err)
}

// width returns how many columns a table may have: what COLUMNS says, or the terminal has; 0: any number.
func (t *Terminal) width() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := t.Stdout.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			return int(size.Col)
		}
	}
	return 0
}

// commentLines copies text in which tables are in LaTeX, and makes other lines comments.
func commentLines(w *bufio.Writer, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		row, ok := strings.CutPrefix(line, report.MarkupRow)
		if !ok && line != "" {
			row = "% " + strings.ReplaceAll(line, "\r", " ") // which ends a line, and with it the comment
		}
		report.WriteLines(w, row)
	}
}

// markdownLines copies text in which tables are in Markdown. Facts become a list, and nothing in the text
// acts on the page.
func markdownLines(w *bufio.Writer, text string) {
	listed := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if row, ok := strings.CutPrefix(line, report.MarkupRow); ok {
			if listed && row != "" {
				report.WriteLines(w, "")
			}
			listed = false
			report.WriteLines(w, row)
			continue
		}
		name, fact, isFact := strings.Cut(line, "  ")
		switch fact = strings.TrimSpace(fact); {
		case line == "":
		case isFact && name != "" && fact != "":
			listed = true
			report.WriteLines(w, "- **"+report.EscapeMarkdown(name)+"** "+report.EscapeMarkdown(fact))
		case listed && line[0] == ' ':
			report.WriteLines(w, "  "+report.EscapeMarkdown(strings.TrimSpace(line)))
		default:
			if listed {
				report.WriteLines(w, "")
			}
			listed = false
			report.WriteLines(w, report.EscapeMarkdown(strings.TrimSpace(line)), "")
		}
	}
	if listed {
		report.WriteLines(w, "")
	}
}
