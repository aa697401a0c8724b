package sweep

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Work is what doing parts takes.
type Work struct {
	// Prepare is called before parts are done, with those that are; nil: nothing is to be prepared.
	Prepare func(ctx context.Context, parts []int) error
	// Do does a part, and writes what it came to by Encode.
	Do func(ctx context.Context, part int) ([]byte, error)
	// Status is the exit status of a command that ends with an error.
	Status func(error) int
	// AtOnce is how many parts are done at a time; 0: as many as there are processors.
	AtOnce int
}

// RunTask does those parts of a task of an array that aren't done yet. A part that fails
// is noted, and keeps nobody from the others.
func (f *Folder) RunTask(ctx context.Context, task string, w *Work) error {
	parts, err := f.share(task)
	if err != nil {
		return err
	}
	return f.do(ctx, parts, w, func(part int) error { return f.begin(task, part) }, func() {})
}

// RunHere does on this machine what isn't done yet, and says how far it is.
func (f *Folder) RunHere(ctx context.Context, w *Work, show func(Progress)) error {
	if err := f.forgetFailures(); err != nil {
		return err
	}
	all := make([]int, len(f.m.Parts))
	for i := range all {
		all[i] = i
	}
	var mu sync.Mutex
	state := Progress{Total: len(all)}
	tick := func() {
		mu.Lock()
		defer mu.Unlock()
		state.Done++
		show(state)
	}
	if err := f.do(ctx, all, w, func(int) error { return nil }, tick); err != nil {
		return err
	}
	var l look
	if err := l.update(f); err != nil {
		return err
	}
	return f.report(&l, nil)
}

// do does those of some parts that aren't known.
func (f *Folder) do(
	ctx context.Context, parts []int, w *Work, begin func(part int) error, tick func(),
) error {
	var open []int
	for _, i := range parts {
		_, done, err := f.load(partsFolder, i)
		if err != nil {
			return err
		}
		failed, err := f.failure(i)
		if err != nil {
			return err
		}
		if done || failed != nil {
			tick()
			continue
		}
		open = append(open, i)
	}
	if len(open) == 0 {
		return nil
	}
	if w.Prepare != nil {
		if err := w.Prepare(ctx, open); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(w.AtOnce, runtime.GOMAXPROCS(0)))
	for _, i := range open {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := begin(i); err != nil {
				return err
			}
			text, failed := w.attempt(ctx, i)
			// What was stopped came to nothing, whatever it says.
			if err := ctx.Err(); err != nil {
				return err
			}
			defer tick()
			if failed != nil {
				return f.saveFailure(i, *failed)
			}
			return f.save(partsFolder, i, text)
		})
	}
	return group.Wait()
}

// panicStatus is that of a program of Go that ends by a panic.
const panicStatus = 2

func (w *Work) attempt(ctx context.Context, part int) (text []byte, failed *Failure) {
	defer func() {
		if reason := recover(); reason != nil {
			failed = &Failure{fmt.Sprintf("panic: %v\n%s", reason, debug.Stack()), panicStatus}
		}
	}()
	text, err := w.Do(ctx, part)
	if err != nil {
		return nil, &Failure{err.Error(), w.Status(err)}
	}
	return text, nil
}
