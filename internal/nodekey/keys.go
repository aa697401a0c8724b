package nodekey

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/epplan/epplan/internal/munge"
)

// What is wrong with a credential of a key, beside what package munge names.
var (
	// ErrInvalid tells of something that is no credential of a key.
	ErrInvalid = errors.New("this is no credential of a key")
	// ErrUnknown tells of a machine of which no key is believed here.
	ErrUnknown = errors.New("no such key is known here")
	// ErrForged tells of a signature that isn't of the key that is known.
	ErrForged = errors.New("the credential was made with another key, or altered")
)

// How a credential looks: EPKEY:role:name:when:payload:signature, when in nanoseconds since 1970, payload and
// signature in base64.
const (
	prefix        = "EPKEY:"
	domain        = "epplan key credential 1\n" // what is signed begins with it
	parts         = 5
	maxCredential = 8 << 10
)

// Bounds of what is believed.
const (
	lifetime = time.Minute
	// maxAhead is how far the clock of another machine may be ahead: what a controller refuses for so long
	// after its start, it can't have accepted before.
	maxAhead = 5 * time.Second
	// maxSeen is how many requests each machine may send in a lifetime.
	maxSeen = 1 << 12
)

// Keys make credentials by a machine's own key, and believe those of others. They may be used by many
// goroutines.
type Keys struct {
	own     *Secret
	path    string // of the list
	believe Role
	now     func() time.Time

	mu      sync.Mutex
	list    listState
	seen    map[string]*seenCache // by the name of a machine
	started time.Time             // since when all credentials are remembered
	last    time.Time             // the latest at which one was checked
}

// listState is the list as it was read last.
type listState struct {
	known map[string]ed25519.PublicKey // by name, of those who are believed
	err   error
	stamp fileStamp
}

// fileStamp tells a file from another one in its place.
type fileStamp struct {
	at    time.Time
	size  int64
	mode  fs.FileMode
	inode uint64
}

func stampOf(info fs.FileInfo) fileStamp {
	stamp := fileStamp{at: info.ModTime(), size: info.Size(), mode: info.Mode()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		stamp.inode = s.Ino
	}
	return stamp
}

var _ munge.Voucher = (*Keys)(nil)

// Open reads a machine's own key, and the list of those whom it believes: a controller nodes, and a node
// controllers. The list is read again whenever it changes; while it can't be read, nobody is believed.
func Open(key, trusted string, now func() time.Time) (*Keys, error) {
	own, err := ReadSecret(key)
	if err != nil {
		return nil, err
	}
	k := &Keys{own: own, path: trusted, believe: Controller, now: now, seen: make(map[string]*seenCache)}
	if own.Role == Controller {
		k.believe = Node
	}
	k.started = now().Round(0)
	k.last = k.started
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reread()
	return k, k.list.err
}

// Own is this machine's key, as others know it.
func (k *Keys) Own() Public { return k.own.Public }

// reread reads the list if it changed.
func (k *Keys) reread() {
	stamp := fileStamp{}
	info, err := os.Lstat(k.path)
	if err == nil {
		stamp = stampOf(info)
		if k.list.known != nil && stamp == k.list.stamp {
			return
		}
	}
	list, err := ReadTrusted(k.path)
	k.list = listState{known: make(map[string]ed25519.PublicKey), stamp: stamp, err: err}
	for _, p := range list {
		if p.Role == k.believe {
			k.list.known[p.Name] = p.Key
		}
	}
	if err != nil {
		k.list.stamp = fileStamp{} // it is read again
	}
}

// signedText returns what a signature is of.
func signedText(role Role, name, when string, payload []byte) []byte {
	return append([]byte(domain+string(role)+" "+name+" "+when+"\n"), payload...)
}

// Encode makes a credential that vouches for a payload. Its terms are those of munge, and aren't heeded: a
// credential counts for a minute, and says itself whose answer it is.
func (k *Keys) Encode(_ context.Context, payload []byte, _ munge.CredentialTerms) (string, error) {
	when := strconv.FormatInt(k.now().UnixNano(), 10)
	signature := ed25519.Sign(k.own.private, signedText(k.own.Role, k.own.Name, when, payload))
	text := prefix + strings.Join([]string{
		string(k.own.Role), k.own.Name, when, base64.StdEncoding.EncodeToString(payload),
		base64.StdEncoding.EncodeToString(signature),
	}, ":")
	if len(text) > maxCredential {
		return "", fmt.Errorf("a payload of %d bytes is %w", len(payload), munge.ErrTooLong)
	}
	return text, nil
}

// Decode checks a credential. With [munge.ErrExpired], [munge.ErrRewound] and [munge.ErrReplayed] it is
// authentic and returned; with all other errors it is empty. Its user is root: nobody else reads a key.
func (k *Keys) Decode(_ context.Context, text string) (munge.Credential, error) {
	role, name, when, payload, signature, ok := splitCredential(text)
	if !ok {
		return munge.Credential{}, ErrInvalid
	}
	if role != k.believe {
		return munge.Credential{}, fmt.Errorf("%w: it is of a %.20q, want a %s's", ErrUnknown, role, k.believe)
	}
	public, err := k.publicKey(name)
	if err != nil {
		return munge.Credential{}, err
	}
	if !ed25519.Verify(public, signedText(role, name, when, payload), signature) {
		return munge.Credential{}, fmt.Errorf("%w: it says that it is of %s %s", ErrForged, role, name)
	}
	nanoseconds, err := strconv.ParseInt(when, 10, 64)
	if err != nil {
		return munge.Credential{}, ErrInvalid
	}
	now := k.now()
	c := munge.Credential{
		Node: name, Encoded: time.Unix(0, nanoseconds), Decoded: now, TTL: lifetime, Payload: payload,
	}
	return c, k.checkFresh(&c, signature)
}

// publicKey returns the key of a machine that is believed.
func (k *Keys) publicKey(name string) (ed25519.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reread()
	switch public, known := k.list.known[name]; {
	case k.list.err != nil:
		return nil, fmt.Errorf("%w: the list of keys can't be read: %w", ErrUnknown, k.list.err)
	case !known:
		return nil, fmt.Errorf("%w: %s %.80q (epd keys add)", ErrUnknown, k.believe, name)
	default:
		return public, nil
	}
}

// checkFresh reports whether a credential counts now, and hasn't before.
func (k *Keys) checkFresh(c *munge.Credential, signature []byte) error {
	switch age := c.Age(); {
	case age > lifetime:
		return munge.TooOldError(age, lifetime)
	case age < -maxAhead:
		return munge.FromFutureError(age)
	case k.believe == Controller:
		return nil // an answer counts for the one request whose nonce it has
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.believedSince(c.Decoded.Round(0)).After(c.Encoded) {
		// Before the start it may have been used: nobody remembers.
		return fmt.Errorf("%w: it was made before this epd had run for %s, or the clock where it was made is "+
			"behind", munge.ErrExpired, maxAhead)
	}
	seen := k.seen[c.Node]
	if seen == nil {
		seen = new(seenCache)
		k.seen[c.Node] = seen
	}
	return seen.add(string(signature), c.Decoded)
}

// believedSince returns since when no credential that counts can have been used unseen. If the clock was set
// back, that begins anew: what was used before, and is forgotten, may be young again. The caller holds mu.
func (k *Keys) believedSince(now time.Time) time.Time {
	if k.last.Sub(now) > maxAhead {
		k.started, k.last = now, now
	}
	if now.After(k.last) {
		k.last = now
	}
	return k.started.Add(maxAhead)
}

// splitCredential reads a credential's parts, of which nothing is proven.
func splitCredential(text string) (role Role, name, when string, payload, signature []byte, ok bool) {
	inside, ok := strings.CutPrefix(text, prefix)
	words := strings.Split(inside, ":")
	if !ok || len(text) > maxCredential || len(words) != parts {
		return "", "", "", nil, nil, false
	}
	payload, err := base64.StdEncoding.Strict().DecodeString(words[3])
	if err != nil {
		return "", "", "", nil, nil, false
	}
	signature, err = base64.StdEncoding.Strict().DecodeString(words[4])
	return Role(words[0]), words[1], words[2], payload, signature, err == nil
}

// seenCache has the signatures of a machine that count still and were used: in two generations of a
// lifetime and what clocks may be ahead, so that none is forgotten that counts.
type seenCache struct {
	young, old map[string]struct{}
	born       time.Time
}

// add remembers a signature, or says that it was there.
func (s *seenCache) add(signature string, now time.Time) error {
	const generation = lifetime + maxAhead
	switch age := now.Sub(s.born); {
	case s.young == nil || age >= 2*generation:
		s.young, s.old, s.born = make(map[string]struct{}), nil, now
	case age >= generation:
		s.young, s.old, s.born = make(map[string]struct{}), s.young, now
	}
	_, young := s.young[signature]
	_, old := s.old[signature]
	switch {
	case young || old:
		return munge.ErrReplayed
	case len(s.young) >= maxSeen:
		return munge.ErrTooMany
	}
	s.young[signature] = struct{}{}
	return nil
}
