package forecast

import "sync"

// users are those whose jobs were seen, by number.
type users struct {
	mu sync.RWMutex
	of map[uint32]user
}

// user has the account and the partition of the last job.
type user struct{ name, account, partition string }

const maxUsers = 100_000

func (u *users) get(uid uint32) user {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.of[uid]
}

// SeeUser remembers whose a job is, and where it runs.
func (f *Forecaster) SeeUser(uid uint32, name, account, partition string) {
	u, now := &f.users, user{name, account, partition}
	if name == "" || u.get(uid) == now {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil || len(u.of) >= maxUsers {
		u.of = make(map[uint32]user)
	}
	u.of[uid] = now
}
