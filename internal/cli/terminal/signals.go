package terminal

import (
	"context"
	"os"
	"os/signal"
)

// UntilSignalled returns a context that ends at the first of some signals. By then a second one ends the
// program at once: whoever is told of the first may send it.
func UntilSignalled(ctx context.Context, signals ...os.Signal) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	first := make(chan os.Signal, 1)
	signal.Notify(first, signals...)
	go func() {
		<-first
		signal.Stop(first)
		cancel()
	}()
	return ctx
}
