package main

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// repeatWindow is the time in which the same message with the same error is logged so often: a disk that
	// is full mustn't be filled with what is said of it.
	repeatWindow   = 10 * time.Minute
	maxRepeats     = 10
	maxKnownErrors = 1000
)

// newLog writes a log in which no error that goes on takes ever more room.
func newLog(w io.Writer) *slog.Logger {
	return slog.New(&quietHandler{slog.NewTextHandler(w, nil), new(recentErrors)})
}

// quietHandler leaves out what was logged lately.
type quietHandler struct {
	slog.Handler
	said *recentErrors
}

// recentErrors are errors that were logged lately.
type recentErrors struct {
	mu sync.Mutex
	of map[[2]string]repeatedError
}

type repeatedError struct {
	since time.Time
	times int
}

// Handle is [slog.Handler]'s.
func (h *quietHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	problem := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			problem = a.Value.String()
		}
		return problem == ""
	})
	if problem == "" {
		return h.Handler.Handle(ctx, r)
	}
	left, due := h.said.isDue([2]string{r.Message, problem}, r.Time)
	if !due {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", left))
	}
	return h.Handler.Handle(ctx, r)
}

// isDue reports whether an error is to be logged, and how often it wasn't before that.
func (s *recentErrors) isDue(what [2]string, now time.Time) (left int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	said, known := s.of[what]
	if !known || now.Sub(said.since) >= repeatWindow {
		left, said = max(0, said.times-maxRepeats), repeatedError{since: now}
	}
	if said.times++; s.of == nil || !known && len(s.of) >= maxKnownErrors {
		s.of = make(map[[2]string]repeatedError)
	}
	s.of[what] = said
	return left, said.times <= maxRepeats
}

// WithAttrs is [slog.Handler]'s.
func (h *quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &quietHandler{h.Handler.WithAttrs(attrs), h.said}
}

// WithGroup is [slog.Handler]'s.
func (h *quietHandler) WithGroup(name string) slog.Handler {
	return &quietHandler{h.Handler.WithGroup(name), h.said}
}
