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

// Header carries the credential, of a request and of its answer.
const Header = "Epplan-Munge"

// What is signed. A credential of a request never vouches for an answer.
const (
	signature   = "epplan/1"
	kindRequest = "request"
	kindReply   = "reply"

	lifetime = time.Minute // of a credential: as far may clocks be apart
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

// digest is a text of known length for one of any.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// requestStatement is what a request's credential says.
func requestStatement(n nonce, method, target, body string) []byte {
	return fmt.Appendf(nil, "%s %s %x %s %s %s", signature, kindRequest, n, method, target, body)
}

// replyStatement is what an answer's credential says.
func replyStatement(n nonce, status int, body []byte) []byte {
	return fmt.Appendf(nil, "%s %s %x %s %s", signature, kindReply, n, strconv.Itoa(status), digest(body))
}

// request is what a request's credential says of it.
type request struct {
	nonce nonce
	known bool   // the nonce: an answer can be bound to it
	body  string // digest
}

// openRequest checks what a credential says against a request's method and
// path. The nonce is given even if these aren't right.
func openRequest(payload []byte, r *http.Request) (request, error) {
	var q request
	const kindAt, nonceAt, bodyAt = 1, 2, 5
	parts := strings.Split(string(payload), " ")
	if len(parts) == len(requestParts) && parts[0] == signature && parts[kindAt] == kindRequest {
		n, err := hex.DecodeString(parts[nonceAt])
		q.known = err == nil && copy(q.nonce[:], n) == len(q.nonce)
		q.body = parts[bodyAt]
	}
	want := requestStatement(q.nonce, r.Method, digest([]byte(r.RequestURI)), q.body)
	return q, compare(payload, want, requestParts)
}

// compare names the first part of a statement that isn't as it should be.
func compare(got, want []byte, parts []string) error {
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
