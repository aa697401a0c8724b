package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
)

// What users may ask at the same time. Slurm's own questions and those of
// agents aren't among it.
const (
	maxPerUser  = 4              // questions of one user
	maxOfUsers  = 64             // of all users
	maxOfRange  = maxOfUsers / 2 // of the uids of a range, which may be one user's
	maxQuestion = 1 << 20
	bodyBound   = 2 * time.Second // for a user's question to come
	turnBound   = 3 * time.Second // for its turn
)

// userLimiter bounds what users ask at the same time, so that Slurm's questions find
// a processor that is free: users' questions are worked on by half of them. A
// question that comes slowly, and an answer that isn't fetched, hold up nobody
// else.
type userLimiter struct {
	mu    sync.Mutex
	all   int
	of    map[string]int
	uids  subordinateUIDs
	turns chan struct{}
}

// userTurns is how many questions of users are worked on at once.
func userTurns() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// tryEnter reports whether a user may ask one more question; its place is for leave.
func (c *userLimiter) tryEnter(uid uint32) (place []string, ok bool) {
	who, many := c.uids.owner(uid), uidRange(uid)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of, c.turns = make(map[string]int), make(chan struct{}, userTurns())
	}
	if c.all >= maxOfUsers || c.of[who] >= maxPerUser || many != "" && c.of[many] >= maxOfRange {
		return nil, false
	}
	if place = []string{who}; many != "" {
		place = append(place, many)
	}
	c.all++
	for _, name := range place {
		c.of[name]++
	}
	return place, true
}

func (c *userLimiter) leave(place []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	for _, name := range place {
		if c.of[name]--; c.of[name] == 0 {
			delete(c.of, name)
		}
	}
}

// acquireTurn waits until a question may be worked on.
func (c *userLimiter) acquireTurn(ctx context.Context) bool {
	timer := time.NewTimer(turnBound)
	defer timer.Stop()
	select {
	case c.turns <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// serve has a user's question answered; as is the request that the handler
// gets, made once the user may ask.
func (c *userLimiter) serve(
	w http.ResponseWriter, r *http.Request, uid uint32, h http.Handler, as func(*http.Request) *http.Request,
) {
	place, ok := c.tryEnter(uid)
	if !ok {
		reply(w, http.StatusTooManyRequests,
			epdapi.Fault{Error: "too many questions at once: wait for the answers"})
		return
	}
	defer c.leave(place)
	body, err := readQuestion(w, r)
	if err != nil {
		status := http.StatusRequestTimeout
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		reply(w, status, epdapi.Fault{Error: err.Error()})
		return
	}
	r = as(r)
	if !c.acquireTurn(r.Context()) {
		reply(w, http.StatusServiceUnavailable, epdapi.Fault{Error: "others ask too much now: try again"})
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	a := &bufferedAnswer{ResponseWriter: w, status: http.StatusOK}
	func() {
		defer func() { <-c.turns }()
		h.ServeHTTP(a, r)
	}()
	a.send()
}

// readQuestion reads a user's question within its time.
func readQuestion(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	in := http.NewResponseController(w)
	_ = in.SetReadDeadline(time.Now().Add(bodyBound)) // what serves munge can't
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	if err == nil {
		_ = in.SetReadDeadline(time.Time{})
	}
	return body, err
}

// bufferedAnswer keeps an answer until it is sent.
type bufferedAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader keeps the status.
func (a *bufferedAnswer) WriteHeader(status int) { a.status = status }

// Write keeps a part of the body.
func (a *bufferedAnswer) Write(p []byte) (int, error) { return a.body.Write(p) }

// send sends what was kept. The caller may have gone.
func (a *bufferedAnswer) send() {
	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(a.body.Bytes())
}
