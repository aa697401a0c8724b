package control

import (
	"context"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/store/record"
)

// panicking is a store that does so when a training reads it.
type panicking struct{ Records }

func (panicking) Ended(context.Context, string, int) ([]record.Ended, error) {
	panic("index out of range")
}

func TestAPanicWhileLearningEndsNothing(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Store = panicking{o.Store}
		o.UserName = func(uid uint32) string {
			if uid == 7 {
				panic("no such table")
			}
			return "bob"
		}
	})
	if err := r.forecasts.Train(t.Context()); err == nil || !strings.Contains(err.Error(), "panic: index out of range") {
		t.Errorf("%v", err)
	}
	r.submitAs(script(7)) // the name is looked up, which panics
	r.submitAs(script(8)) // and so is this one, by the same goroutine
	if user := r.forecasts.users.get(8).name; user != "bob" {
		t.Errorf("uid 8 is %q", user)
	}
}
