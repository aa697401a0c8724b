package login

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

// Sessions are kept in memory: they end with epd.
const (
	SessionLifetime    = 12 * time.Hour   // from the login on
	sessionIdleTimeout = 90 * time.Minute // without a request
	maxSessions        = 10_000
)

// session is a login. The key of the map is the hash of its cookie, so that
// nothing in memory or in a log is worth stealing.
type session struct {
	name   string
	token  [sha256.Size]byte // digest of the token that it began with
	began  time.Time
	seen   time.Time
	formID string // what forms are bound to
}

// Sessions are the logins of a site. The zero value is ready.
type Sessions struct {
	mu       sync.Mutex
	byCookie map[[sha256.Size]byte]*session
}

// Begin makes a session and returns its cookie.
func (s *Sessions) Begin(t *Token, now time.Time) string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	cookie := hex.EncodeToString(raw[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byCookie == nil {
		s.byCookie = make(map[[sha256.Size]byte]*session)
	}
	if len(s.byCookie) >= maxSessions {
		s.dropExpired(now)
	}
	key := sha256.Sum256([]byte(cookie))
	s.byCookie[key] = &session{
		name: t.Name, token: t.digest, began: now, seen: now, formID: hex.EncodeToString(key[:]),
	}
	return cookie
}

// dropExpired forgets sessions that are over; if there are none, the one that was idle
// for longest.
func (s *Sessions) dropExpired(now time.Time) {
	var oldest [sha256.Size]byte
	var seen time.Time
	before := len(s.byCookie)
	for key, one := range s.byCookie {
		if one.isExpired(now) {
			delete(s.byCookie, key)
		} else if seen.IsZero() || one.seen.Before(seen) {
			oldest, seen = key, one.seen
		}
	}
	if len(s.byCookie) == before {
		delete(s.byCookie, oldest)
	}
}

func (s *session) isExpired(now time.Time) bool {
	return now.Sub(s.began) > SessionLifetime || now.Sub(s.seen) > sessionIdleTimeout
}

// Viewer is that of a cookie, as long as the token is still in the file. A page
// that asks again by itself doesn't keep a session alive.
func (s *Sessions) Viewer(cookie string, tokens *Tokens, now time.Time, byItself bool) (Viewer, bool) {
	key := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byCookie[key]
	if one == nil {
		return Viewer{}, false
	}
	role, ok := tokens.roleOf(one.token)
	if !ok || one.isExpired(now) {
		delete(s.byCookie, key)
		return Viewer{}, false
	}
	if !byItself {
		one.seen = now
	}
	return Viewer{UID: -1, Name: one.name, Role: role, Session: one.formID}, true
}

// End forgets a session.
func (s *Sessions) End(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byCookie, sha256.Sum256([]byte(cookie)))
}
