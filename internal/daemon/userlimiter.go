package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
)

// What users may ask at the same time. Slurm's own questions and those of
// agents aren't among it.
const (
	maxPerUser  = 4              // questions of one user
	maxOfUsers  = 64             // of all users
	maxFirst    = 256            // of all users with those who have no other question
	maxOfRange  = maxOfUsers / 2 // of the uids of a range, which may be one user's
	maxQuestion = 1 << 20
	bodyBound   = 2 * time.Second // for a user's question to come
	turnBound   = 3 * time.Second // for its turn
)

// userLimiter bounds what users ask at the same time, so that Slurm's questions find
// a processor that is free: users' questions are worked on by half of them. A
// question that comes slowly, and an answer that isn't fetched, hold up nobody
// else.
//
// Users have equal shares: one who asks nothing else finds a place however many questions others have, and of
// those that wait for their turn the next is of the user who had fewest (start-time fair queueing: Goyal, Vin
// and Cheng, SIGCOMM 1996, each question of the same length).
type userLimiter struct {
	mu   sync.Mutex
	all  int
	of   map[string]int
	uids subordinateUIDs

	busy    int              // questions that are worked on
	waiting []*turn          // in the order in which they came
	served  int64            // the tag of the question that was begun last
	tags    map[string]int64 // of users' last questions, where they are above served
}

// turn is a question that waits to be worked on.
type turn struct {
	tag   int64 // how many questions of its user come before it, from those of others that are begun now
	begin chan struct{}
}

// userTurns returns how many questions of users are worked on at once.
func userTurns() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// tryEnter reports whether a user may ask one more question; its place is for leave.
func (c *userLimiter) tryEnter(uid uint32) (place []string, ok bool) {
	who, many := c.uids.owner(uid), uidRange(uid)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of, c.tags = make(map[string]int), make(map[string]int64)
	}
	room := maxOfUsers
	if c.of[who] == 0 {
		room = maxFirst
	}
	if c.all >= room || c.of[who] >= maxPerUser || many != "" && c.of[many] >= maxOfRange {
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

// acquireTurn waits until a user's question may be worked on.
func (c *userLimiter) acquireTurn(ctx context.Context, who string) bool {
	mine := c.queue(who)
	timer := time.NewTimer(turnBound)
	defer timer.Stop()
	select {
	case <-mine.begin:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.waiting, mine); i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
		return false
	}
	return true // it began meanwhile
}

// queue has a user's question wait for its turn, and begins it if there is one.
func (c *userLimiter) queue(who string) *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := &turn{max(c.served, c.tags[who]), make(chan struct{})}
	c.tags[who] = mine.tag + 1
	c.waiting = append(c.waiting, mine)
	c.beginNext()
	return mine
}

// endTurn ends a question that was worked on.
func (c *userLimiter) endTurn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	c.beginNext()
}

// beginNext begins questions while there are turns. The caller holds c.mu.
func (c *userLimiter) beginNext() {
	for c.busy < userTurns() && len(c.waiting) > 0 {
		next := 0
		for i, t := range c.waiting {
			if t.tag < c.waiting[next].tag {
				next = i
			}
		}
		t := c.waiting[next]
		c.waiting = slices.Delete(c.waiting, next, next+1)
		c.busy++
		c.served = max(c.served, t.tag)
		close(t.begin)
	}
	if len(c.tags) > 2*maxFirst {
		maps.DeleteFunc(c.tags, func(_ string, tag int64) bool { return tag <= c.served })
	}
}

// serve has a user's question answered; as is the request that the handler
// gets, made once the user may ask.
func (c *userLimiter) serve(
	w http.ResponseWriter, r *http.Request, uid uint32, h http.Handler, as func(*http.Request) *http.Request,
) {
	place, ok := c.tryEnter(uid)
	if !ok {
		reply(w, http.StatusTooManyRequests,
			epdapi.ErrorAnswer{Error: "too many questions at once: wait for the answers"})
		return
	}
	defer c.leave(place)
	body, err := readQuestion(w, r)
	if err != nil {
		status := http.StatusRequestTimeout
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		reply(w, status, epdapi.ErrorAnswer{Error: err.Error()})
		return
	}
	r = as(r)
	if !c.acquireTurn(r.Context(), place[0]) {
		reply(w, http.StatusServiceUnavailable, epdapi.ErrorAnswer{Error: "others ask too much now: try again"})
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	a := &bufferedAnswer{ResponseWriter: w, status: http.StatusOK}
	func() {
		defer c.endTurn()
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
