package terminal

import (
	"cmp"
	"context"
	"runtime"

	"github.com/epplan/epplan/internal/report"
	"golang.org/x/sync/errgroup"
)

// PartedWork is work of many parts, each a T, that don't need each other. T is written to files.
type PartedWork[T any] struct {
	Label   string                                       // of the line that says how far it is; empty: none
	Names   []string                                     // of the parts, in words
	AtOnce  int                                          // 0: as many as processors
	Prepare func(ctx context.Context, parts []int) error // nil: nothing is to be prepared
	Do      func(ctx context.Context, i int) (T, error)
}

// Run does all parts and returns their values in their order.
func (w *PartedWork[T]) Run(ctx context.Context, t *Terminal) ([]T, error) {
	progress := report.NewProgress(t.Stderr, t.Progress && w.Label != "", t.Now, w.Label, len(w.Names))
	defer progress.Finish()
	return w.RunWith(ctx, progress)
}

// RunWith is run with a progress line of the caller's.
func (w *PartedWork[T]) RunWith(ctx context.Context, progress *report.Progress) ([]T, error) {
	if w.Prepare != nil {
		all := make([]int, len(w.Names))
		for i := range all {
			all[i] = i
		}
		if err := w.Prepare(ctx, all); err != nil {
			return nil, err
		}
	}
	values := make([]T, len(w.Names))
	return values, InParallel(ctx, w.AtOnce, len(w.Names), func(ctx context.Context, i int) (err error) {
		defer progress.Add(1)
		values[i], err = w.Do(ctx, i)
		return err
	})
}

// InParallel does so many pieces of work, some at a time, 0: as many as there are processors.
// The first error ends the context of the others.
func InParallel(ctx context.Context, atOnce, count int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(atOnce, runtime.GOMAXPROCS(0)))
	for i := range count {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
