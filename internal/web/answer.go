package web

import (
	"bytes"
	"net/http"
)

// responseRecorder keeps what a handler answers.
type responseRecorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is the answer's header.
func (a *responseRecorder) Header() http.Header { return a.header }

// WriteHeader keeps the status.
func (a *responseRecorder) WriteHeader(status int) { a.status = status }

// Write keeps a part of the body.
func (a *responseRecorder) Write(p []byte) (int, error) { return a.body.Write(p) }

// serveBuffered has an answer made in a turn, and sends it when the turn is done: one
// that nobody fetches holds up nobody else.
func serveBuffered(w http.ResponseWriter, done func(), serve func(http.ResponseWriter)) {
	a := &responseRecorder{header: w.Header(), status: http.StatusOK}
	func() {
		defer done()
		serve(a)
	}()
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // whoever asked may have gone
}
