// Command epplan plans batches of GPU jobs so that they use little energy and
// miss no deadline. Run epplan --help for its commands, or read docs/cli.md.
package main

import (
	"context"
	"io"
	"os"
	"syscall"

	"github.com/epplan/epplan/internal/cli/terminal"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if isHook(os.Args) {
		signals = append(signals, syscall.SIGHUP) // any other end than status 0 would drain the node
	}
	ctx := terminal.UntilSignalled(context.Background(), signals...)
	os.Exit(run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run returns the whole program: it reads and writes what it is given and returns
// the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := newProgram()
	hook := isHook(args)
	if !hook && !isSubmitCommand(args) {
		return p.Run(ctx, args, stdin, stdout, stderr)
	}
	t := p.NewTerminal(stdin, stdout, stderr)
	work := func(ctx context.Context) error { return t.Execute(ctx, args) }
	if hook {
		return runHook(ctx, t, work)
	}
	return runSubmit(ctx, t, submitBound(args), work)
}
