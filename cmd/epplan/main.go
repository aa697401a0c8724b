// Command epplan plans batches of GPU jobs so that they use little energy and
// miss no deadline. Run epplan --help for its commands, or read docs/cli.md.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if isHook(os.Args) {
		signals = append(signals, syscall.SIGHUP) // any other end than status 0 would drain the node
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program: it reads and writes what it is given and returns
// the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := &terminal{
		stdin: stdin, stdout: stdout, stderr: stderr,
		progress: isTerminal(stderr), now: time.Now, color: isTerminal(stdout) && os.Getenv("NO_COLOR") == "",
	}
	work := func(ctx context.Context) error { return execute(ctx, t, args) }
	switch {
	case isHook(args):
		return runHook(ctx, t, work)
	case isSubmit(args):
		return runSubmit(ctx, t, submitWithin(args), work)
	}
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	return t.finish(ctx, t.await(ctx, done))
}

// gracePeriod is how long an interrupted command may take to stop by itself.
const gracePeriod = 500 * time.Millisecond

// await waits for a command. One that was interrupted and doesn't stop within
// the grace period, because it waits for input for example, is given up: files
// are put in place as a whole, so that none is left half-written. One that has
// begun to plan ends by itself.
func (t *terminal) await(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if t.keepsPartial.Load() {
		return <-done
	}
	timer := time.NewTimer(gracePeriod)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return ctx.Err()
	}
}
