package munge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// DefaultSocket is where munged listens unless told otherwise.
const DefaultSocket = "/run/munge/munge.socket.2"

// Bounds of what munged is asked.
const (
	maxPayload    = 4 << 10
	maxCredential = 8 << 10
	callTimeout   = 2 * time.Second
	maxCalls      = 16 // munged has two threads unless told otherwise
)

// Voucher makes credentials, and checks those of others: the munged of a [Client], or keys that machines have
// of their own.
type Voucher interface {
	// Encode makes a credential that vouches for a payload.
	Encode(ctx context.Context, payload []byte, t CredentialTerms) (string, error)
	// Decode checks one. With [ErrExpired], [ErrRewound] and [ErrReplayed] it is authentic and returned; with
	// all other errors it is empty.
	Decode(ctx context.Context, credential string) (Credential, error)
}

var _ Voucher = (*Client)(nil)

// Client asks a munged. It may be used by many goroutines.
type Client struct {
	socket string
	calls  chan struct{}
}

// New returns a client of the munged at a socket; at [DefaultSocket] where none is
// named.
func New(socket string) *Client {
	if socket == "" {
		socket = DefaultSocket
	}
	return &Client{socket: socket, calls: make(chan struct{}, maxCalls)}
}

// CredentialTerms are the terms of a credential.
type CredentialTerms struct {
	TTL time.Duration // whole seconds; 0: munged's default
	For *uint32       // the only user who may decode it; nil: anybody
}

// Credential is what a decoded credential says.
type Credential struct {
	UID, GID uint32 // of the process that had it made
	Node     string // whose key made it; empty: munge made it
	// Origin is where munge says that it was made; invalid: it doesn't. Whoever has munge's key can have it say
	// anything.
	Origin  netip.Addr
	Encoded time.Time
	Decoded time.Time // by the clock of the munged that was asked
	TTL     time.Duration
	Payload []byte
}

// Age returns how long ago the credential was made. Where it is negative, clocks
// differ.
func (c *Credential) Age() time.Duration { return c.Decoded.Sub(c.Encoded) }

// Encode has a credential made that vouches for a payload. Its errors are
// [ErrUnavailable] and [ErrTooLong].
func (c *Client) Encode(ctx context.Context, payload []byte, t CredentialTerms) (string, error) {
	if len(payload) > maxPayload {
		return "", fmt.Errorf("a payload of %d bytes is %w", len(payload), ErrTooLong)
	}
	who := uint32(anyUser)
	if t.For != nil {
		who = *t.For
	}
	body := []byte{defaultAlgorithm, defaultAlgorithm, defaultAlgorithm, 0}   // no realm
	body = binary.BigEndian.AppendUint32(body, uint32(roundedSeconds(t.TTL))) //nolint:gosec // munged bounds it
	body = binary.BigEndian.AppendUint32(body, who)                           // user
	body = binary.BigEndian.AppendUint32(body, anyUser)                       // group
	reply, err := c.ask(ctx, encodeRequest, appendSized(body, payload))       // reply: the credential
	if err != nil {
		return "", err
	}
	return parseEncoded(reply)
}

// Decode checks a credential. With [ErrExpired], [ErrRewound] and [ErrReplayed]
// it is authentic and returned; with all other errors it is empty.
func (c *Client) Decode(ctx context.Context, credential string) (Credential, error) {
	if !isWellFormed(credential) {
		return Credential{}, ErrInvalid
	}
	reply, err := c.ask(ctx, decodeRequest, appendSized(nil, append([]byte(credential), 0)))
	if err != nil {
		return Credential{}, err
	}
	return parseDecoded(reply)
}

// isWellFormed reports whether a text looks like a credential.
func isWellFormed(text string) bool {
	inside, ok := strings.CutPrefix(text, "MUNGE:")
	inside, end := strings.CutSuffix(inside, ":")
	if !ok || !end || inside == "" || len(text) > maxCredential {
		return false
	}
	for _, c := range []byte(inside) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '+' && c != '/' && c != '=' {
			return false
		}
	}
	return true
}

// ask sends one message and reads the one that answers it. Every error is
// [ErrUnavailable].
func (c *Client) ask(ctx context.Context, kind byte, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	select {
	case c.calls <- struct{}{}:
		defer func() { <-c.calls }()
	case <-ctx.Done():
		return nil, c.unavailable(context.Cause(ctx))
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, c.unavailable(err)
	}
	defer conn.Close() //nolint:errcheck // nothing was buffered
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(frameMessage(kind, body)); err != nil {
		return nil, c.unavailable(err)
	}
	reply, err := readMessage(conn, kind+1)
	if err != nil {
		return nil, c.unavailable(err)
	}
	return reply, nil
}

func (c *Client) unavailable(err error) error {
	return fmt.Errorf("%w at %s: %w", ErrUnavailable, c.socket, err)
}

// dial connects. A queue of callers that is full is waited for.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	for wait := time.Millisecond; ; wait *= 2 {
		conn, err := d.DialContext(ctx, "unix", c.socket)
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
	}
}
