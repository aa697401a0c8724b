package munge_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/testkit/mungetest"
)

// impostor answers a site's transport with whatever it likes. It knows what was
// asked, as one who listens in does.
type impostor struct {
	*site
	url string
}

// newImpostor answers with what reply gives for a request's nonce and its
// credential.
func newImpostor(t *testing.T, reply func(w http.ResponseWriter, nonce, credential string)) *impostor {
	t.Helper()
	s := newSite(t, munge.Options{}, nil)
	eavesdropper := munge.New(s.there.Socket)
	return &impostor{
		site: s, url: serve(t, munge.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			credential := r.Header.Get(munge.Header)
			c, err := eavesdropper.Decode(r.Context(), credential)
			if parts := strings.Fields(string(c.Payload)); err == nil && len(parts) == 6 {
				reply(w, parts[2], credential)
			}
		}))),
	}
}

const fakeBody = `{"apply":true,"core_mhz":210}`

// answerSays returns what the credential of an answer would have to say.
func answerSays(nonce string, status int, body string) string {
	return fmt.Sprintf("epplan/1 reply %s %d %s", nonce, status, munge.Digest([]byte(body)))
}

func TestAnAnswerThatIsntAuthenticReachesNobody(t *testing.T) {
	var key []byte
	mint := func(payload string, uid uint32, off time.Duration) string {
		return mungetest.Mint(key, mungetest.Credential{
			UID: uid, Encoded: time.Now().Add(off), TTL: time.Minute, Payload: []byte(payload),
		})
	}
	var earlier string
	for name, c := range map[string]struct {
		credential func(nonce, asked string) []string
		want       error // beside ErrUnauthentic
		says       string
	}{
		"unsigned": {func(string, string) []string { return nil }, munge.ErrInvalid, "key the same"},
		"two": {func(nonce, _ string) []string {
			good := answerSays(nonce, 200, fakeBody)
			return []string{mint(good, 0, 0), mint(good, 0, 0)}
		}, munge.ErrInvalid, "there are 2"},
		"garbage": {func(string, string) []string {
			return []string{"MUNGE:garbage:"}
		}, munge.ErrInvalid, ""},
		"the request's own": {func(_, asked string) []string {
			return []string{asked}
		}, munge.ErrBinding, "its kind"},
		"of a user": {func(n, _ string) []string {
			return []string{mint(answerSays(n, 200, fakeBody), 1000, 0)}
		}, nil, "uid 1000"},
		"of another nonce": {func(string, string) []string {
			return []string{mint(answerSays(someNonce, 200, fakeBody), 0, 0)}
		}, munge.ErrBinding, "its nonce"},
		"of another status": {func(n, _ string) []string {
			return []string{mint(answerSays(n, 404, fakeBody), 0, 0)}
		}, munge.ErrBinding, "its status"},
		"of another body": {func(n, _ string) []string {
			return []string{mint(answerSays(n, 200, "{}"), 0, 0)}
		}, munge.ErrBinding, "its body"},
		"of an older version": {func(n, _ string) []string {
			return []string{mint("epplan/0"+answerSays(n, 200, fakeBody)[8:], 0, 0)}
		}, munge.ErrBinding, "its version"},
		"of clocks that lag": {func(n, _ string) []string {
			return []string{mint(answerSays(n, 200, fakeBody), 0, -time.Hour)}
		}, munge.ErrExpired, "clock"},
		"of clocks that hurry": {func(n, _ string) []string {
			return []string{mint(answerSays(n, 200, fakeBody), 0, time.Hour)}
		}, munge.ErrRewound, "s ahead"},
		"of another key": {func(n, _ string) []string {
			return []string{mungetest.Mint(mungetest.NewKey(), mungetest.Credential{
				Encoded: time.Now(), TTL: time.Minute, Payload: []byte(answerSays(n, 200, fakeBody)),
			})}
		}, munge.ErrKey, "another munge key"},
		"used before": {func(string, string) []string { return []string{earlier} }, munge.ErrReplayed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := newImpostor(t, func(w http.ResponseWriter, nonce, asked string) {
				w.Header()[munge.Header] = c.credential(nonce, asked)
				_, _ = io.WriteString(w, fakeBody)
			})
			key = i.here.Key
			earlier = mint("earlier", 0, 0)
			if _, err := munge.New(i.here.Socket).Decode(t.Context(), earlier); err != nil {
				t.Fatal(err)
			}
			_, answer, err := send(t, i.transport, "POST", i.url+"/v1/decide", "{}")
			if answer != "" || !errors.Is(err, munge.ErrUnauthentic) ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%q, %v; want %q", answer, err, c.says)
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func TestAUserWhoIsTrustedLaterMayAnswerFromThenOn(t *testing.T) {
	const later = 1000
	var i *impostor
	i = newImpostor(t, func(w http.ResponseWriter, nonce, _ string) {
		w.Header().Set(munge.Header, mungetest.Mint(i.here.Key, mungetest.Credential{
			UID: later, Encoded: time.Now(), TTL: time.Minute,
			Payload: []byte(answerSays(nonce, 200, fakeBody)),
		}))
		_, _ = io.WriteString(w, fakeBody)
	})
	trusted := false
	i.transport.Trust(func(uid uint32) bool { return trusted && uid == later })
	if _, _, err := send(t, i.transport, "POST", i.url+"/v1/decide", "{}"); !errors.Is(err,
		munge.ErrUnauthentic) {
		t.Errorf("before: %v", err)
	}
	trusted = true
	if _, answer, err := send(t, i.transport, "POST", i.url+"/v1/decide", "{}"); err != nil ||
		answer != fakeBody {
		t.Errorf("then: %q, %v", answer, err)
	}
}

func TestTheImpostorsAnswerWouldDoIfRootSignedIt(t *testing.T) {
	var i *impostor
	i = newImpostor(t, func(w http.ResponseWriter, nonce, _ string) {
		w.Header().Set(munge.Header, mungetest.Mint(i.here.Key, mungetest.Credential{
			Encoded: time.Now(), TTL: time.Minute, Payload: []byte(answerSays(nonce, 200, fakeBody)),
		}))
		w.Header().Set("Content-Encoding", "gzip") // not signed, so not believed
		w.Header().Set("Set-Cookie", "a=b")
		_, _ = io.WriteString(w, fakeBody)
	})
	if status, answer, err := send(t, i.transport, "POST", i.url+"/v1/decide", "{}"); err != nil ||
		status != 200 || answer != fakeBody {
		t.Errorf("%d %q, %v", status, answer, err)
	}
}

func TestAnUnsignedRedirectIsNotFollowed(t *testing.T) {
	followed := false
	elsewhere := serve(t,
		munge.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true })))
	i := newImpostor(t, func(w http.ResponseWriter, _, _ string) {
		w.Header().Set("Location", elsewhere)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	if _, _, err := send(t, i.transport, "POST", i.url+"/v1/decide", "{}"); !errors.Is(err,
		munge.ErrUnauthentic) || followed {
		t.Errorf("followed %v, %v", followed, err)
	}
}

func TestAnEndlessAnswerIsGivenUp(t *testing.T) {
	i := newImpostor(t, func(w http.ResponseWriter, _, _ string) {
		_, _ = io.CopyN(w, endless{}, 64<<20)
	})
	if _, _, err := send(t, i.transport, "GET", i.url+"/v1/jobs", ""); !errors.Is(err, munge.ErrTooLong) {
		t.Errorf("got %v", err)
	}
	huge := newImpostor(t, func(w http.ResponseWriter, _, _ string) {
		w.Header().Set("X-Huge", strings.Repeat("x", 64<<10))
	})
	if _, _, err := send(t, huge.transport, "GET", huge.url+"/v1/jobs", ""); err == nil ||
		!strings.Contains(err.Error(), "header") {
		t.Errorf("huge headers: %v", err)
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// talk opens a connection, writes, and says what comes back until the other
// side closes.
func talk(t *testing.T, url, text string) (answer string, took time.Duration) {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // nothing was buffered
	begin := time.Now()
	if err := c.SetDeadline(begin.Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, text) // refused before it ends, perhaps
	line, _ := bufio.NewReader(c).ReadString('\n')
	_, err = io.Copy(io.Discard, c)
	if netErr := net.Error(nil); errors.As(err, &netErr) && netErr.Timeout() {
		t.Error("the connection was left open")
	}
	return strings.TrimSpace(line), time.Since(begin)
}

func TestAConnectionThatDawdlesIsClosed(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	for name, c := range map[string]struct{ text, want string }{
		"silence":       {"", ""},
		"half a header": {"POST /v1/decide HTTP/1.1\r\nHost: x\r\nX: ", ""},
		"a stranger's body": {
			"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx",
			"HTTP/1.1 401 Unauthorized",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if line, took := talk(t, s.url, c.text); line != c.want || took > 15*time.Second {
				t.Errorf("%q after %v, want %q", line, took, c.want)
			}
		})
	}
}

func TestABodyThatComesTooSlowlyIsRefused(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	h := munge.Authenticate(http.HandlerFunc(s.echo), munge.New(s.there.Socket), munge.Options{})
	url := serve(t, munge.NewServer(munge.Impatient(h, 2*time.Second)))
	credential := mungetest.Mint(s.here.Key, mungetest.Credential{
		Encoded: time.Now(), TTL: time.Minute, Payload: []byte(says(someNonce, "POST", "/v1/decide", "body")),
	})
	line, took := talk(t, url, "POST /v1/decide HTTP/1.1\r\nHost: x\r\n"+
		"Content-Length: 4\r\n"+munge.Header+": "+credential+"\r\n\r\nbod")
	if line != "HTTP/1.1 408 Request Timeout" || took > 15*time.Second {
		t.Errorf("%q after %v", line, took)
	}
	if s.count() != 0 {
		t.Errorf("came through: %v", s.served)
	}
}

func TestHostileRequestLinesAndHeadersComeToNothing(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	long := strings.Repeat("a", 64<<10)
	credential := func(n int, method, path string) string {
		return munge.Header + ": " + mungetest.Mint(s.here.Key, mungetest.Credential{
			Encoded: time.Now(), TTL: time.Minute,
			Payload: []byte(says(fmt.Sprintf("%032x", n), method, path, "")),
		}) + "\r\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"huge header": {"GET /v1/status HTTP/1.1\r\nHost: x\r\nX: " + long + "\r\n\r\n", "HTTP/1.1 431"},
		"many headers": {
			"GET /v1/status HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 10000) + "\r\n",
			"HTTP/1.1 431",
		},
		"huge path": {"GET /" + long + " HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 431"},
		"no HTTP":   {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTP/1.1 400"},
		"HTTP/2":    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 "},
		"two lengths": {
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", "HTTP/1.1 400",
		},
		"length and chunk": {
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked, x\r\n\r\nx",
			"HTTP/1.1 501",
		},
		// The path that is served must be the one that was signed.
		"another path in the signed one's place": {
			"GET http://x/v1/status HTTP/1.1\r\nHost: x\r\n" + credential(1, "GET", "/v1/status") + "\r\n",
			"HTTP/1.1 401",
		},
		"a header says another path": {
			"GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Original-URL: /v1/jobs\r\n" +
				credential(2, "GET", "/v1/jobs") + "\r\n", "HTTP/1.1 401",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if line, _ := talk(t, s.url, c.text); !strings.HasPrefix(line, c.want) {
				t.Errorf("%q, want %q", line, c.want)
			}
		})
	}
	if s.count() != 0 {
		t.Errorf("came through: %v", s.served)
	}
}

func TestHeadersThatNobodySignedDontComeThrough(t *testing.T) {
	var seen http.Header
	s := newSite(t, munge.Options{},
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header }))
	r := s.request(t, "GET", "/v1/jobs", "")
	r.Header.Set("X-Epplan-User", "root")
	r.Header.Set("Content-Encoding", "gzip")
	if status, _, _ := s.bare(t, s.signed(t, r, says(someNonce, "GET", "/v1/jobs", ""),
		mungetest.Credential{}, s.here.Key)); status != 200 {
		t.Fatalf("got %d", status)
	}
	if len(seen) != 1 || seen.Get("Content-Type") != "application/json" {
		t.Errorf("came through: %v", seen)
	}
}

func TestABodyThatCantBeReadIsNotSent(t *testing.T) {
	s := newSite(t, munge.Options{}, nil)
	broken := errors.New("broken")
	r := s.request(t, "POST", "/v1/outcome", "")
	r.Body = io.NopCloser(iotest.ErrReader(broken))
	if _, err := s.transport.RoundTrip(r); !errors.Is(err, broken) || s.count() != 0 { //nolint:bodyclose // there is none
		t.Errorf("%d came through, %v", s.count(), err)
	}
}

func TestNoncesAreRememberedForTheirTimeAndForgottenLater(t *testing.T) {
	now := time.Unix(1e9, 0)
	n := munge.NewNonces(100, time.Minute)
	if !n.First(7, 1, now) || n.First(7, 1, now) {
		t.Error("once")
	}
	if !n.First(8, 1, now) {
		t.Error("another user's nonce is another nonce")
	}
	if now = now.Add(59 * time.Second); n.First(7, 1, now) || !n.First(7, 2, now) {
		t.Error("a while later")
	}
	if now = now.Add(59 * time.Second); n.First(7, 2, now) {
		t.Error("the second one, a while later")
	}
	now = now.Add(2 * time.Minute)
	if n.First(9, 9, now); n.Len() > 2 {
		t.Errorf("%d are remembered for ever", n.Len())
	}
	now = now.Add(2 * time.Minute)
	if n.First(9, 8, now); !n.First(7, 1, now) {
		t.Error("not forgotten")
	}
}

func TestNoncesAreBoundedAndTheLatestOnesKept(t *testing.T) {
	now := time.Unix(1e9, 0)
	n := munge.NewNonces(10, time.Minute)
	for i := range byte(200) {
		if !n.First(1, i, now) {
			t.Fatalf("nonce %d was never used", i)
		}
		if n.Len() > 20 {
			t.Fatalf("%d are remembered", n.Len())
		}
		for j := max(i, 9) - 9; j <= i; j++ {
			if n.First(1, j, now) {
				t.Fatalf("nonce %d is forgotten after %d more", j, i-j)
			}
		}
	}
}
