package main

import (
	"cmp"
	"context"
	"runtime"

	"github.com/epplan/epplan/internal/report"
	"golang.org/x/sync/errgroup"
)

// partedWork is work of many parts, each a T, that don't need each other. T is written to files.
type partedWork[T any] struct {
	label   string                                       // of the line that says how far it is; empty: none
	names   []string                                     // of the parts, in words
	atOnce  int                                          // 0: as many as processors
	prepare func(ctx context.Context, parts []int) error // nil: nothing is to be prepared
	do      func(ctx context.Context, i int) (T, error)
}

// run does all parts and returns their values in their order.
func (w *partedWork[T]) run(ctx context.Context, t *terminal) ([]T, error) {
	progress := report.NewProgress(t.stderr, t.progress && w.label != "", t.now, w.label, len(w.names))
	defer progress.Finish()
	return w.runWith(ctx, progress)
}

// runWith is run with a progress line of the caller's.
func (w *partedWork[T]) runWith(ctx context.Context, progress *report.Progress) ([]T, error) {
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

// sideBySide does so many pieces of work, some at a time, 0: as many as there are processors.
// The first error ends the context of the others.
func sideBySide(ctx context.Context, atOnce, count int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(atOnce, runtime.GOMAXPROCS(0)))
	for i := range count {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
