package munge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"
)

const (
	contentType     = "application/json"
	admitTimeout    = 5 * time.Second // for munged and for the body to come
	headerTimeout   = time.Second
	nonceGeneration = 32 << 10 // nonces
	maxPerUser      = 16       // requests at once, of anybody but root
	// maxPatient is how many requests that nobody waits for munged is asked about at once: a quarter of all.
	maxPatient = maxCalls / 4
)

// Options say whom [Authenticate] lets through.
type Options struct {
	// Allow tells who may ask; nil: everybody with a credential.
	Allow func(uid uint32) bool
	// Refused hears of each refused request: where it came from and why.
	// It must not block. It may be nil.
	Refused func(remote string, err error)
	// Patient tells of a request, of which nothing is proved yet, that nobody waits for its answer: munged
	// is asked about a few of these at a time, so that however many come at once, they keep it from no
	// other request for long. Nil: of none.
	Patient func(r *http.Request) bool
	// Clock is time.Now unless given.
	Clock func() time.Time
}

// Peer is who sent a request.
type Peer struct {
	UID, GID uint32
	Node     string        // whose key the credential is of; empty: munge's doesn't say
	Origin   netip.Addr    // where munge says that the credential was made; invalid: it doesn't
	Age      time.Duration // of the credential; negative: its clock is ahead
}

type peerKey struct{}

// PeerOf returns who sent the request with a context.
func PeerOf(ctx context.Context) (Peer, bool) {
	p, ok := ctx.Value(peerKey{}).(Peer)
	return p, ok
}

// Authenticate lets a request through to next only if a credential binds
// it, and signs what next answers. Next sees a request of which everything was
// signed: method, path, query and body; [PeerOf] tells who sent it.
//
// Refusals are {"error": …}: 401 without a credential that counts, 403 for
// somebody who may not ask, 408 and 413 for a body that comes too slowly or is
// too long, 429 for too many requests at once, 503 without munged. They are
// signed where the caller's nonce is known.
func Authenticate(next http.Handler, m Voucher, o Options) http.Handler {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &authHandler{
		next: next, voucher: m, options: o,
		// A credential counts for a lifetime before and after it was made.
		nonces:       nonceCache{most: nonceGeneration, keep: 2*credentialLifetime + admitTimeout},
		admitTimeout: admitTimeout,
		patient:      make(chan struct{}, maxPatient),
	}
}

type authHandler struct {
	next         http.Handler
	voucher      Voucher
	options      Options
	nonces       nonceCache
	load         userLoad
	admitTimeout time.Duration // with munged, and with bodies
	patient      chan struct{} // questions to munged for requests that nobody waits for
}

// caller is what is known of who sent a request.
type caller struct {
	Peer
	nonce nonce
	known bool // the nonce, and that munge vouches for the user
}

func (g *authHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var from caller
	body, err := g.admit(w, r, &from)
	if err == nil && !g.load.tryBegin(from.UID) {
		err = refusalError{
			http.StatusTooManyRequests, fmt.Errorf("uid %d has %d requests under way", from.UID, maxPerUser),
		}
	}
	if err != nil {
		g.refuse(w, r, &from, err)
		return
	}
	defer g.load.end(from.UID)
	a := &bufferedResponse{header: make(http.Header), status: http.StatusOK}
	g.next.ServeHTTP(a, signedRequest(r, from.Peer, body))
	if a.body.Len() > maxAnswer {
		g.refuse(w, r, &from, refusalError{
			http.StatusInternalServerError, errors.New("the answer is too long"),
		})
		return
	}
	g.send(w, r, &from, a.status, a.body.Bytes())
}

// takeTurn waits, for a request that nobody waits for, until munged is asked about few others.
func (g *authHandler) takeTurn(ctx context.Context, r *http.Request) (done func(), err error) {
	if g.options.Patient == nil || !g.options.Patient(r) {
		return func() {}, nil
	}
	select {
	case g.patient <- struct{}{}:
		return func() { <-g.patient }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: too many such requests at once", ErrUnavailable)
	}
}

// decode checks the credential of a request.
func (g *authHandler) decode(ctx context.Context, r *http.Request, credential string) (Credential, error) {
	done, err := g.takeTurn(ctx, r)
	if err != nil {
		return Credential{}, err
	}
	defer done()
	return g.voucher.Decode(ctx, credential)
}

// sign makes the credential of an answer.
func (g *authHandler) sign(r *http.Request, payload []byte, t CredentialTerms) (string, error) {
	// A body that came too slowly has ended the context of its request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), g.admitTimeout)
	defer cancel()
	done, err := g.takeTurn(ctx, r)
	if err != nil {
		return "", err
	}
	defer done()
	return g.voucher.Encode(ctx, payload, t)
}

// admit checks a request and reads its body. The body of a stranger isn't read.
func (g *authHandler) admit(w http.ResponseWriter, r *http.Request, from *caller) ([]byte, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return nil, refusalError{
			http.StatusMethodNotAllowed, fmt.Errorf("method %.20q isn't served", r.Method),
		}
	}
	text, err := singleCredential(r.Header)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), g.admitTimeout)
	defer cancel()
	c, err := g.decode(ctx, r, text)
	if err != nil && !isStale(err) {
		return nil, err
	}
	from.Peer = Peer{UID: c.UID, GID: c.GID, Node: c.Node, Origin: c.Origin, Age: c.Age()}
	asked, unbound := openRequest(c.Payload, r)
	from.nonce, from.known = asked.nonce, asked.known
	switch {
	case err != nil:
		return nil, err
	case unbound != nil:
		return nil, unbound
	}
	if err := g.checkFresh(&c, asked.nonce); err != nil {
		return nil, err
	}
	if g.options.Allow != nil && !g.options.Allow(c.UID) {
		return nil, fmt.Errorf("uid %d is %w to ask", c.UID, ErrForbidden)
	}
	return g.readSigned(w, r, asked.body)
}

// checkFresh reports whether a credential is young enough and new. munged looks too,
// but allows what the caller wished, and forgets when it is started anew.
func (g *authHandler) checkFresh(c *Credential, n nonce) error {
	switch age := c.Age(); {
	case age > credentialLifetime:
		return TooOldError(age, credentialLifetime)
	case age < -credentialLifetime:
		return FromFutureError(age)
	case !g.nonces.isNew(c.UID, n, g.options.Clock()):
		return ErrReplayed
	}
	return nil
}

// readSigned reads a request's body within its time, and compares it.
func (g *authHandler) readSigned(w http.ResponseWriter, r *http.Request, want string) ([]byte, error) {
	in := http.NewResponseController(w)
	_ = in.SetReadDeadline(time.Now().Add(g.admitTimeout)) // servers of tests can't
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	tooLarge := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &tooLarge):
		return nil, refusalError{
			http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", maxRequest),
		}
	case err != nil:
		return nil, refusalError{http.StatusRequestTimeout, fmt.Errorf("the body doesn't come: %w", err)}
	case textDigest(body) != want:
		return nil, fmt.Errorf("%w: its body is another one", ErrBinding)
	}
	_ = in.SetReadDeadline(time.Time{})
	return body, nil
}

// signedRequest returns a request without anything that wasn't signed.
func signedRequest(r *http.Request, from Peer, body []byte) *http.Request {
	q := r.Clone(context.WithValue(r.Context(), peerKey{}, from))
	q.Header, q.Trailer, q.TransferEncoding = http.Header{"Content-Type": {contentType}}, nil, nil
	q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return q
}

// refusalError is an error with the status that tells of it.
type refusalError struct {
	status int
	error
}

func (r refusalError) Unwrap() error { return r.error }

func statusOf(err error) int {
	var r refusalError
	switch {
	case errors.As(err, &r):
		return r.status
	case errors.Is(err, ErrForbidden):
		return http.StatusForbidden
	case errors.Is(err, ErrUnavailable):
		return http.StatusServiceUnavailable
	case errors.Is(err, ErrTooMany):
		return http.StatusTooManyRequests
	}
	return http.StatusUnauthorized
}

// refuse tells a caller why not.
func (g *authHandler) refuse(w http.ResponseWriter, r *http.Request, to *caller, why error) {
	if g.options.Refused != nil {
		g.options.Refused(r.RemoteAddr, why)
	}
	// What is still to come of a body isn't waited for long.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTimeout))
	w.Header().Set("Connection", "close")
	text := why.Error()
	if errors.Is(why, ErrUnavailable) {
		text = ErrUnavailable.Error() // where it should is nobody's business
	}
	body, err := json.Marshal(map[string]string{"error": text})
	if err != nil {
		body = []byte(`{"error":"refused"}`)
	}
	g.send(w, r, to, statusOf(why), body)
}

// send answers, signed if the caller is known.
func (g *authHandler) send(w http.ResponseWriter, r *http.Request, to *caller, status int, body []byte) {
	if to.known {
		credential, err := g.sign(r, replyStatement(to.nonce, status, body), CredentialTerms{
			TTL: credentialLifetime, For: &to.UID,
		})
		if err != nil { // the caller trusts no answer now, only people read this one
			status, body = http.StatusServiceUnavailable,
				[]byte(`{"error":"the answer can't be signed: munged doesn't answer"}`)
		} else {
			w.Header().Set(Header, credential)
		}
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may have gone
}
