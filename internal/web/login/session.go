package login

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/epplan/epplan/config"
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
	issuer string            // that proved the name; empty: a token did
	groups []string          // that it stated
	began  time.Time
	seen   time.Time
	formID string // what forms are bound to
}

// Sessions are the logins of a site. The zero value is ready.
type Sessions struct {
	mu       sync.Mutex
	byCookie map[[sha256.Size]byte]*session
}

// Begin makes a session of a token's owner and returns its cookie.
func (s *Sessions) Begin(t *Token, now time.Time) string {
	return s.begin(session{name: t.Name, token: t.digest}, now)
}

// BeginNamed makes a session of somebody whose name an issuer proved, and returns its cookie.
func (s *Sessions) BeginNamed(l *IssuerLogin, now time.Time) string {
	return s.begin(session{name: l.Name, issuer: l.Issuer, groups: l.Groups}, now)
}

func (s *Sessions) begin(one session, now time.Time) string {
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
	one.began, one.seen, one.formID = now, now, hex.EncodeToString(key[:])
	s.byCookie[key] = &one
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

// Viewer is that of a cookie, as long as the token is still in the file, or the issuer
// in the configuration. A page that asks again by itself doesn't keep a session alive.
func (s *Sessions) Viewer(
	cookie string, w *config.Web, tokens *Tokens, accounts Accounts, now time.Time, byItself bool,
) (Viewer, bool) {
	one, ok := s.find(cookie, now, byItself)
	if !ok {
		return Viewer{}, false
	}
	v := Viewer{UID: -1, Name: one.name}
	if one.issuer != "" {
		ok = one.issuer == w.OIDC.Issuer
		v = NamedViewer(w, one.name, one.groups, accounts) // may ask the system's directory: not under the lock
	} else {
		v.Role, ok = tokens.roleOf(one.token)
	}
	if !ok {
		s.End(cookie)
		return Viewer{}, false
	}
	v.Session = one.formID
	return v, true
}

// find returns the session of a cookie, which is used now unless a page asks by itself.
func (s *Sessions) find(cookie string, now time.Time, byItself bool) (session, bool) {
	key := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byCookie[key]
	if one == nil {
		return session{}, false
	}
	if one.isExpired(now) {
		delete(s.byCookie, key)
		return session{}, false
	}
	if !byItself {
		one.seen = now
	}
	return *one, true
}

// End forgets a session.
func (s *Sessions) End(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byCookie, sha256.Sum256([]byte(cookie)))
}
