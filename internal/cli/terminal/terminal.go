package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// Terminal is where a program runs. Results go to stdout, everything else to stderr: errors as "error: …"
// followed by "hint: …" where there is one, warnings as "warning: …", and
// progress only where stderr is a terminal. Colours need a terminal, too, and no
// NO_COLOR in the environment.
type Terminal struct {
	Program      *Program
	Stdin        io.Reader
	Stdout       io.Writer
	Stderr       io.Writer
	Progress     bool
	Now          func() time.Time
	color, quiet bool
	format       string      // asWide, asMarkdown or asLaTeX; others: as it is
	KeepsPartial atomic.Bool // an interrupted command ends by itself, with what it has
	EveryWarning bool        // warnings are printed one by one, not by kind
	args         []string    // as they were given, the program first

	outputs []outputFile  // files that the command is to write
	inputs  []fs.FileInfo // regular files that it has begun to read
	Sources []string      // all that it has begun to read, as it was named
}

// The exit statuses.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInfeasible  = 3
	ExitUnreachable = 4 // epd doesn't answer
	ExitInterrupted = 130
)

// UsageError is a mistake on the command line.
type UsageError struct {
	Msg  string
	Hint string
}

// Error returns the message.
func (e *UsageError) Error() string { return e.Msg }

// Usagef is a usage error without a hint.
func Usagef(format string, args ...any) error { return &UsageError{Msg: fmt.Sprintf(format, args...)} }

// hintedError is a failure with advice.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

// WithHint returns an error with advice, which is printed below it.
func WithHint(err error, hint string) error { return &hintedError{err, hint} }

// InfeasibleError says that a plan was printed that doesn't do all that it was asked for; what
// is wrong is part of the output.
type InfeasibleError struct{ Msg string }

// Error returns the message.
func (e *InfeasibleError) Error() string { return e.Msg }

// NotInTime is the error of a plan that can't plan jobs, ends some late, or slows some down
// too much; nil for one that does what it was asked for.
func NotInTime(unplanned, late, slowed int) error {
	parts := TextsOf(Present(
		Counted{unplanned, "can't be planned"}, Counted{late, "end late"},
		Counted{slowed, "slowed down more than tolerated"},
	), func(part Counted) string { return fmt.Sprintf("%d %s", part.N, part.What) })
	if len(parts) == 0 {
		return nil
	}
	return &InfeasibleError{"not every job is done in time: " + strings.Join(parts, ", ")}
}

// StatusError ends the program as another one that it started did.
type StatusError struct{ Code int }

// Error returns the status in words.
func (e *StatusError) Error() string { return "exit status " + strconv.Itoa(e.Code) }

// Finish prints the error, if there is one, and tells the exit status.
func (t *Terminal) Finish(ctx context.Context, err error) int {
	var usage *UsageError
	var undone *InfeasibleError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &undone):
		t.Message("warning", err.Error())
		return ExitInfeasible
	case ctx.Err() != nil:
		t.Message("error", "interrupted")
		return ExitInterrupted
	case errors.Is(err, syscall.EPIPE):
		return ExitFailed
	case errors.As(err, &usage):
		t.Message("error", usage.Msg)
		t.Message("hint", usage.Hint)
		return ExitUsage
	}
	if passed, ok := errors.AsType[*StatusError](err); ok {
		return passed.Code
	}
	t.Message("error", err.Error())
	if hinted, ok := errors.AsType[*hintedError](err); ok {
		t.Message("hint", hinted.hint)
	} else if wrong, ok := errors.AsType[*config.UnknownError](err); ok && wrong.UnguessedGPU {
		t.Message("hint", "epplan gpus lists them; another board: "+
			"nvidia-smi -q -x | epplan gpus add - --out gpus.toml")
	}
	switch {
	case errors.Is(err, dvfsmodel.ErrInfeasible):
		return ExitInfeasible
	case errors.Is(err, epdapi.ErrUnreachable):
		return ExitUnreachable
	}
	return ExitFailed
}

// Runs returns the action of a command that works at this terminal.
func (t *Terminal) Runs(command func(*Terminal, *cli.Context) error) cli.ActionFunc {
	return func(c *cli.Context) error { return command(t, c) }
}

// Message prints lines on stderr that no input can use to control the
// terminal. Each says what it is, unless it is indented, which continues the
// line before. With --quiet there are no notes.
func (t *Terminal) Message(kind, text string) {
	if t.quiet && kind == "note" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, " ") {
			line = kind + ": " + line
		}
		_, _ = fmt.Fprintln(t.Stderr, queue.Printable(line))
	}
}

// Notef prints a note.
func (t *Terminal) Notef(format string, args ...any) {
	t.Message("note", fmt.Sprintf(format, args...))
}

// Warningf prints a warning.
func (t *Terminal) Warningf(format string, args ...any) {
	t.Message("warning", fmt.Sprintf(format, args...))
}

// Warn prints warnings: one line for each kind, or all of them where the command's flag says so.
func (t *Terminal) Warn(warnings []error) {
	for _, line := range queue.WarningLines(warnings, t.EveryWarning) {
		t.Message("warning", line)
	}
}

// Print writes results, buffered; nothing is on stdout when f fails early.
func (t *Terminal) Print(f func(io.Writer) error) error {
	w := bufio.NewWriterSize(t.Stdout, 1<<16)
	markup := markupOf(t.format)
	if markup == report.NoMarkup {
		if err := f(w); err != nil {
			return err
		}
		return w.Flush()
	}
	var text strings.Builder
	if err := f(&text); err != nil {
		return err
	}
	if markup == report.LaTeX {
		commentLines(w, text.String())
	} else {
		markdownLines(w, text.String())
	}
	return w.Flush()
}

// TextOptions returns how tables look; negative rows are all of them, 0 is none.
func (t *Terminal) TextOptions(rows int) *report.TextOptions {
	if rows == 0 {
		rows = report.NoRows
	}
	markup := markupOf(t.format)
	return &report.TextOptions{
		Rows: rows, Color: t.color && markup == report.NoMarkup, Width: t.width(), Wide: t.format == asWide,
		Markup: markup,
	}
}

func markupOf(format string) report.Markup {
	return map[string]report.Markup{asMarkdown: report.Markdown, asLaTeX: report.LaTeX}[format]
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// PrintJSON prints a value as JSON in which no text can act on a terminal.
func (t *Terminal) PrintJSON(v any) error {
	return t.Print(func(w io.Writer) error { return report.WriteJSON(w, v, "  ") })
}

// PrintAnswer prints a value as JSON where --json asks for that, else in words.
func PrintAnswer[T any](t *Terminal, c *cli.Context, value T, text func(T) string) error {
	if c.Bool("json") {
		return t.PrintJSON(value)
	}
	return t.PrintText(text(value))
}

// PrintText writes a result.
func (t *Terminal) PrintText(text string) error { return t.WriteText("-", text) }

// PrintTable writes a table as the flags ask.
func (t *Terminal) PrintTable(c *cli.Context, table *report.Table) error {
	return t.Print(func(w io.Writer) error {
		switch {
		case c.Bool("json"):
			return table.WriteJSON(w)
		case c.Bool("csv"):
			return table.WriteCSV(w)
		}
		return table.WriteText(w, t.TextOptions(-1))
	})
}

// Counted is how many there are of something.
type Counted struct {
	N    int
	What string
}

// Count returns a number of something.
func Count(n int, what string) Counted { return Counted{n, what} }

// Present returns those of which there are any.
func Present(all ...Counted) []Counted {
	return slices.DeleteFunc(all, func(c Counted) bool { return c.N <= 0 })
}

// TextsOf returns a text for each of a list.
func TextsOf[T any](list []T, text func(T) string) []string {
	all := make([]string, len(list))
	for i, one := range list {
		all[i] = text(one)
	}
	return all
}

// Printable is somebody's text on a part of a line.
func Printable(text string) string { return slurm.Printable(text, 200) }

// OrDash is somebody's text, or a dash where there is none.
func OrDash(text string) string {
	if text == "" {
		return "–"
	}
	return Printable(text)
}

// outputFile is a file that a command was told to write.
type outputFile struct{ flag, name string }

// TrimZeros returns a number without zeros at its end.
func TrimZeros(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// Fixed returns a number with so many decimals and never a minus before zeros.
func Fixed(x float64, decimals int) string {
	half := 0.5 * math.Pow(10, -float64(decimals))
	if math.Abs(x) < half {
		x = 0
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// FiniteOrNil returns nil for an infinite number.
func FiniteOrNil(x float64) *float64 {
	if math.IsInf(x, 0) {
		return nil
	}
	return &x
}
