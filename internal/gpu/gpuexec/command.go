package gpuexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/statedir"
	"github.com/epplan/epplan/slurm"
)

// maxOutput is what a command may print: a table of clocks has some ten thousand lines at most.
const maxOutput = 1 << 20

// killWait is how long a command that was ended may hold its output open.
const killWait = 200 * time.Millisecond

// run runs a command and returns what it printed. The words' places are filled by the values.
func (l *Library) run(words []string, values map[string]string) ([]byte, error) {
	filled := make([]string, len(words))
	for i, word := range words {
		for name, value := range values {
			word = strings.ReplaceAll(word, "{"+name+"}", value)
		}
		filled[i] = word
	}
	if err := checkProgram(filled[0]); err != nil {
		return nil, fmt.Errorf("%w: %w", gpu.ErrNotSupported, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.commands.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filled[0], filled[1:]...) //nolint:gosec // the administrator's commands
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killWait
	out, said := &bounded{most: maxOutput, full: cancel}, &bounded{most: maxOutput, full: cancel}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	switch {
	case out.over || said.over:
		err = fmt.Errorf("it printed more than %d bytes", maxOutput)
	case ctx.Err() != nil:
		err = fmt.Errorf("it took longer than %s", l.commands.Timeout)
	case err != nil && said.kept.Len() > 0:
		first, _, _ := strings.Cut(strings.TrimSpace(said.kept.String()), "\n")
		err = fmt.Errorf("%w: %s", err, slurm.Printable(first, 200))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", slurm.Printable(strings.Join(filled, " "), 300), err)
	}
	return out.kept.Bytes(), nil
}

// checkProgram says what keeps a program from being run: that it isn't there, or that
// somebody else may have put it there.
func checkProgram(path string) error {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return statedir.CheckProgram(file)
}

// bounded keeps what is written up to a bound.
type bounded struct {
	kept bytes.Buffer
	most int
	full func()
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > b.most {
		b.over = true
		b.full()
		return 0, errors.New("too much")
	}
	return b.kept.Write(p)
}

// row is a line of what a command printed, by its columns.
type row struct {
	command string
	line    int
	cells   map[string]string
}

// table runs a command that prints a table.
func (l *Library) table(t *config.GPUTable, values map[string]string) ([]row, error) {
	out, err := l.run(t.Command, values)
	if err != nil {
		return nil, err
	}
	return rowsOf(t, out)
}

// rowsOf reads a table. Empty lines are none.
func rowsOf(t *config.GPUTable, out []byte) ([]row, error) {
	var rows []row
	number := 0
	for line := range strings.Lines(string(out)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		parts := strings.Split(line, t.Separator)
		if len(parts) != len(t.Columns) {
			return nil, fmt.Errorf("%s: line %d: %q has %d columns, want %d: %s", t.Command[0], number,
				slurm.Printable(line, 120), len(parts), len(t.Columns), strings.Join(t.Columns, ", "))
		}
		r := row{command: t.Command[0], line: number, cells: make(map[string]string, len(parts))}
		for i, column := range t.Columns {
			r.cells[column] = strings.TrimSpace(parts[i])
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// isMissing reports whether a cell says that there is no value, as nvidia-smi and rocm-smi
// write it.
func isMissing(cell string) bool {
	switch strings.ToLower(strings.Trim(cell, "[]")) {
	case "", "n/a", "not supported", "none", "-":
		return true
	}
	return false
}

// number is a cell that is a number, not negative; NaN where there is no value, or no such column.
func (r *row) number(column string) (float64, error) {
	cell, ok := r.cells[column]
	if !ok || isMissing(cell) {
		return math.NaN(), nil
	}
	n, err := strconv.ParseFloat(cell, 64)
	if err != nil || !(n >= 0) || math.IsInf(n, 0) {
		return 0, r.fault(column, "want a number, or N/A")
	}
	return n, nil
}

// fault is an error about a cell.
func (r *row) fault(column, want string) error {
	return fmt.Errorf("%s: line %d: %s is %q, %s", r.command, r.line, column,
		slurm.Printable(r.cells[column], 80), want)
}
