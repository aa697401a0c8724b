package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

// Sessions are kept in memory: they end with epd.
const (
	sessionLasts = 12 * time.Hour   // from the login on
	sessionIdles = 90 * time.Minute // without a request
	maxSessions  = 10_000
)

// session is a login. The key of the map is the hash of its cookie, so that
// nothing in memory or in a log is worth stealing.
type session struct {
	name   string
	token  [sha256.Size]byte // digest of the token that it began with
	began  time.Time
	seen   time.Time
	public string // what forms are bound to
}

// sessions are the logins of a site.
type sessions struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]*session
}

// begin makes a session and returns its cookie.
func (s *sessions) begin(t *token, now time.Time) string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	cookie := hex.EncodeToString(raw[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[[sha256.Size]byte]*session)
	}
	if len(s.open) >= maxSessions {
		s.sweep(now)
	}
	key := sha256.Sum256([]byte(cookie))
	s.open[key] = &session{name: t.name, token: t.digest, began: now, seen: now, public: hex.EncodeToString(key[:])}
	return cookie
}

// sweep forgets sessions that are over; if there are none, the one that was idle
// for longest.
func (s *sessions) sweep(now time.Time) {
	var oldest [sha256.Size]byte
	var seen time.Time
	before := len(s.open)
	for key, one := range s.open {
		if one.over(now) {
			delete(s.open, key)
		} else if seen.IsZero() || one.seen.Before(seen) {
			oldest, seen = key, one.seen
		}
	}
	if len(s.open) == before {
		delete(s.open, oldest)
	}
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.began) > sessionLasts || now.Sub(s.seen) > sessionIdles
}

// of is the viewer of a cookie, as long as the token is still in the file. A page
// that asks again by itself doesn't keep a session alive.
func (s *sessions) of(cookie string, tokens *Tokens, now time.Time, byItself bool) (Viewer, bool) {
	key := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.open[key]
	if one == nil {
		return Viewer{}, false
	}
	role, ok := tokens.holds(one.token)
	if !ok || one.over(now) {
		delete(s.open, key)
		return Viewer{}, false
	}
	if !byItself {
		one.seen = now
	}
	return Viewer{UID: -1, Name: one.name, Role: role, session: one.public}, true
}

// end forgets a session.
func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(cookie)))
}
