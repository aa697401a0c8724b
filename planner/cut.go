package planner

import (
	"context"
	"errors"
)

// ErrCut is the cause of a context that ends because its time is up: what was found
// by then is good enough. Improvers return their best plan so far, without an error.
var ErrCut = errors.New("the time for the search is up")

// Cut tells whether a search was asked to stop and return what it has.
func Cut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrCut) }

// Cancelled is the error of a context that ended for another reason than [ErrCut].
func Cancelled(ctx context.Context) error {
	if Cut(ctx) {
		return nil
	}
	return ctx.Err()
}
