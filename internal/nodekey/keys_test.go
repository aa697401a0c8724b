package nodekey_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/nodekey"
)

// clock is one that is set.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.now.Store(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) Now() time.Time          { return time.Unix(0, c.now.Load()) }
func (c *clock) forward(d time.Duration) { c.now.Add(int64(d)) }

// machine has a key of its own, and a list of those whom it believes.
type machine struct {
	*nodekey.Keys
	*clock
	secret       *nodekey.Secret
	key, trusted string
}

// newMachine makes a machine that believes others.
func newMachine(t *testing.T, role nodekey.Role, name string, believed ...nodekey.Public) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{clock: newClock(), key: filepath.Join(dir, "key"), trusted: filepath.Join(dir, "trusted-keys")}
	var err error
	if m.secret, err = nodekey.NewSecret(role, name); err != nil {
		t.Fatal(err)
	}
	if err := m.secret.Write(m.key); err != nil {
		t.Fatal(err)
	}
	m.believe(t, believed...)
	if m.Keys, err = nodekey.Open(m.key, m.trusted, m.Now); err != nil {
		t.Fatal(err)
	}
	m.forward(10 * time.Second) // it has run for a while
	return m
}

func (m *machine) believe(t *testing.T, keys ...nodekey.Public) {
	t.Helper()
	if err := nodekey.WriteTrusted(m.trusted, keys); err != nil {
		t.Fatal(err)
	}
}

// cluster returns a controller and two nodes, of which it knows both and they it.
func cluster(t *testing.T) (head, n1, n2 *machine) {
	t.Helper()
	head = newMachine(t, nodekey.Controller, "head")
	n1 = newMachine(t, nodekey.Node, "n1", head.secret.Public)
	n2 = newMachine(t, nodekey.Node, "n2", head.secret.Public)
	head.believe(t, n1.secret.Public, n2.secret.Public)
	return head, n1, n2
}

func encode(t *testing.T, m *machine, text string) string {
	t.Helper()
	c, err := m.Encode(t.Context(), []byte(text), munge.CredentialTerms{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAControllerBelievesItsNodesAndANodeItsControllerAndNobodyElse(t *testing.T) {
	head, n1, n2 := cluster(t)
	c, err := head.Decode(t.Context(), encode(t, n1, "a request"))
	if err != nil || c.Node != "n1" || c.UID != 0 || string(c.Payload) != "a request" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = n1.Decode(t.Context(), encode(t, head, "an answer")); err != nil || c.Node != "head" {
		t.Errorf("%+v, %v", c, err)
	}
	stranger, long := newMachine(t, nodekey.Node, "n1", head.secret.Public), strings.Repeat("A", 9<<10)
	const ofHead = "controller:head"
	for name, c := range map[string]struct {
		to   *machine
		text string
		want error
	}{
		"another key of that name":      {head, encode(t, stranger, "x"), nodekey.ErrForged},
		"a node that isn't known":       {head, encode(t, newMachine(t, nodekey.Node, "n3"), "x"), nodekey.ErrUnknown},
		"a node in place of the head":   {n1, encode(t, n2, "x"), nodekey.ErrUnknown},
		"the head in place of a node":   {head, encode(t, head, "x"), nodekey.ErrUnknown},
		"what a node sent, reflected":   {n1, encode(t, n1, "x"), nodekey.ErrUnknown},
		"another name on a good one":    {head, altered(encode(t, n1, "x"), ":n1:", ":n2:"), nodekey.ErrForged},
		"another role on a good one":    {n2, altered(encode(t, n1, "x"), "node:n1", ofHead), nodekey.ErrForged},
		"a later time on a good one":    {head, redated(t, encode(t, n1, "x")), nodekey.ErrForged},
		"another payload on a good one": {head, altered(encode(t, n1, "x"), ":eA==:", ":eQ==:"), nodekey.ErrForged},
		"a signature that was cut":      {head, cutSignature(encode(t, n1, "x")), nodekey.ErrForged},
		"the signature of another one": {
			head, strings.Join(append(strings.Split(encode(t, n1, "x"), ":")[:5],
				strings.Split(encode(t, n2, "x"), ":")[5]), ":"), nodekey.ErrForged,
		},
		"a name of many lines": {head, altered(encode(t, n1, "x"), ":n1:", ":n1\n1:"), nodekey.ErrUnknown},
		"nothing":              {head, "", nodekey.ErrInvalid},
		"of munge":             {head, "MUNGE:AAAA:", nodekey.ErrInvalid},
		"more than one":        {head, encode(t, n1, "x") + ":", nodekey.ErrInvalid},
		"too long":             {head, "EPKEY:node:n1:1:" + long + ":", nodekey.ErrInvalid},
		"no base64":            {head, "EPKEY:node:n1:1:!:!", nodekey.ErrInvalid},
	} {
		if got, err := c.to.Decode(t.Context(), c.text); !errors.Is(err, c.want) || got.Payload != nil {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
}

// altered returns a credential with something else in it.
func altered(credential, old, by string) string { return strings.Replace(credential, old, by, 1) }

// cutSignature returns a credential with half of its signature.
func cutSignature(credential string) string {
	at := strings.LastIndex(credential, ":") + 1
	return credential[:at+len(credential[at:])/2/4*4]
}

// redated returns a credential with another time in it.
func redated(t *testing.T, credential string) string {
	t.Helper()
	words := strings.Split(credential, ":")
	words[3] = strconv.FormatInt(newClock().now.Load()+1, 10)
	return strings.Join(words, ":")
}

func TestAControllersKeyIsntANodesOfThatName(t *testing.T) {
	head, n1, n2 := cluster(t)
	as := n1.secret.Public
	as.Role = nodekey.Controller
	head.believe(t, as, n2.secret.Public)
	if _, err := head.Decode(t.Context(), encode(t, n1, "x")); !errors.Is(err, nodekey.ErrUnknown) {
		t.Errorf("%v", err)
	}
}

func TestACredentialCountsOnceAndForItsMinute(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration // of the node's clock
		later time.Duration // it is used
		want  error
	}{
		{0, 0, nil},
		{0, 59 * time.Second, nil},
		{0, 61 * time.Second, munge.ErrExpired},
		{-50 * time.Second, 0, munge.ErrExpired}, // before the controller's start, for all that it knows
		{4 * time.Second, 0, nil},
		{6 * time.Second, 0, munge.ErrRewound},
		{time.Hour, 0, munge.ErrRewound},
		{-time.Hour, 0, munge.ErrExpired},
	} {
		head, n1, _ := cluster(t)
		n1.forward(c.ahead)
		credential := encode(t, n1, "x")
		head.forward(c.later)
		if got, err := head.Decode(t.Context(), credential); !errors.Is(err, c.want) || string(got.Payload) != "x" {
			t.Errorf("%s ahead, after %s: %v, want %v", c.ahead, c.later, err, c.want)
		}
	}
	head, n1, _ := cluster(t)
	credential := encode(t, n1, "x")
	for i := range 70 { // it never counts again, however long it is kept
		_, err := head.Decode(t.Context(), credential)
		stale := errors.Is(err, munge.ErrReplayed) || errors.Is(err, munge.ErrExpired)
		if i == 0 && err != nil || i > 0 && !stale {
			t.Fatalf("the %dth time: %v", i+1, err)
		}
		head.forward(time.Second)
	}
}

// A controller that began with a wrong clock doesn't refuse its nodes until that time comes again.
func TestNodesAreBelievedSoonAfterTheClocksWereSetBack(t *testing.T) {
	head, n1, _ := cluster(t)
	used := encode(t, n1, "x")
	if _, err := head.Decode(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	head.forward(-3 * time.Hour)
	n1.forward(-3 * time.Hour)
	var err error
	for second := range 10 {
		if _, replayed := head.Decode(t.Context(), used); replayed == nil {
			t.Fatalf("after %d s what was used counts again", second)
		}
		_, err = head.Decode(t.Context(), encode(t, n1, strconv.Itoa(second)))
		head.forward(time.Second)
		n1.forward(time.Second)
	}
	if err != nil {
		t.Error(err)
	}
}

// Who starts anew remembers nothing of what it accepted.
func TestWhatCountedBeforeARestartDoesntCountAfterIt(t *testing.T) {
	for _, ahead := range []time.Duration{0, 4 * time.Second} {
		head, n1, _ := cluster(t)
		n1.forward(ahead)
		credential := encode(t, n1, "x")
		if _, err := head.Decode(t.Context(), credential); err != nil {
			t.Fatal(err)
		}
		anew, err := nodekey.Open(head.key, head.trusted, head.Now)
		if err != nil {
			t.Fatal(err)
		}
		for range 70 {
			if _, err := anew.Decode(t.Context(), credential); !errors.Is(err, munge.ErrExpired) {
				t.Fatalf("%s ahead: %v", ahead, err)
			}
			head.forward(time.Second)
		}
	}
}

func TestAClockThatIsSetBackLocksNobodyOutAndMakesNothingCountAgain(t *testing.T) {
	head, n1, _ := cluster(t)
	head.forward(3 * time.Hour)
	anew, err := nodekey.Open(head.key, head.trusted, head.Now)
	if err != nil {
		t.Fatal(err)
	}
	both := func(d time.Duration) { head.forward(d); n1.forward(d) }
	decode := func(credential string) error {
		_, err := anew.Decode(t.Context(), credential)
		return err
	}
	head.forward(-3 * time.Hour)
	if err := decode(encode(t, n1, "x")); !errors.Is(err, munge.ErrExpired) {
		t.Errorf("at once: %v", err)
	}
	both(6 * time.Second)
	used := encode(t, n1, "y")
	if err := decode(used); err != nil {
		t.Errorf("after six seconds: %v", err)
	}
	for range 3 { // until it is forgotten
		both(66 * time.Second)
		if err := decode(encode(t, n1, "z")); err != nil {
			t.Fatal(err)
		}
	}
	both(-3 * 66 * time.Second)
	if err := decode(used); err == nil {
		t.Error("it counts a second time")
	}
}

func TestANodeThatSendsTooMuchIsRefusedAndTheOthersArent(t *testing.T) {
	head, n1, n2 := cluster(t)
	first := encode(t, n1, "0")
	if _, err := head.Decode(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 1; err == nil && i < 1<<15; i++ {
		_, err = head.Decode(t.Context(), encode(t, n1, strconv.Itoa(i)))
	}
	if !errors.Is(err, munge.ErrTooMany) {
		t.Fatal(err)
	}
	if _, err := head.Decode(t.Context(), first); !errors.Is(err, munge.ErrReplayed) {
		t.Errorf("what counted before was forgotten: %v", err)
	}
	if _, err := head.Decode(t.Context(), encode(t, n2, "x")); err != nil {
		t.Errorf("another node: %v", err)
	}
}

func TestAKeyThatIsTakenOutOfTheListIsBelievedNoMore(t *testing.T) {
	head, n1, n2 := cluster(t)
	head.believe(t, n2.secret.Public)
	if _, err := head.Decode(t.Context(), encode(t, n1, "x")); !errors.Is(err, nodekey.ErrUnknown) {
		t.Errorf("revoked: %v", err)
	}
	other := newMachine(t, nodekey.Node, "n1", head.secret.Public)
	head.believe(t, other.secret.Public, n2.secret.Public)
	if _, err := head.Decode(t.Context(), encode(t, n1, "y")); !errors.Is(err, nodekey.ErrForged) {
		t.Errorf("replaced: %v", err)
	}
	if _, err := head.Decode(t.Context(), encode(t, other, "x")); err != nil {
		t.Errorf("its new key: %v", err)
	}
	for name, harm := range map[string]func() error{
		"gone":               func() error { return os.Remove(head.trusted) },
		"garbage":            func() error { return os.WriteFile(head.trusted, []byte("node n2\n"), 0o600) },
		"writable by others": func() error { return os.Chmod(head.trusted, 0o666) },
		"a link to another one": func() error {
			return errors.Join(os.Rename(head.trusted, head.trusted+"2"), os.Symlink(head.trusted+"2", head.trusted))
		},
	} {
		_ = os.Remove(head.trusted)
		head.believe(t, n2.secret.Public)
		if _, err := head.Decode(t.Context(), encode(t, n2, name)); err != nil {
			t.Fatalf("%s, before: %v", name, err)
		}
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		if _, err := head.Decode(t.Context(), encode(t, n2, name+" again")); !errors.Is(err, nodekey.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tamperer stands between a node and its controller.
type tamperer struct {
	request func(*http.Request)
	answer  func(*http.Response)
	body    string // of the answer; empty: as it is
}

// between has it stand before a controller, and returns where.
func (m *tamperer) between(t *testing.T, url string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		on, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.RequestURI, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		on.Header = r.Header.Clone()
		if m.request != nil {
			m.request(on)
		}
		response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(on)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close() //nolint:errcheck // it was read
		if m.answer != nil {
			m.answer(response)
		}
		w.Header()[munge.Header] = response.Header[munge.Header]
		w.WriteHeader(response.StatusCode)
		if m.body != "" {
			_, _ = io.WriteString(w, m.body)
			return
		}
		_, _ = io.Copy(w, response.Body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// serve answers a node's requests by who it is and what it said.
func serve(t *testing.T, head *machine) (url string, served *atomic.Int64) {
	t.Helper()
	served = new(atomic.Int64)
	s := httptest.NewServer(munge.Authenticate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		peer, _ := munge.PeerOf(r.Context())
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s said %s", peer.Node, body)
	}), head, munge.Options{Clock: head.Now}))
	t.Cleanup(s.Close)
	return s.URL, served
}

// said is what nodes say.
const said = "hello"

func post(t *testing.T, by http.RoundTripper, url string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/decide", strings.NewReader(said))
	if err != nil {
		t.Fatal(err)
	}
	response, err := by.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // it is in memory
	text, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.StatusCode, " ", string(text)), err
}

func TestRequestAndAnswerAreBoundToEachOther(t *testing.T) {
	head, n1, n2 := cluster(t)
	url, served := serve(t, head)
	if got, err := post(t, munge.NewTransport(n1), url); err != nil || got != "200 n1 said hello" {
		t.Fatalf("%q, %v", got, err)
	}
	var earlier, credential string
	for name, c := range map[string]struct {
		tamper tamperer
		want   string // of the refusal's words
		comes  bool   // through to the handler
	}{
		"another body": {tamperer{request: func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("hullo")), 5
		}}, "its body is another one", false},
		"another path": {tamperer{request: func(r *http.Request) {
			r.URL.Path = "/v1/outcome"
		}}, "its path is another one", false},
		"another method": {tamperer{request: func(r *http.Request) {
			r.Method = http.MethodPut
		}}, "with status 405", false},
		"another query": {tamperer{request: func(r *http.Request) {
			r.URL.RawQuery = "all=1"
		}}, "its path is another one", false},
		"another node's credential, of another request": {tamperer{request: func(r *http.Request) {
			r.Header.Set(munge.Header, encode(t, n2, "epplan/1 request"))
		}}, "with status 401", false},
		"another body of the answer": {tamperer{body: "n1 said yes"}, "its body is another one", true},
		"another status": {tamperer{answer: func(r *http.Response) {
			r.StatusCode = http.StatusNotFound
		}}, "its status is another one", true},
		"the answer to an earlier request": {tamperer{answer: func(r *http.Response) {
			r.Header.Set(munge.Header, earlier)
		}}, "its nonce is another one", true},
		"the request's own credential as the answer's": {tamperer{
			request: func(r *http.Request) { credential = r.Header.Get(munge.Header) },
			answer:  func(r *http.Response) { r.Header.Set(munge.Header, credential) },
		}, "no such key is known here", true},
		"another node's answer": {tamperer{answer: func(r *http.Response) {
			r.Header.Set(munge.Header, encode(t, n2, "epplan/1 reply"))
		}}, "no such key is known here", true},
		"no credential": {tamperer{answer: func(r *http.Response) {
			r.Header.Del(munge.Header)
		}}, "no credential", true},
	} {
		first := &tamperer{answer: func(r *http.Response) { earlier = r.Header.Get(munge.Header) }}
		if _, err := post(t, munge.NewTransport(n1), first.between(t, url)); err != nil {
			t.Fatal(err)
		}
		before := served.Load()
		got, err := post(t, munge.NewTransport(n1), c.tamper.between(t, url))
		complaint := got
		if err != nil {
			complaint = err.Error()
		}
		if strings.HasPrefix(got, "200") || !strings.Contains(complaint, c.want) ||
			(served.Load() > before) != c.comes {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestARequestThatIsSentAgainIsRefused(t *testing.T) {
	head, n1, _ := cluster(t)
	url, served := serve(t, head)
	var kept *http.Request
	first := &tamperer{request: func(r *http.Request) { kept = r.Clone(context.Background()) }}
	if _, err := post(t, munge.NewTransport(n1), first.between(t, url)); err != nil {
		t.Fatal(err)
	}
	kept.Body = io.NopCloser(strings.NewReader(said))
	response, err := http.DefaultTransport.RoundTrip(kept)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text), "used before") ||
		served.Load() != 1 {
		t.Errorf("%d %s", response.StatusCode, text)
	}
}
