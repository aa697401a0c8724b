package main

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

// Results go to stdout, everything else to stderr: errors as "error: …"
// followed by "hint: …" where there is one, warnings as "warning: …", and
// progress only where stderr is a terminal. Colours need a terminal, too, and no
// NO_COLOR in the environment.
type terminal struct {
	program      *program
	stdin        io.Reader
	stdout       io.Writer
	stderr       io.Writer
	progress     bool
	now          func() time.Time
	color        bool
	keepsPartial atomic.Bool // an interrupted command ends by itself, with what it has
	everyWarning bool        // warnings are printed one by one, not by kind
	args         []string    // as they were given, the program first

	outputs []outputFile  // files that the command is to write
	inputs  []fs.FileInfo // regular files that it has begun to read
	sources []string      // all that it has begun to read, as it was named
}

// The exit statuses.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInfeasible  = 3
	exitUnreachable = 4 // epd doesn't answer
	exitInterrupted = 130
)

// usageError is a mistake on the command line.
type usageError struct {
	msg  string
	hint string
}

func (e *usageError) Error() string { return e.msg }

// usagef is a usage error without a hint.
func usagef(format string, args ...any) error { return &usageError{msg: fmt.Sprintf(format, args...)} }

// hintedError is a failure with advice.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

func withHint(err error, hint string) error { return &hintedError{err, hint} }

// infeasibleError says that a plan was printed that doesn't do all that it was asked for; what
// is wrong is part of the output.
type infeasibleError struct{ msg string }

func (e *infeasibleError) Error() string { return e.msg }

// notInTime is the error of a plan that can't plan jobs, ends some late, or slows some down
// too much; nil for one that does what it was asked for.
func notInTime(unplanned, late, slowed int) error {
	parts := textsOf(present(
		counted{unplanned, "can't be planned"}, counted{late, "end late"},
		counted{slowed, "slowed down more than tolerated"},
	), func(part counted) string { return fmt.Sprintf("%d %s", part.n, part.what) })
	if len(parts) == 0 {
		return nil
	}
	return &infeasibleError{"not every job is done in time: " + strings.Join(parts, ", ")}
}

// statusError ends the program as another one that it started did.
type statusError struct{ code int }

func (e *statusError) Error() string { return "exit status " + strconv.Itoa(e.code) }

// finish prints the error, if there is one, and tells the exit status.
func (t *terminal) finish(ctx context.Context, err error) int {
	var usage *usageError
	var undone *infeasibleError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &undone):
		t.message("warning", err.Error())
		return exitInfeasible
	case ctx.Err() != nil:
		t.message("error", "interrupted")
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE):
		return exitFailed
	case errors.As(err, &usage):
		t.message("error", usage.msg)
		t.message("hint", usage.hint)
		return exitUsage
	}
	if passed, ok := errors.AsType[*statusError](err); ok {
		return passed.code
	}
	t.message("error", err.Error())
	if hinted, ok := errors.AsType[*hintedError](err); ok {
		t.message("hint", hinted.hint)
	} else if wrong, ok := errors.AsType[*config.UnknownError](err); ok && wrong.UnguessedGPU {
		t.message("hint", "epplan gpus lists them; another board: "+
			"nvidia-smi -q -x | epplan gpus add - --out gpus.toml")
	}
	switch {
	case errors.Is(err, dvfsmodel.ErrInfeasible):
		return exitInfeasible
	case errors.Is(err, epdapi.ErrUnreachable):
		return exitUnreachable
	}
	return exitFailed
}

// runs is the action of a command that works at this terminal.
func (t *terminal) runs(command func(*terminal, *cli.Context) error) cli.ActionFunc {
	return func(c *cli.Context) error { return command(t, c) }
}

// message prints lines on stderr that no input can use to control the
// terminal. Each says what it is, unless it is indented, which continues the
// line before.
func (t *terminal) message(kind, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, " ") {
			line = kind + ": " + line
		}
		_, _ = fmt.Fprintln(t.stderr, queue.Printable(line))
	}
}

func (t *terminal) notef(format string, args ...any) {
	t.message("note", fmt.Sprintf(format, args...))
}

func (t *terminal) warningf(format string, args ...any) {
	t.message("warning", fmt.Sprintf(format, args...))
}

// warn prints warnings: one line for each kind, or all of them where the command's flag says so.
func (t *terminal) warn(warnings []error) {
	for _, line := range queue.WarningLines(warnings, t.everyWarning) {
		t.message("warning", line)
	}
}

// print writes results, buffered; nothing is on stdout when f fails early.
func (t *terminal) print(f func(io.Writer) error) error {
	w := bufio.NewWriterSize(t.stdout, 1<<16)
	if err := f(w); err != nil {
		return err
	}
	return w.Flush()
}

// textOptions is how tables look; negative rows are all of them.
func (t *terminal) textOptions(rows int) *report.TextOptions {
	return &report.TextOptions{Rows: rows, Color: t.color}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// printJSON prints a value as JSON in which no text can act on a terminal.
func (t *terminal) printJSON(v any) error {
	return t.print(func(w io.Writer) error { return report.WriteJSON(w, v, "  ") })
}

// printAnswer prints a value as JSON where --json asks for that, else in words.
func printAnswer[T any](t *terminal, c *cli.Context, value T, text func(T) string) error {
	if c.Bool("json") {
		return t.printJSON(value)
	}
	return t.printText(text(value))
}

func (t *terminal) printText(text string) error {
	return t.print(func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// printTable writes a table as the flags ask.
func (t *terminal) printTable(c *cli.Context, table *report.Table) error {
	return t.print(func(w io.Writer) error {
		switch {
		case c.Bool("json"):
			return table.WriteJSON(w)
		case c.Bool("csv"):
			return table.WriteCSV(w)
		}
		return table.WriteText(w, t.textOptions(-1))
	})
}

// plural is a number with what it counts.
var plural = report.Plural[int]

// counted is how many there are of something.
type counted struct {
	n    int
	what string
}

// present are those of which there are any.
func present(all ...counted) []counted {
	return slices.DeleteFunc(all, func(c counted) bool { return c.n <= 0 })
}

// textsOf is a text for each of a list.
func textsOf[T any](list []T, text func(T) string) []string {
	all := make([]string, len(list))
	for i, one := range list {
		all[i] = text(one)
	}
	return all
}

// printable is somebody's text on a part of a line.
func printable(text string) string { return slurm.Printable(text, 200) }

// dateTime is a time on the clock of whoever reads it; a dash for none.
func dateTime(at time.Time) string {
	if at.IsZero() {
		return "–"
	}
	return at.Local().Format(time.DateTime)
}

// writeRow writes a line with a name before it.
var writeRow = report.WriteRow

// orDash is somebody's text, or a dash where there is none.
func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return printable(text)
}

// outputFile is a file that a command was told to write.
type outputFile struct{ flag, name string }

// energyText is an energy in kilowatt-hours, or in joules if it is small.
var energyText = report.EnergyText

// trimZeros is a number without zeros at its end.
func trimZeros(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// fixed is a number with so many decimals and never a minus before zeros.
func fixed(x float64, decimals int) string {
	half := 0.5 * math.Pow(10, -float64(decimals))
	if math.Abs(x) < half {
		x = 0
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

func finiteOrNil(x float64) *float64 {
	if math.IsInf(x, 0) {
		return nil
	}
	return &x
}
