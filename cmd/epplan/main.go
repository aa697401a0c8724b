// Command epplan plans batches of GPU jobs so that they use little energy and
// miss no deadline. Run epplan --help for its commands, or read docs/cli.md.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program: it reads and writes what it is given and returns
// the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := &terminal{stdin: stdin, stdout: stdout, stderr: stderr, progress: isTerminal(stderr)}
	return t.finish(ctx, t.execute(ctx, args))
}
