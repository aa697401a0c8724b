package main

import (
	"context"
	"errors"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/jobarray"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/sweep"
)

// partedWork is work of many parts, each a T, that don't need each other. T is written to files.
type partedWork[T any] struct {
	label   string                                       // of the line that says how far it is; empty: none
	names   []string                                     // of the parts, in words
	atOnce  int                                          // 0: as many as processors
	prepare func(ctx context.Context, parts []int) error // nil: nothing is to be prepared
	do      func(ctx context.Context, i int) (T, error)
}

// here does all parts in this process.
func (w *partedWork[T]) here(ctx context.Context, progress *report.Progress) ([]T, error) {
	if w.prepare != nil {
		all := make([]int, len(w.names))
		for i := range all {
			all[i] = i
		}
		if err := w.prepare(ctx, all); err != nil {
			return nil, err
		}
	}
	values := make([]T, len(w.names))
	return values, sideBySide(ctx, w.atOnce, len(w.names), func(ctx context.Context, i int) (err error) {
		defer progress.Add(1)
		values[i], err = w.do(ctx, i)
		return err
	})
}

// swept is a command whose work eachPart does.
func swept(command func(*terminal, *cli.Context) error) func(*terminal, *cli.Context) error {
	return func(t *terminal, c *cli.Context) error {
		err := jobarray.Check(c)
		if err == nil {
			err = command(t, c)
		}
		if errors.Is(err, jobarray.ErrNoResult) {
			return nil
		}
		if wrong, ok := errors.AsType[*jobarray.Error](err); ok {
			if wrong.Usage {
				return usagef("%v", wrong)
			}
			return withHint(wrong.Err, wrong.Hint)
		}
		return err
	}
}

// eachPart does work here, or as the flags of package jobarray say. In a task of an array, which
// does some of the parts, it returns jobarray.ErrNoResult.
func eachPart[T any](t *terminal, c *cli.Context, w *partedWork[T]) ([]T, error) {
	if !jobarray.IsSet(c) {
		progress := report.NewProgress(t.stderr, t.progress && w.label != "", t.now, w.label, len(w.names))
		defer progress.Finish()
		return w.here(c.Context, progress)
	}
	t.keepsPartial.Store(true) // it ends by itself: what was submitted is cancelled
	job := jobarray.Job{Version: version, Inputs: t.sources, Parts: w.names, Work: sweep.Work{
		Prepare: w.prepare, AtOnce: w.atOnce,
		Do: func(ctx context.Context, i int) ([]byte, error) {
			value, err := w.do(ctx, i)
			if err != nil {
				return nil, err
			}
			return sweep.Encode(value)
		},
		Status: func(err error) int { return (&terminal{stderr: io.Discard}).finish(context.Background(), err) },
	}}
	folder, err := job.Run(c, &jobarray.Terminal{
		Stderr: t.stderr, IsLive: t.progress, Now: t.now, Note: func(text string) { t.message("note", text) },
	})
	if err != nil {
		return nil, err
	}
	values := make([]T, len(w.names))
	for i := range values {
		text, err := folder.Part(i)
		if err == nil {
			err = sweep.Decode(text, &values[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}
