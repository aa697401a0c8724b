package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/pause"
)

// Options say whom to ask, and how.
type Options struct {
	What    string   // the server in messages: "embedding server"
	URL     string   // of the server or of what is asked: http://localhost:8080 or …/v1/embeddings
	Path    string   // of what is asked, behind /v1: "/embeddings"
	Hosts   []string // that may be asked; none: nobody
	KeyFile string   // holds the key; "": none is sent

	Attempts int           // of a request
	Timeout  time.Duration // of an attempt
	Most     int64         // bytes of an answer

	// Wait waits between attempts; nil waits by the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

// The ways in which a server fails.
var (
	// ErrUnavailable says that the server gave no answer: refused, slow, or overloaded.
	ErrUnavailable = errors.New("no answer")
	// ErrAnswer says that an answer makes no sense.
	ErrAnswer = errors.New("answer makes no sense")
)

const (
	maxKeyBytes = 4 << 10
	firstWait   = 500 * time.Millisecond
	maxWait     = 30 * time.Second
)

// Server is one that may be asked. Its methods may be called from many goroutines.
type Server struct {
	o        Options
	endpoint string
	key      string
	http     *http.Client
}

// New returns a server; nothing is sent yet.
func New(o *Options) (*Server, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%s: want a URL such as http://localhost:8080/v1%s", o.What, o.Path)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%s: the URL has a password in it, want the key in a file", o.What)
	}
	switch host := u.Hostname(); {
	case !slices.Contains(o.Hosts, host) && !slices.Contains(o.Hosts, u.Host):
		return nil, fmt.Errorf("%s %s is not on the list of allowed hosts", o.What, u.Host)
	case u.Scheme == "http" && !isLocalHost(host):
		return nil, fmt.Errorf("%s %s: want https, source code would go over the network as it is",
			o.What, u.Host)
	}
	if !strings.HasSuffix(u.Path, o.Path) {
		u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/v1" + o.Path
	}
	s := &Server{o: *o, endpoint: u.String()}
	if o.KeyFile != "" {
		if s.key, err = readKey(o.What, o.KeyFile); err != nil {
			return nil, err
		}
	}
	if s.o.Wait == nil {
		s.o.Wait = pause.For
	}
	s.http = &http.Client{
		Timeout: s.o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // it could lead to a host that isn't allowed
		},
	}
	return s, nil
}

// Endpoint returns the address that is asked.
func (s *Server) Endpoint() string { return s.endpoint }

// WrongAnswer is an [ErrAnswer] of this server.
func (s *Server) WrongAnswer(format string, args ...any) error {
	return fmt.Errorf("the %s's %w: "+format, append([]any{s.o.What, ErrAnswer}, args...)...)
}

func (s *Server) unavailable(why error) error {
	return fmt.Errorf("%w from the %s: %w", ErrUnavailable, s.o.What, why)
}

// isLocalHost reports whether a host is this machine.
func isLocalHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// readKey reads a key. Errors name the file, never what is in it.
func readKey(what, name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("key of the %s: %w", what, err)
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, maxKeyBytes+1))
	if err != nil {
		return "", fmt.Errorf("key of the %s: %w", what, err)
	}
	key := strings.TrimSpace(string(data))
	if key == "" || len(data) > maxKeyBytes ||
		strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s: want one line with the %s's key", name, what)
	}
	return key, nil
}

// Ask sends a request until there is an answer or hope is gone.
func (s *Server) Ask(ctx context.Context, body []byte) ([]byte, error) {
	pause := firstWait
	for attempt := 1; ; attempt++ {
		answer, after, err := s.askOnce(ctx, body)
		if err == nil || !errors.Is(err, ErrUnavailable) || attempt >= s.o.Attempts || ctx.Err() != nil {
			return answer, err
		}
		if err := s.o.Wait(ctx, min(maxWait, max(pause, after))); err != nil {
			return nil, s.unavailable(err)
		}
		pause *= 2
	}
}

// askOnce asks once. Where the server said when to come back, that is told, too.
func (s *Server) askOnce(ctx context.Context, body []byte) (data []byte, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", s.o.What, err)
	}
	r.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	answer, err := s.http.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the URL
		}
		return nil, 0, s.unavailable(err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch status := answer.StatusCode; {
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return nil, time.Duration(max(0, min(seconds, 3600))) * time.Second,
			s.unavailable(errors.New("it says " + http.StatusText(status)))
	case status != http.StatusOK:
		return nil, 0, s.WrongAnswer("status %d %s", status, http.StatusText(status))
	}
	data, err = io.ReadAll(io.LimitReader(answer.Body, s.o.Most+1))
	switch {
	case err != nil:
		return nil, 0, s.unavailable(err)
	case int64(len(data)) > s.o.Most:
		return nil, 0, s.WrongAnswer("more than %d bytes", s.o.Most)
	}
	return data, 0, nil
}
