package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// counter says in a header who asks.
func counter(r *http.Request) int64 {
	uid, err := strconv.ParseInt(r.Header.Get("Uid"), 10, 64)
	if err != nil {
		return nobody
	}
	return uid
}

// office answers everybody; users' questions wait until the office opens.
type office struct {
	url  string
	open func()

	mu       sync.Mutex
	busy     int // users' questions that are worked on
	mostBusy int
}

func newOffice(t *testing.T) *office {
	t.Helper()
	gate := make(chan struct{})
	o := &office{open: sync.OnceFunc(func() { close(gate) })}
	server := httptest.NewServer((&Access{}).serveUsers(counter,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if counter(r) > 0 {
				o.work(1)
				<-gate
				o.work(-1)
			}
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
			_, _ = fmt.Fprintf(w, "%d asked %s", counter(r), body)
		})))
	t.Cleanup(server.Close)
	t.Cleanup(o.open)
	o.url = server.URL
	return o
}

func (o *office) work(change int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy += change
	o.mostBusy = max(o.mostBusy, o.busy)
}

// ask asks as a user; status 0: there was no answer in time.
func (o *office) ask(t *testing.T, uid int, question string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, strings.NewReader(question))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header.Set("Uid", strconv.Itoa(uid))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(body)
}

func TestSlurmIsAnsweredAtOnceHoweverMuchUsersAsk(t *testing.T) {
	o := newOffice(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	statuses := make(map[int]int)
	for uid := range 20 {
		for range 5 {
			group.Go(func() {
				status, _ := o.ask(t, 1000+uid, "much")
				mu.Lock()
				defer mu.Unlock()
				statuses[status]++
			})
		}
	}
	for { // one of each user's five is refused, and those beyond all users' share
		mu.Lock()
		refused := statuses[http.StatusTooManyRequests]
		mu.Unlock()
		if refused >= 20*5-maxOfUsers-20 { // each user's first one finds a place
			break
		}
		<-time.After(time.Millisecond)
	}
	if status, text := o.ask(t, 0, "submit"); status != http.StatusAccepted ||
		text != "0 asked submit" {
		t.Errorf("root: %d, %q", status, text)
	}
	o.open()
	group.Wait()
	if statuses[http.StatusAccepted]+statuses[http.StatusTooManyRequests]+
		statuses[http.StatusServiceUnavailable] != 100 || statuses[http.StatusAccepted] == 0 {
		t.Errorf("answers by status: %v", statuses)
	}
	if most := userTurns(); o.mostBusy > most {
		t.Errorf("%d questions of users were worked on at once, want at most %d", o.mostBusy, most)
	}
}

func TestAUsersQuestionThatComesSlowlyHoldsUpNobody(t *testing.T) {
	o := newOffice(t)
	o.open()
	for uid := range 3 * userTurns() {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(o.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // the test ends
		if _, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: epd\r\nUid: %d\r\nContent-Length: 10\r\n\r\nx",
			1000+uid); err != nil {
			t.Fatal(err)
		}
	}
	if status, text := o.ask(t, 2000, "quick"); status != http.StatusAccepted ||
		text != "2000 asked quick" {
		t.Errorf("%d, %q", status, text)
	}
}

func TestAUsersQuestionIsBounded(t *testing.T) {
	o := newOffice(t)
	o.open()
	if status, text := o.ask(t, 1000, strings.Repeat("x", maxQuestion+1)); status !=
		http.StatusRequestEntityTooLarge {
		t.Errorf("%d, %.80q", status, text)
	}
}

// Sixteen uids of one user took all places of users.
func TestAUsersOtherUIDsLeavePlacesForOthersQuestions(t *testing.T) {
	var c userLimiter
	c.uids.path = filepath.Join(t.TempDir(), "subuid")
	enter := func(uid uint32) bool {
		_, ok := c.tryEnter(uid)
		return ok
	}
	for uid := range uint32(100) {
		for range maxPerUser {
			enter(firstSubordinate + uid)
		}
	}
	if c.all != maxOfRange || !enter(1000) {
		t.Errorf("%d questions of the uids of one range leave no place", c.all)
	}
	c = userLimiter{}
	c.uids.path = filepath.Join(t.TempDir(), "subuid")
	if err := os.WriteFile(c.uids.path, []byte("ada:100000:65536\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	places, _ := c.tryEnter(firstSubordinate)
	for uid := range uint32(100) {
		enter(firstSubordinate + uid)
	}
	if c.all != maxPerUser {
		t.Errorf("ada asks %d questions by other uids, want %d", c.all, maxPerUser)
	}
	if c.leave(places); !enter(firstSubordinate+200) || enter(firstSubordinate+201) {
		t.Error("a place that became free is nobody's, or everybody's")
	}
}

// Of thirty accounts with four questions each, all others' questions were refused.
func TestOneWhoAsksNothingElseFindsAPlaceHoweverManyOthersAsk(t *testing.T) {
	var c userLimiter
	c.uids.path = filepath.Join(t.TempDir(), "subuid")
	for uid := range uint32(100) {
		for range maxPerUser {
			c.tryEnter(2000 + uid)
		}
	}
	place, ok := c.tryEnter(1500)
	if !ok {
		t.Fatalf("refused, while %d questions are asked", c.all)
	}
	if _, ok := c.tryEnter(1500); ok {
		t.Error("a second one finds a place, too")
	}
	c.leave(place)
	if _, ok := c.tryEnter(1500); !ok {
		t.Error("refused after its answer")
	}
	for uid := range uint32(1000) {
		c.tryEnter(5000 + uid)
	}
	if c.all != maxFirst {
		t.Errorf("%d questions at once, want at most %d", c.all, maxFirst)
	}
}

// Whoever asks how much: the next question is of a user who had fewest.
func TestQuestionsTakeTurnsByUser(t *testing.T) {
	var c userLimiter
	c.of, c.tags = make(map[string]int), make(map[string]int64)
	for range userTurns() { // all turns are taken
		<-c.queue("busy").begin
	}
	begun := make(map[*turn]string)
	var all []*turn
	ask := func(who string, times int) {
		for range times {
			one := c.queue(who)
			begun[one] = who
			all = append(all, one)
		}
	}
	ask("many", 8)
	ask("some", 2)
	ask("one", 1)
	var order []string
	for range all {
		c.endTurn()
		for i, one := range all {
			select {
			case <-one.begin:
				order = append(order, begun[one])
				all = slices.Delete(slices.Clone(all), i, i+1)
			default:
				continue
			}
			break
		}
	}
	if got := strings.Join(order[:5], " "); got != "many some one many some" {
		t.Errorf("the turns went to %v", order)
	}
}
