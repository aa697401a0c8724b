package munge

import (
	"sync"
	"time"
)

// nonceCache remembers which nonces each user used lately: in two generations, the
// older of which is forgotten when the younger one is full or old enough.
// Forgetting early under load is no hole, for munged refuses replays as well.
type nonceCache struct {
	mu         sync.Mutex
	young, old map[nonceKey]struct{}
	born       time.Time
	most       int           // in a generation
	keep       time.Duration // at least, where there is room
}

type nonceKey struct {
	uid   uint32
	nonce nonce
}

// isNew reports whether a user's nonce is new, and remembers it.
func (n *nonceCache) isNew(uid uint32, of nonce, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.young == nil || len(n.young) >= n.most || now.Sub(n.born) >= n.keep {
		n.young, n.old, n.born = make(map[nonceKey]struct{}), n.young, now
	}
	key := nonceKey{uid, of}
	_, young := n.young[key]
	_, old := n.old[key]
	if young || old {
		return false
	}
	n.young[key] = struct{}{}
	return true
}
