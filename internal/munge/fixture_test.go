package munge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/testkit/mungetest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// site is a controller behind munge and an agent's side of it, each with a
// munged of its own and the same key.
type site struct {
	here, there *mungetest.Munged // the agent's, the controller's
	url         string
	transport   *munge.Transport
	mu          sync.Mutex
	served      []string // what came through, as "uid method uri body"
	refused     []error
}

// newSite serves echo, or what is given.
func newSite(t *testing.T, o munge.Options, h http.Handler) *site {
	t.Helper()
	s := &site{here: mungetest.Start(t, nil)}
	s.there = mungetest.Start(t, s.here.Key)
	s.transport = munge.NewTransport(munge.New(s.here.Socket), me())
	if h == nil {
		h = http.HandlerFunc(s.echo)
	}
	o.Refused = func(_ string, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = append(s.refused, err)
	}
	s.url = serve(t, munge.NewServer(munge.Authenticate(h, munge.New(s.there.Socket), o)))
	return s
}

func TestMain(m *testing.M) {
	shareddata.ShortTemp()
	os.Exit(m.Run())
}

// me returns who runs the tests.
func me() uint32 { return uint32(os.Getuid()) }

// serve runs a server until the test ends.
func serve(tb testing.TB, server *http.Server) string {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	tb.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			tb.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// echo answers with what came, and takes its status from the query.
func (s *site) echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	peer, ok := munge.PeerOf(r.Context())
	text := fmt.Sprintf("%d %s %s %s", peer.UID, r.Method, r.URL.RequestURI(), body)
	if !ok {
		text = "nobody"
	}
	s.mu.Lock()
	s.served = append(s.served, text)
	s.mu.Unlock()
	w.Header().Set("X-Unsigned", "yes")
	if n := r.URL.Query().Get("status"); n != "" {
		status := 0
		_, _ = fmt.Sscan(n, &status)
		w.WriteHeader(status)
	}
	_, _ = io.WriteString(w, text)
}

// count returns how many requests came through.
func (s *site) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.served)
}

// why is why the last request was refused.
func (s *site) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) == 0 {
		return nil
	}
	return s.refused[len(s.refused)-1]
}

// ask sends a request through the transport.
func (s *site) ask(t *testing.T, method, path, body string) (status int, answer string, err error) {
	t.Helper()
	return send(t, s.transport, method, s.url+path, body)
}

func send(
	t *testing.T, by http.RoundTripper, method, url, body string,
) (status int, answer string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: by}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // it is in memory
	text, err := io.ReadAll(response.Body)
	if len(response.Header) != 1 {
		t.Errorf("headers that nobody signed: %v", response.Header)
	}
	return response.StatusCode, string(text), err
}

// bare sends a request as it is, and tells of the answer as a person would see
// it.
func (s *site) bare(t *testing.T, r *http.Request) (status int, says string, signed bool) {
	t.Helper()
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Error(err)
		return 0, "", false
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	var fault struct {
		Error string `json:"error"`
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	_ = json.Unmarshal(text, &fault) // what isn't a fault says nothing
	return response.StatusCode, fault.Error, response.Header.Get(munge.Header) != ""
}

// request returns one that isn't signed yet.
func (s *site) request(t *testing.T, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// signed returns a request with a credential that says what is given of it, made at
// a time by a user, with a key.
func (s *site) signed(
	t *testing.T, r *http.Request, payload string, c mungetest.Credential, key []byte,
) *http.Request {
	t.Helper()
	c.Payload = []byte(payload)
	if c.Encoded.IsZero() {
		c.Encoded = time.Now()
	}
	if c.TTL == 0 {
		c.TTL = time.Minute
	}
	r.Header.Set(munge.Header, mungetest.Mint(key, c))
	return r
}

const someNonce = "00112233445566778899aabbccddeeff"

// says returns what the credential of a request would have to say.
func says(nonce, method, path, body string) string {
	return fmt.Sprintf("epplan/1 request %s %s %s %s", nonce, method, munge.Digest([]byte(path)),
		munge.Digest([]byte(body)))
}

// capture notes the request that a transport sends.
type capture struct {
	http.RoundTripper
	credential string
}

func (c *capture) RoundTrip(r *http.Request) (*http.Response, error) {
	c.credential = r.Header.Get(munge.Header)
	return c.RoundTripper.RoundTrip(r)
}
