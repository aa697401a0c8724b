package web

import (
	"bytes"
	"io"
	"net/http"
)

// answer keeps what a handler answers.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is the answer's header.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader keeps the status.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write keeps a part of the body.
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// response is the answer to a request.
func (a *answer) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r,
	}
}

// whole has an answer made in a turn, and sends it when the turn is done: one
// that nobody fetches holds up nobody else.
func whole(w http.ResponseWriter, done func(), serve func(http.ResponseWriter)) {
	a := &answer{header: w.Header(), status: http.StatusOK}
	func() {
		defer done()
		serve(a)
	}()
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // whoever asked may have gone
}
