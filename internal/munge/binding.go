package munge

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Header carries the credential, of a request and of its answer, also one that no munge made.
const Header = "Epplan-Munge"

// What is signed. A credential of a request never vouches for an answer.
const (
	protocolVersion = "epplan/1"
	kindRequest     = "request"
	kindReply       = "reply"

	credentialLifetime = time.Minute // of a credential: as far may clocks be apart
)

var (
	requestParts = []string{"version", "kind", "nonce", "method", "path", "body"}
	replyParts   = []string{"version", "kind", "nonce", "status", "body"}
)

// nonce tells requests apart.
type nonce [16]byte

func newNonce() (n nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// textDigest returns a text of known length for one of any.
func textDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// requestStatement returns what a request's credential says.
func requestStatement(n nonce, method, target, body string) []byte {
	return fmt.Appendf(nil, "%s %s %x %s %s %s", protocolVersion, kindRequest, n, method, target, body)
}

// replyStatement returns what an answer's credential says.
func replyStatement(n nonce, status int, body []byte) []byte {
	return fmt.Appendf(nil, "%s %s %x %s %s", protocolVersion, kindReply, n, strconv.Itoa(status),
		textDigest(body))
}

// requestClaim is what a request's credential says of it.
type requestClaim struct {
	nonce nonce
	known bool   // the nonce: an answer can be bound to it
	body  string // digest
}

// openRequest checks what a credential says against a request's method and
// path. The nonce is given even if these aren't right.
func openRequest(payload []byte, r *http.Request) (requestClaim, error) {
	var q requestClaim
	const kindAt, nonceAt, bodyAt = 1, 2, 5
	parts := strings.Split(string(payload), " ")
	if len(parts) == len(requestParts) && parts[0] == protocolVersion && parts[kindAt] == kindRequest {
		n, err := hex.DecodeString(parts[nonceAt])
		q.known = err == nil && copy(q.nonce[:], n) == len(q.nonce)
		q.body = parts[bodyAt]
	}
	want := requestStatement(q.nonce, r.Method, textDigest([]byte(r.RequestURI)), q.body)
	return q, checkStatement(payload, want, requestParts)
}

// checkStatement names the first part of a statement that isn't as it should be.
func checkStatement(got, want []byte, parts []string) error {
	if bytes.Equal(got, want) {
		return nil
	}
	gots, wants := bytes.Split(got, []byte(" ")), bytes.Split(want, []byte(" "))
	for i, part := range parts {
		switch {
		case i >= len(gots):
			return fmt.Errorf("%w: it says nothing of the %s", ErrBinding, part)
		case !bytes.Equal(gots[i], wants[i]):
			return fmt.Errorf("%w: its %s is another one", ErrBinding, part)
		}
	}
	return fmt.Errorf("%w: it says more than it should", ErrBinding)
}
