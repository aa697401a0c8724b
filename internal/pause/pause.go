// Package pause waits for a while, or until a context ends.
package pause

import (
	"context"
	"time"
)

// For waits for so long. An error is the context's, which ended before.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
