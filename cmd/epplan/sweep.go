package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/lab/jobarray"
	"github.com/epplan/epplan/lab/sweep"
)

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
		return w.run(c.Context, t)
	}
	t.keepsPartial.Store(true) // it ends by itself: what was submitted is cancelled
	job := jobarray.Job{Version: t.program.version, Inputs: t.sources, Parts: w.names, Work: sweep.Work{
		Prepare: w.prepare, AtOnce: w.atOnce,
		Do: func(ctx context.Context, i int) ([]byte, error) {
			value, err := w.do(ctx, i)
			if err != nil {
				return nil, err
			}
			return sweep.Encode(value)
		},
		Status: func(err error) int { return t.silent().finish(context.Background(), err) },
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
