package munge

import (
	"net/http"
	"time"
)

// For tests that look inside.
var (
	ReadMessage  = readMessage
	ParseEncoded = parseEncoded
	ParseDecoded = parseDecoded
	Digest       = textDigest
)

// SetBase puts something between a transport and the network.
func (t *Transport) SetBase(wrap func(http.RoundTripper) http.RoundTripper) { t.base = wrap(t.base) }

// Impatient shortens what a body may take.
func Impatient(h http.Handler, patience time.Duration) http.Handler {
	if g, ok := h.(*authHandler); ok {
		g.admitTimeout = patience
	}
	return h
}

// Nonces is a memory of nonces.
type Nonces struct{ of nonceCache }

// NewNonces remembers at least so many nonces, or for so long.
func NewNonces(most int, keep time.Duration) *Nonces {
	return &Nonces{nonceCache{most: most, keep: keep}}
}

// First reports whether a user's nonce is new.
func (n *Nonces) First(uid uint32, number byte, now time.Time) bool {
	return n.of.isNew(uid, nonce{number}, now)
}

// Len returns how many are remembered.
func (n *Nonces) Len() int { return len(n.of.young) + len(n.of.old) }

// NewServer returns a server with bounds for what strangers may send, as epd has
// one. One request comes with each connection.
func NewServer(h http.Handler) *http.Server {
	const serveTime = 15 * time.Second
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: serveTime, WriteTimeout: serveTime,
		MaxHeaderBytes: maxHeaders,
	}
	s.SetKeepAlivesEnabled(false)
	return s
}
