package control

import (
	"runtime/debug"
	"sync"
)

// littleGarbage is how much garbage there may be while much is read, in percent of
// what is kept: most of what is read is garbage soon.
const littleGarbage = 25

// garbage is how much of it there may be, for several at once.
type garbage struct {
	mu    sync.Mutex
	users int // that want little
	usual int
}

// little keeps garbage small until what it returns is called.
func (g *garbage) little() (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users == 0 {
		g.usual = debug.SetGCPercent(littleGarbage)
	}
	g.users++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.users--; g.users == 0 {
			debug.SetGCPercent(g.usual)
		}
	}
}
