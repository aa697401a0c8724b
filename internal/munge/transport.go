package munge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Bounds of requests and answers.
const (
	maxRequest       = 1 << 20 // bytes of a body
	maxAnswer        = 8 << 20
	maxHeaders       = 16 << 10
	roundTripTimeout = 10 * time.Second
	dialTimeout      = 3 * time.Second // to connect
)

// Transport sends requests with a credential and takes only answers with one.
// It keeps no connections: a request that a broken one swallows can't be told
// from one that was done, and its credential is good for once.
type Transport struct {
	voucher   Voucher
	base      http.RoundTripper
	trusted   []uint32
	trustFunc func(uid uint32) bool
}

// NewTransport returns a transport that takes answers from root, and from the users
// given, such as Slurm's.
func NewTransport(m Voucher, trusted ...uint32) *Transport {
	dialer := rootDialer{plain: net.Dialer{Timeout: dialTimeout}, root: os.Geteuid() == 0}
	return &Transport{voucher: m, trusted: append([]uint32{0}, trusted...), base: &http.Transport{
		DialContext:            dialer.DialContext,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaders,
	}}
}

// rootDialer connects from a port that only root has, if this is root: a server keeps places for those,
// which users of the machine can't take.
type rootDialer struct {
	plain net.Dialer
	root  bool
	// fails is until when such ports aren't tried, since something on the way doesn't like them.
	fails atomic.Int64
}

// Of the ports below 1024 those above the ones that servers have.
const (
	lowestRootPort  = 700
	highestRootPort = 1023
	rootPortTries   = 32 // of ports that others may have
	plainFor        = 10 * time.Minute
)

// DialContext connects.
func (d *rootDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !d.root || time.Now().UnixNano() < d.fails.Load() {
		return d.plain.DialContext(ctx, network, address)
	}
	taken := 0
	for ; taken < rootPortTries; taken++ {
		dialer := d.plain
		dialer.Control = reuseAddress
		dialer.LocalAddr = &net.TCPAddr{Port: lowestRootPort + rand.IntN(highestRootPort-lowestRootPort+1)} //nolint:gosec // any port will do
		c, err := dialer.DialContext(ctx, network, address)
		switch {
		case err == nil || errors.Is(err, syscall.ECONNREFUSED) || ctx.Err() != nil:
			if ctx.Err() != nil && err != nil {
				d.fails.Store(time.Now().Add(plainFor).UnixNano())
			}
			return c, err
		case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, syscall.EADDRNOTAVAIL):
			continue
		}
		break // a capability is missing, or packets from such ports get lost
	}
	c, err := d.plain.DialContext(ctx, network, address)
	if err == nil && taken < rootPortTries {
		d.fails.Store(time.Now().Add(plainFor).UnixNano())
	}
	return c, err
}

// reuseAddress has a socket take a port that connections to other servers have, or had within the last
// minute: there are few such ports, and an agent or a controller connects several times a second.
func reuseAddress(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	})
	return errors.Join(err, failed)
}

// Trust has answers taken also from those whom a function names, who may
// become more. It returns the transport.
func (t *Transport) Trust(also func(uid uint32) bool) *Transport {
	t.trustFunc = also
	return t
}

// RoundTrip sends a request. The body of the answer is in memory, its headers
// are those that it is known to have. Errors are [ErrUnauthentic] for an answer
// that must not be used, [ErrUnavailable] where this machine's munged is to
// blame, [ErrTooLong], and those of the network.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), roundTripTimeout)
	defer cancel()
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	n, method := newNonce(), cmp.Or(r.Method, http.MethodGet)
	statement := requestStatement(n, method, textDigest([]byte(r.URL.RequestURI())), textDigest(body))
	credential, err := t.voucher.Encode(ctx, statement, CredentialTerms{TTL: credentialLifetime})
	if err != nil {
		return nil, err
	}
	signed := r.Clone(ctx)
	signed.Body, signed.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if len(body) == 0 {
		signed.Body = http.NoBody
	}
	signed.GetBody, signed.Method = nil, method
	if signed.Header == nil {
		signed.Header = make(http.Header)
	}
	signed.Header.Set(Header, credential)
	response, err := t.base.RoundTrip(signed)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer breaks off: %w", err)
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("the answer is %w: it has more than %d bytes", ErrTooLong, maxAnswer)
	}
	if err := t.verify(ctx, response, n, answer); err != nil {
		return nil, err
	}
	return signedResponse(r, response.StatusCode, answer), nil
}

// readBody reads a request's body, and closes it.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	_ = r.Body.Close()
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxRequest:
		return nil, fmt.Errorf("the request is %w: it has more than %d bytes", ErrTooLong, maxRequest)
	}
	return body, nil
}

// verify reports whether somebody trusted vouches for an answer to the request
// with a nonce.
func (t *Transport) verify(ctx context.Context, r *http.Response, n nonce, body []byte) error {
	text, err := singleCredential(r.Header)
	if err != nil {
		hint := ""
		if _, ok := t.voucher.(*Client); ok {
			hint = " (is munge's key the same on both machines?)"
		}
		return fmt.Errorf("%w: with status %d: %w%s", ErrUnauthentic, r.StatusCode, err, hint)
	}
	c, err := t.voucher.Decode(ctx, text)
	if err != nil {
		return fmt.Errorf("%w: with status %d: %w", ErrUnauthentic, r.StatusCode, err)
	}
	if !slices.Contains(t.trusted, c.UID) && (t.trustFunc == nil || !t.trustFunc(c.UID)) {
		return fmt.Errorf("%w: uid %d vouches for it, who isn't trusted", ErrUnauthentic, c.UID)
	}
	if err := checkStatement(c.Payload, replyStatement(n, r.StatusCode, body), replyParts); err != nil {
		return fmt.Errorf("%w: %w", ErrUnauthentic, err)
	}
	return nil
}

// singleCredential returns the credential of a message, which has exactly one.
func singleCredential(h http.Header) (string, error) {
	switch all := h.Values(Header); len(all) {
	case 0:
		return "", fmt.Errorf("%w: there is none", ErrInvalid)
	case 1:
		return all[0], nil
	default:
		return "", fmt.Errorf("%w: there are %d", ErrInvalid, len(all))
	}
}

// signedResponse returns an answer made of nothing but what was signed.
func signedResponse(r *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {contentType}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       r,
	}
}
