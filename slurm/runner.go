package slurm

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Runner runs one of Slurm's commands and gives what it printed. A command that
// fails is an error that wraps *CommandError; its output comes along.
type Runner interface {
	Run(ctx context.Context, name string, args ...string) ([]byte, error)
}

// Streamer is a Runner that also hands on what a command prints while it runs,
// for answers that don't fit in memory. When Stream returns, the command is gone.
//
// A command that fails is a *CommandError, whatever read made of its output: that
// a part of it could be read says nothing. Otherwise the error is that of read;
// one before the end of the output ends the command.
type Streamer interface {
	Runner
	Stream(ctx context.Context, read func(io.Reader) error, name string, args ...string) error
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

// allowedCommands are all that an ExecRunner starts.
var allowedCommands = []string{"squeue", "sinfo", "scontrol", "sacct", "sacctmgr", sbatch, "scancel"}

// sbatch hands its environment on to the job, so that it alone has the caller's.
const sbatch = "sbatch"

// ExecRunner starts Slurm's client commands: no shell, a fixed environment but for sbatch's, bounded
// time and output.
type ExecRunner struct {
	Dir       string        // absolute folder of the binaries; "" means /usr/bin
	Conf      string        // SLURM_CONF, or "" for Slurm's own
	Timeout   time.Duration // 0 means 10 s
	MaxOutput int           // bytes of Run; 0 means 256 MiB
	MaxStream int64         // bytes of Stream; 0 means 8 GiB
}

var _ Streamer = ExecRunner{}

// Run starts Dir/name with args. Only squeue, sinfo, scontrol, sacct, sacctmgr, sbatch and scancel run.
func (r ExecRunner) Run(ctx context.Context, name string, args ...string) (out []byte, err error) {
	r.MaxStream = int64(cmp.Or(max(0, r.MaxOutput), 256<<20))
	err = r.Stream(ctx, func(in io.Reader) (err error) {
		out, err = io.ReadAll(in)
		return err //nolint:wrapcheck // a reader's error
	}, name, args...)
	return out, err
}

// command is Dir/name with args, not started.
func (r ExecRunner) command(
	ctx context.Context, name string, args []string,
) (*exec.Cmd, *complaintBuffer, error) {
	dir := cmp.Or(r.Dir, "/usr/bin")
	if !slices.Contains(allowedCommands, name) || !filepath.IsAbs(dir) {
		return nil, nil, fmt.Errorf("run %q in %q: %w", name, dir, ErrInvalid)
	}
	for _, a := range args {
		if strings.ContainsRune(a, 0) {
			return nil, nil, fmt.Errorf("run %s: NUL in an argument: %w", name, ErrInvalid)
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, name), args...) //nolint:gosec // one of a few names in a fixed folder, no shell
	cmd.Env = r.environment()
	if name == sbatch {
		cmd.Env = append(os.Environ(), r.confVariable()...)
	}
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	complaint := &complaintBuffer{}
	cmd.Stderr = complaint
	return cmd, complaint, nil
}

// Stream starts Dir/name with args as Run does, and gives read what it prints.
func (r ExecRunner) Stream(
	ctx context.Context, read func(io.Reader) error, name string, args ...string,
) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(max(0, r.Timeout), 10*time.Second))
	defer cancel()
	cmd, complaint, err := r.command(ctx, name, args)
	if err != nil {
		return err
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return &CommandError{Name: name, Status: -1, Err: err}
	}
	if err := cmd.Start(); err != nil {
		return &CommandError{Name: name, Status: -1, Err: err}
	}
	// Who holds the other end open after the command's end must not hold this one.
	defer context.AfterFunc(ctx, func() { _ = pipe.Close() })()
	out := &boundedReader{from: pipe, left: cmp.Or(max(0, r.MaxStream), 8<<30)}
	failed := read(bufio.NewReaderSize(out, streamBuffer))
	rest := int64(math.MaxInt64) // what follows the answer; the bounds hold
	if failed != nil {
		rest = maxStderr // a command that fails, and prints something else, ends soon
	}
	_, _ = io.CopyN(io.Discard, out, rest)
	abandoned := failed != nil && !out.ended && !out.overLimit && ctx.Err() == nil
	if !out.ended {
		cancel()
	}
	err = cmd.Wait()
	switch {
	case abandoned:
		return failed
	case err == nil && !out.ended:
		err = ctx.Err()
	}
	if err := commandError(ctx, name, err, out.overLimit, complaint); err != nil {
		return err
	}
	return failed
}

const (
	streamBuffer = 64 << 10 // a pipe's
	maxStderr    = 1 << 20
)

// boundedReader reads so many bytes at most.
type boundedReader struct {
	from      io.Reader
	left      int64
	overLimit bool // there was more
	ended     bool // that was all
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.overLimit {
		return 0, ErrOutputTooLong
	}
	n, err := b.from.Read(p)
	if int64(n) > b.left {
		n, err, b.overLimit = int(b.left), ErrOutputTooLong, true
	}
	b.left -= int64(n)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err //nolint:wrapcheck // a reader's error
}

// taskListLength is to how many bytes Slurm's commands cut a list of an array's tasks,
// which they do at 64 unless told (squeue(1), SLURM_BITSTR_LEN): the most that they
// take but for no limit at all, and room for any list of 1,001 tasks, Slurm's own
// MaxArraySize. Nobody's array makes every answer as long as it likes.
const taskListLength = "4096"

// environment returns all the command sees. SLURM_TIME_FORMAT stays unset: with it sacct --json fails.
func (r ExecRunner) environment() []string {
	return append(r.confVariable(), "PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=/",
		"SLURM_BITSTR_LEN="+taskListLength)
}

// confVariable returns the variable that names Slurm's configuration; none: it is Slurm's own.
func (r ExecRunner) confVariable() []string {
	if r.Conf == "" {
		return nil
	}
	return []string{"SLURM_CONF=" + r.Conf}
}

func commandError(ctx context.Context, name string, err error, full bool, complaint *complaintBuffer) error {
	if full {
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
	first, _, _ := strings.Cut(strings.TrimSpace(string(*complaint)), "\n")
	return &CommandError{Name: name, Status: exit.ExitCode(), Stderr: Printable(first, 300)}
}

// complaintBuffer keeps the beginning of what a command complains of.
type complaintBuffer []byte

// Write implements io.Writer.
func (b *complaintBuffer) Write(p []byte) (int, error) {
	const most = 4096
	*b = append(*b, p[:min(len(p), most-len(*b))]...)
	return len(p), nil
}
