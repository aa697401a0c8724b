package munge_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/munge"
)

// open vouches for everything: a credential is its own payload, by root, made now.
type open struct{ now time.Time }

func (open) Encode(_ context.Context, payload []byte, _ munge.CredentialTerms) (string, error) {
	return string(payload), nil
}

func (o open) Decode(_ context.Context, text string) (munge.Credential, error) {
	return munge.Credential{Encoded: o.now, Decoded: o.now, TTL: time.Minute, Payload: []byte(text)}, nil
}

// Whatever comes to a port that proves who asks: what is served is the one request that the credential's
// statement is of, method, path, query and body, and every answer is JSON.
func FuzzProvenRequests(f *testing.F) {
	digest := func(body string) string { return munge.Digest([]byte(body)) }
	const nonce = "000102030405060708090a0b0c0d0e0f"
	states := func(method, target, body string) string { return says(nonce, method, target, body) }
	for _, one := range [][4]string{
		{"POST", "/v1/decide?x=1", "{}", states("POST", "/v1/decide?x=1", "{}")},
		{"GET", "/v1/status", "", states("GET", "/v1/status", "")},
		{"GET", "/v1/status", "", states("POST", "/v1/status", "")},
		{"POST", "/v1/decide", "{}", states("POST", "/v1/decide", "[]")},
		{"POST", "/v1/decide", "{}", ""},
		{"POST", "/v1/a b", "", "x y z"},
		{"PUT", "/", "", states("PUT", "/", "")},
		{"POST", "/a%20b", "", states("POST", "/a%20b", "")},
	} {
		f.Add(one[0], one[1], one[2], one[3])
	}
	now := time.Unix(1e9, 0)
	f.Fuzz(func(t *testing.T, method, target, body, credential string) {
		to, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		served := 0
		next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served++
			got, err := io.ReadAll(r.Body)
			words := strings.Split(credential, " ")
			if err != nil || string(got) != body || r.Method != method || r.URL.RequestURI() != to.RequestURI() ||
				len(words) != 6 || words[3] != method || words[4] != digest(target) || words[5] != digest(body) {
				t.Fatalf("%s %s %q is served as %s %s %q by %q", method, target, body, r.Method, r.URL, got, credential)
			}
			_, _ = io.WriteString(w, "{}")
		})
		w := httptest.NewRecorder()
		r := (&http.Request{
			Method: method, URL: to, RequestURI: target, Host: "epd", Header: http.Header{munge.Header: {credential}},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), RemoteAddr: "127.0.0.1:1",
		}).WithContext(t.Context())
		munge.Authenticate(next, open{now}, munge.Options{Clock: func() time.Time { return now }}).ServeHTTP(w, r)
		if (served == 1) != (w.Code == http.StatusOK) || !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %s: status %d, served %d times: %s", method, target, w.Code, served, w.Body)
		}
	})
}
