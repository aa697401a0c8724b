package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/internal/pause"
)

func TestAPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := pause.For(t.Context(), time.Minute); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := pause.For(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(begin) != time.Minute+time.Second {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}
