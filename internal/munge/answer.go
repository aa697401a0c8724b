package munge

import (
	"bytes"
	"net/http"
	"sync"
)

// bufferedResponse keeps what a handler writes until it is signed.
type bufferedResponse struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

// Header is lost, for it isn't signed.
func (a *bufferedResponse) Header() http.Header { return a.header }

// WriteHeader keeps the first final status.
func (a *bufferedResponse) WriteHeader(status int) {
	if !a.wrote && status >= http.StatusOK {
		a.status, a.wrote = status, true
	}
}

// Write keeps a body, but not much more than may be sent.
func (a *bufferedResponse) Write(p []byte) (int, error) {
	a.wrote = true
	switch {
	case a.status == http.StatusNoContent || a.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case a.body.Len() > maxAnswer:
		return 0, http.ErrContentLength
	}
	return a.body.Write(p)
}

// userLoad counts the requests that users have under way.
type userLoad struct {
	mu sync.Mutex
	of map[uint32]int
}

// tryBegin reports whether a user may have one more. Root has agents on every node,
// and bounds of its own elsewhere.
func (l *userLoad) tryBegin(uid uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if uid != 0 && l.of[uid] >= maxPerUser {
		return false
	}
	if l.of == nil {
		l.of = make(map[uint32]int)
	}
	l.of[uid]++
	return true
}

func (l *userLoad) end(uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[uid]--; l.of[uid] == 0 {
		delete(l.of, uid)
	}
}
