package munge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/testkit/mungetest"
)

func TestARequestComesThroughAndItsAnswerBack(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	uid := os.Getuid()
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/status", "", 200},
		{"GET", "/v1/jobs?user=a%20b&x=%2f%00;&y", "", 200},
		{"POST", "/v1/outcome?status=425", `{"not":"yet"}`, 425},
		{"POST", "/v1/decide?status=404", strings.Repeat("x", 1<<20), 404},
		{"POST", "/v1/decide?status=302", "no redirect is followed", 302},
		{"POST", "/", "", 200},
	} {
		status, answer, err := s.ask(t, c.method, c.path, c.body)
		want := fmt.Sprintf("%d %s %s %s", uid, c.method, c.path, c.body)
		if err != nil || status != c.status || answer != want {
			t.Errorf("%s %s: %d %.80q, %v; want %d %.80q", c.method, c.path, status, answer, err,
				c.status, want)
		}
	}
	if s.why() != nil {
		t.Errorf("refused: %v", s.why())
	}
}

func TestManyRequestsAtOnceAreKeptApart(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			body := strings.Repeat("b", i)
			_, answer, err := s.ask(t, "POST", fmt.Sprintf("/%d", i), body)
			if want := fmt.Sprintf("%d POST /%d %s", os.Getuid(), i, body); err != nil || answer != want {
				t.Errorf("%q, %v; want %q", answer, err, want)
			}
		})
	}
	all.Wait()
}

func TestWhatIsntBoundToTheRequestIsRefused(t *testing.T) { //nolint:funlen // most of it is a table
	s := newSite(t, munge.Options{Allow: func(uid uint32) bool { return uid == 0 || uid == 400 }}, nil)
	good := says(someNonce, "POST", "/v1/decide?a=1", "body")
	other := mungetest.NewKey()
	ttl := mungetest.Credential{TTL: time.Hour}
	ago := func(d time.Duration) mungetest.Credential {
		return mungetest.Credential{Encoded: time.Now().Add(-d), TTL: time.Minute}
	}
	for name, c := range map[string]struct {
		payload string
		how     mungetest.Credential
		key     []byte
		status  int
		want    error
		says    string
		signed  bool
	}{
		"another method": {
			payload: says(someNonce, "GET", "/v1/decide?a=1", "body"), status: 401, want: munge.ErrBinding,
			says: "its method", signed: true,
		},
		"another path": {
			payload: says(someNonce, "POST", "/v1/outcome?a=1", "body"), status: 401, want: munge.ErrBinding,
			says: "its path", signed: true,
		},
		"another query": {
			payload: says(someNonce, "POST", "/v1/decide?a=2", "body"), status: 401, want: munge.ErrBinding,
			says: "its path", signed: true,
		},
		"another body": {
			payload: says(someNonce, "POST", "/v1/decide?a=1", "bodY"), status: 401, want: munge.ErrBinding,
			says: "its body", signed: true,
		},
		"an older version": {
			payload: strings.Replace(good, "epplan/1", "epplan/0", 1), status: 401, want: munge.ErrBinding,
			says: "its version",
		},
		"no version": {
			payload: strings.TrimPrefix(good, "epplan/1 "), status: 401, want: munge.ErrBinding,
			says: "its version",
		},
		"of an answer": {
			payload: "epplan/1 reply " + someNonce + " 200 " + munge.Digest([]byte("body")), status: 401,
			want: munge.ErrBinding, says: "its kind",
		},
		"nothing at all":     {payload: "", status: 401, want: munge.ErrBinding, says: "its version"},
		"of another program": {payload: "slurm", status: 401, want: munge.ErrBinding, says: "its version"},
		"more":               {payload: good + " more", status: 401, want: munge.ErrBinding, says: ""},
		"a short nonce": {
			payload: says("0011", "POST", "/v1/decide?a=1", "body"), status: 401, want: munge.ErrBinding,
			says: "its nonce",
		},
		"a nonce of letters": {
			payload: says(strings.Repeat("zz", 16), "POST", "/v1/decide?a=1", "body"), status: 401,
			want: munge.ErrBinding, says: "its nonce",
		},
		"another key": {
			payload: good, key: other, status: 401, want: munge.ErrKey, says: "another munge key",
		},
		"too old": {
			payload: good, how: ago(312 * time.Second), status: 401, want: munge.ErrExpired, says: "chronyc",
			signed: true,
		},
		"of tomorrow": {
			payload: good, how: ago(-312 * time.Second), status: 401, want: munge.ErrRewound, says: "s ahead",
			signed: true,
		},
		"old but long-lived": {
			payload: good,
			how:     mungetest.Credential{Encoded: time.Now().Add(-312 * time.Second), TTL: ttl.TTL},
			status:  401, want: munge.ErrExpired, says: "at most 60 s", signed: true,
		},
		"ahead, long-lived": {
			payload: good,
			how:     mungetest.Credential{Encoded: time.Now().Add(312 * time.Second), TTL: ttl.TTL},
			status:  401, want: munge.ErrRewound, says: "s ahead", signed: true,
		},
		"another user": {
			payload: good, how: mungetest.Credential{UID: 1000}, status: 403, want: munge.ErrForbidden,
			says: "uid 1000 is not allowed", signed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := s.here.Key
			if c.key != nil {
				key = c.key
			}
			status, text, signed := s.bare(t,
				s.signed(t, s.request(t, "POST", "/v1/decide?a=1", "body"), c.payload, c.how, key))
			if status != c.status || !errors.Is(s.why(), c.want) || !strings.Contains(text, c.says) ||
				signed != c.signed {
				t.Errorf("%d %q, signed %v, why %v", status, text, signed, s.why())
			}
		})
	}
	if s.count() != 0 {
		t.Fatalf("came through: %v", s.served)
	}
	// The same by one of those who may.
	status, _, signed := s.bare(t, s.signed(t, s.request(t, "POST", "/v1/decide?a=1", "body"), good,
		mungetest.Credential{UID: 400}, s.here.Key))
	if status != 200 || !signed || s.count() != 1 {
		t.Errorf("%d, signed %v, served %v", status, signed, s.served)
	}
}

func TestARequestWithoutExactlyOneCredentialIsRefusedUnread(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	for name, credentials := range map[string][]string{
		"none":    nil,
		"two":     {"MUNGE:AAAA:", "MUNGE:AAAA:"},
		"garbage": {"Basic cm9vdDpyb290"},
		"huge":    {"MUNGE:" + strings.Repeat("A", 10<<10) + ":"},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.request(t, "POST", "/v1/decide", "body")
			r.Header[munge.Header] = credentials
			status, text, signed := s.bare(t, r)
			if status != 401 || signed || !strings.Contains(text, "no credential") {
				t.Errorf("%d %q, signed %v", status, text, signed)
			}
		})
	}
	if s.count() != 0 {
		t.Errorf("came through: %v", s.served)
	}
}

func TestOtherMethodsAreRefused(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	for _, method := range []string{"HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"} {
		status, _, _ := s.bare(t, s.request(t, method, "/v1/status", ""))
		if status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, status)
		}
	}
}

func TestAReplayIsRefusedByMungeAndByUs(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	c := &capture{}
	s.transport.SetBase(func(base http.RoundTripper) http.RoundTripper {
		c.RoundTripper = base
		return c
	})
	if _, _, err := s.ask(t, "POST", "/v1/outcome", "body"); err != nil {
		t.Fatal(err)
	}
	replay := func() (int, string) {
		r := s.request(t, "POST", "/v1/outcome", "body")
		r.Header.Set(munge.Header, c.credential)
		status, text, _ := s.bare(t, r)
		return status, text
	}
	if status, text := replay(); status != 401 || !strings.Contains(text, "used before") {
		t.Errorf("%d %q", status, text)
	}
	// A munged that was started anew doesn't know the credential.
	s.there.Stop(t)
	s.there.Again(t)
	if status, text := replay(); status != 401 || !strings.Contains(text, "used before") {
		t.Errorf("after munged's restart: %d %q", status, text)
	}
	if s.count() != 1 {
		t.Errorf("came through: %v", s.served)
	}
}

func TestWithoutMungedOnEitherSideNothingGoesThrough(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	s.there.Stop(t)
	if _, _, err := s.ask(t, "GET", "/v1/status", ""); !errors.Is(err, munge.ErrUnauthentic) {
		t.Errorf("without the controller's: %v", err)
	}
	r := s.signed(t, s.request(t, "GET", "/v1/status", ""), "", mungetest.Credential{}, s.here.Key)
	if status, text, _ := s.bare(t, r); status != http.StatusServiceUnavailable ||
		text != "munged doesn't answer" {
		t.Errorf("%d %q", status, text)
	}
	s.there.Again(t)
	s.here.Stop(t)
	if _, _, err := s.ask(t, "GET", "/v1/status", ""); !errors.Is(err, munge.ErrUnavailable) {
		t.Errorf("without the agent's: %v", err)
	}
	if s.count() != 0 {
		t.Errorf("came through: %v", s.served)
	}
	s.here.Again(t)
	if status, _, err := s.ask(t, "GET", "/v1/status", ""); status != 200 {
		t.Errorf("afterwards: %d, %v", status, err)
	}
}

func TestAnAnswerThatCantBeSignedIsNotUsed(t *testing.T) {
	var s *site
	s = newSite(t, munge.Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.there.Stop(t)
		_, _ = io.WriteString(w, `{"done":true}`)
	}))
	if _, answer, err := s.ask(t, "POST", "/v1/outcome", ""); !errors.Is(err, munge.ErrUnauthentic) {
		t.Errorf("%q, %v", answer, err)
	}
}

func TestAnAnswerThatIsTooLongIsAnError(t *testing.T) {
	s := newSite(t, munge.Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		for range 16 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	if status, answer, err := s.ask(t, "GET", "/v1/jobs", ""); err != nil || status != 500 ||
		!strings.Contains(answer, "too long") {
		t.Errorf("%d %.80q, %v", status, answer, err)
	}
}

func TestARequestThatIsTooLongIsNotSentAndNotTaken(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	long := strings.Repeat("x", 1<<20+1)
	if _, _, err := s.ask(t, "POST", "/v1/outcome", long); !errors.Is(err, munge.ErrTooLong) {
		t.Errorf("got %v", err)
	}
	r := s.signed(t, s.request(t, "POST", "/v1/outcome", long), says(someNonce, "POST", "/v1/outcome", long),
		mungetest.Credential{}, s.here.Key)
	if status, text, signed := s.bare(t, r); status != http.StatusRequestEntityTooLarge || !signed {
		t.Errorf("%d %q, signed %v", status, text, signed)
	}
	if s.count() != 0 {
		t.Errorf("%d came through", s.count())
	}
}

func TestAUserCantTakeAllThePlaces(t *testing.T) {
	enough := make(chan struct{})
	s := newSite(t, munge.Options{}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-enough:
		case <-r.Context().Done():
		}
	}))
	ask := func(uid uint32, i int) int {
		r := s.request(t, "GET", "/v1/jobs", "")
		status, _, _ := s.bare(t, s.signed(t, r, says(fmt.Sprintf("%032x", i), "GET", "/v1/jobs", ""),
			mungetest.Credential{UID: uid}, s.here.Key))
		return status
	}
	const users, others = 20, 20
	statuses := make(chan int, users+others)
	for i := range users {
		go func() { statuses <- ask(1000, i) }()
	}
	for range users - 16 {
		if status := <-statuses; status != http.StatusTooManyRequests {
			t.Errorf("one too many: %d", status)
		}
	}
	for i := range others {
		go func() { statuses <- ask(0, users+i) }()
	}
	close(enough)
	for range 16 + others {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("got %d", status)
		}
	}
	for i := range users { // one after the other
		if status := ask(1000, users+others+i); status != http.StatusOK {
			t.Errorf("later: %d", status)
		}
	}
}

func TestTheCallersContextBoundsTheTrip(t *testing.T) {
	s := newSite(t, munge.Options{},
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r := s.request(t, "GET", "/v1/status", "").WithContext(ctx)
	begin := time.Now()
	if _, err := s.transport.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) { //nolint:bodyclose // there is none
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 30*time.Second { // nobody ever answers
		t.Errorf("it took %v", took)
	}
}

func TestAnAnswerIsForItsCallerOnly(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	r := s.signed(t, s.request(t, "GET", "/v1/jobs", ""), says(someNonce, "GET", "/v1/jobs", ""),
		mungetest.Credential{UID: nobody}, s.here.Key)
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it isn't read
	if _, err := munge.New(s.here.Socket).Decode(t.Context(),
		response.Header.Get(munge.Header)); !errors.Is(err, munge.ErrNotForUs) {
		t.Errorf("somebody else gets %v", err)
	}
}
