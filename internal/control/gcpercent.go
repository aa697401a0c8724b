package control

import (
	"runtime/debug"
	"sync"
)

// lowGCPercent is how much garbage there may be while much is read, in percent of
// what is kept: most of what is read is garbage soon.
const lowGCPercent = 25

// gcPercent is how much garbage there may be, for several at once.
type gcPercent struct {
	mu     sync.Mutex
	users  int // that want little
	before int
}

// lower keeps garbage small until what it returns is called.
func (g *gcPercent) lower() (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users == 0 {
		g.before = debug.SetGCPercent(lowGCPercent)
	}
	g.users++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.users--; g.users == 0 {
			debug.SetGCPercent(g.before)
		}
	}
}
