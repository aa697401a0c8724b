package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Runner runs one of Slurm's commands and gives what it printed. A command that
// fails is an error that wraps *CommandError; its output comes along.
type Runner interface {
	Run(ctx context.Context, name string, args ...string) ([]byte, error)
}

// RunnerFunc is a function as a Runner.
type RunnerFunc func(ctx context.Context, name string, args ...string) ([]byte, error)

// Run calls the function.
func (f RunnerFunc) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	return f(ctx, name, args...)
}

// CommandError is a command that ended with a status other than 0.
type CommandError struct {
	Name   string
	Status int    // -1 when killed
	Stderr string // one line, bounded
	Err    error  // the cause: a time-out, a missing binary
}

// Error names the command, its status and the first line of its complaint.
func (e *CommandError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("run %s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("%s ended with status %d: %s", e.Name, e.Status, e.Stderr)
}

// Unwrap gives the cause.
func (e *CommandError) Unwrap() error { return e.Err }

// commands are all that an ExecRunner starts.
var commands = []string{"squeue", "sinfo", "scontrol", "sacct"}

// ExecRunner starts Slurm's client commands: no shell, a fixed environment, bounded time and output.
type ExecRunner struct {
	Dir       string        // absolute folder of the binaries; "" means /usr/bin
	Conf      string        // SLURM_CONF, or "" for Slurm's own
	Timeout   time.Duration // 0 means 10 s
	MaxOutput int           // bytes; 0 means 256 MiB
}

// Run starts Dir/name with args. Only squeue, sinfo, scontrol and sacct run.
func (r ExecRunner) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	dir := r.Dir
	if dir == "" {
		dir = "/usr/bin"
	}
	if !slices.Contains(commands, name) || !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("run %q in %q: %w", name, dir, ErrInvalid)
	}
	for _, a := range args {
		if strings.ContainsRune(a, 0) {
			return nil, fmt.Errorf("run %s: NUL in an argument: %w", name, ErrInvalid)
		}
	}
	timeout, limit := r.Timeout, r.MaxOutput
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	if limit <= 0 {
		limit = 256 << 20
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, name), args...) //nolint:gosec // one of four names in a fixed folder, no shell
	cmd.Env = r.environment()
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	out := &boundedBuffer{limit: limit, stop: cancel}
	complaint := &boundedBuffer{limit: 4096, drop: true}
	cmd.Stdout, cmd.Stderr = out, complaint
	err := cmd.Run()
	return out.buf.Bytes(), commandError(ctx, name, err, out, complaint)
}

// environment is all the command sees. SLURM_TIME_FORMAT stays unset: with it sacct --json fails.
func (r ExecRunner) environment() []string {
	env := []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=/"}
	if r.Conf != "" {
		env = append(env, "SLURM_CONF="+r.Conf)
	}
	return env
}

func commandError(ctx context.Context, name string, err error, out, complaint *boundedBuffer) error {
	if out.full.Load() {
		return &CommandError{Name: name, Status: -1, Err: ErrOutputTooLong}
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return &CommandError{Name: name, Status: -1, Err: ctx.Err()}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return &CommandError{Name: name, Status: -1, Err: err}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(complaint.buf.String()), "\n")
	return &CommandError{Name: name, Status: exit.ExitCode(), Stderr: Printable(first, 300)}
}

// boundedBuffer keeps at most limit bytes; over it, it stops the command or drops the rest.
type boundedBuffer struct {
	buf   bytes.Buffer // not embedded: its ReadFrom would pass the limit by
	limit int
	drop  bool
	full  atomic.Bool
	stop  func()
}

// Write implements io.Writer.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.buf.Len()
	if len(p) <= room {
		return b.buf.Write(p) //nolint:wrapcheck // never fails
	}
	b.buf.Write(p[:max(room, 0)])
	if b.drop {
		return len(p), nil
	}
	b.full.Store(true)
	b.stop()
	return 0, ErrOutputTooLong
}
