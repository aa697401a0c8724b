package control

import (
	"context"
	"fmt"
	"sync"
)

// gauge counts what is under way. Unlike a [sync.WaitGroup] it can be waited
// for while more comes, and for a time.
type gauge struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n is 0 again
}

// Add has one more be under way.
func (g *gauge) Add() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n == 0 {
		g.idle = make(chan struct{})
	}
	g.n++
}

// Done has one less be under way.
func (g *gauge) Done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 {
		close(g.idle)
	}
}

// begin adds one that is under way until what it returns is called.
func (g *gauge) begin() (done func()) {
	g.Add()
	return g.Done
}

// wait returns when nothing is under way, or the context ends.
func (g *gauge) wait(ctx context.Context) error {
	g.mu.Lock()
	n, idle := g.n, g.idle
	g.mu.Unlock()
	if n == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("records still to be written: %w", context.Cause(ctx))
	}
}
