package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/jobarray"
	"github.com/epplan/epplan/lab/sweep"
)

// swept returns a command whose work eachPart does.
func swept(
	command func(*terminal.Terminal, *cli.Context) error,
) func(*terminal.Terminal, *cli.Context) error {
	return func(t *terminal.Terminal, c *cli.Context) error {
		err := jobarray.Check(c)
		if err == nil {
			err = command(t, c)
		}
		if errors.Is(err, jobarray.ErrNoResult) {
			return nil
		}
		if wrong, ok := errors.AsType[*jobarray.Error](err); ok {
			if wrong.Usage {
				return terminal.Usagef("%v", wrong)
			}
			return terminal.WithHint(wrong.Err, wrong.Hint)
		}
		return err
	}
}

// eachPart does work here, or as the flags of package jobarray say. In a task of an array, which
// does some of the parts, it returns jobarray.ErrNoResult.
func eachPart[T any](t *terminal.Terminal, c *cli.Context, w *terminal.PartedWork[T]) ([]T, error) {
	if !jobarray.IsSet(c) {
		return w.Run(c.Context, t)
	}
	t.KeepsPartial.Store(true) // it ends by itself: what was submitted is cancelled
	job := jobarray.Job{Version: t.Program.Version, Inputs: t.Sources, Parts: w.Names, Work: sweep.Work{
		Prepare: w.Prepare, AtOnce: w.AtOnce,
		Do: func(ctx context.Context, i int) ([]byte, error) {
			value, err := w.Do(ctx, i)
			if err != nil {
				return nil, err
			}
			return sweep.Encode(value)
		},
		Status: func(err error) int { return t.Silent().Finish(context.Background(), err) },
	}}
	folder, err := job.Run(c, &jobarray.Terminal{
		Stderr: t.Stderr, IsLive: t.Progress, Now: t.Now, Note: func(text string) { t.Message("note", text) },
	})
	if err != nil {
		return nil, err
	}
	values := make([]T, len(w.Names))
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
