package store

import (
	"context"
	"time"
)

// WaitAtMost waits for an answer of the records no longer than the bound, whatever the function
// does with its context.
func WaitAtMost[T any](
	ctx context.Context,
	bound time.Duration,
	f func(context.Context) (T, error),
) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		v, err := f(ctx)
		answers <- answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
