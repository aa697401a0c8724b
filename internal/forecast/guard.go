package forecast

import (
	"fmt"
	"runtime/debug"
)

// guarded has a panic be an error: what is learnt in the background from what
// users submit must not end epd, which jobs' prologs wait for.
func (f *Forecaster) guarded(work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			f.options.Log.Error("predictions: a panic", "error", err, "stack", string(debug.Stack()))
		}
	}()
	return work()
}

// ask tells whether one more text of a user may wait for a server: others' wait, too.
func (c *codes) ask(uid uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks[uid] >= maxAsksOfUser {
		return false
	}
	if c.asks == nil {
		c.asks = make(map[uint32]int)
	}
	c.asks[uid]++
	return true
}

// asked ends what ask began.
func (c *codes) asked(uid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks[uid]--; c.asks[uid] <= 0 {
		delete(c.asks, uid)
	}
}
