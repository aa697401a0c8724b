package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options say whom to ask, and how.
type Options struct {
	URL     string   // of the server or of its embeddings: http://localhost:8080 or …/v1/embeddings
	Hosts   []string // that may be asked; none: nobody
	Model   string
	KeyFile string // holds the key; "": none is sent
	Cache   string // folder; "": answers aren't kept

	Dimensions int           // that an embedding must have; 0: as many as the first one
	Batch      int           // texts of a request; 0: 16
	Attempts   int           // of a request; 0: 4
	Timeout    time.Duration // of an attempt; 0: 20 s

	// Wait waits between attempts; nil waits by the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

// Bounds of what is sent and read.
const (
	mostText   = 64 << 10
	mostAnswer = 64 << 20
	mostKey    = 4 << 10
	firstWait  = 500 * time.Millisecond
	mostWait   = 30 * time.Second
)

// Client asks one server. Its methods may be called from many goroutines.
type Client struct {
	o        Options
	endpoint string
	key      string
	http     *http.Client
}

// The ways in which a server fails.
var (
	// ErrUnavailable says that the server gave no answer: refused, slow, or overloaded.
	ErrUnavailable = errors.New("no answer from the embedding server")
	// ErrAnswer says that an answer makes no sense.
	ErrAnswer = errors.New("the embedding server's answer makes no sense")
)

// New is a client; nothing is sent yet.
func New(o *Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("embedding server: want a URL such as http://localhost:8080/v1/embeddings")
	}
	if u.User != nil {
		return nil, errors.New("embedding server: the URL has a password in it, want the key in a file")
	}
	switch host := u.Hostname(); {
	case !slices.Contains(o.Hosts, host) && !slices.Contains(o.Hosts, u.Host):
		return nil, fmt.Errorf("embedding server %s is not on the list of allowed hosts", u.Host)
	case u.Scheme == "http" && !local(host):
		return nil, fmt.Errorf("embedding server %s: want https, source code would go over the network as it is", u.Host)
	}
	if !strings.HasSuffix(u.Path, "/embeddings") {
		u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/v1/embeddings"
	}
	c := &Client{o: *o, endpoint: u.String()}
	if o.KeyFile != "" {
		if c.key, err = readKey(o.KeyFile); err != nil {
			return nil, err
		}
	}
	c.defaults()
	c.http = &http.Client{
		Timeout: c.o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // it could lead to a host that isn't allowed
		},
	}
	return c, nil
}

func (c *Client) defaults() {
	if c.o.Batch <= 0 {
		c.o.Batch = 16
	}
	if c.o.Attempts <= 0 {
		c.o.Attempts = 4
	}
	if c.o.Timeout <= 0 {
		c.o.Timeout = 20 * time.Second
	}
	if c.o.Wait == nil {
		c.o.Wait = wait
	}
}

// local tells whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// readKey reads a key. Errors name the file, never what is in it.
func readKey(name string) (string, error) {
	f, err := os.Open(name) //nolint:gosec // the administrator names it
	if err != nil {
		return "", fmt.Errorf("key of the embedding server: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, mostKey+1))
	if err != nil {
		return "", fmt.Errorf("key of the embedding server: %w", err)
	}
	key := strings.TrimSpace(string(data))
	if key == "" || len(data) > mostKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s: want one line with the embedding server's key", name)
	}
	return key, nil
}

// Embed is an embedding for each text, all of the same length.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float64, error) {
	out := make([][]float64, len(texts))
	missing := make(map[string][]int) // what is sent, by where it is wanted
	var order []string
	for i, text := range texts {
		text = prepare(text)
		if out[i] = c.cached(text); out[i] != nil {
			continue
		}
		if missing[text] == nil {
			order = append(order, text)
		}
		missing[text] = append(missing[text], i)
	}
	for part := range slices.Chunk(order, c.o.Batch) {
		found, err := c.request(ctx, part)
		if err != nil {
			return nil, err
		}
		for k, text := range part {
			if err := c.keep(text, found[k]); err != nil {
				return nil, err
			}
			for _, i := range missing[text] {
				out[i] = found[k]
			}
		}
	}
	for i := range out {
		if len(out[i]) != len(out[0]) {
			return nil, fmt.Errorf("%w: embeddings of %d and of %d coordinates", ErrAnswer, len(out[0]), len(out[i]))
		}
	}
	return out, nil
}

// prepare is what of a text is sent.
func prepare(text string) string {
	text = Scrub(text)
	if len(text) > mostText {
		text = text[:mostText]
	}
	text = strings.ToValidUTF8(text, " ")
	if strings.TrimSpace(text) == "" {
		return "(empty)" // servers refuse empty texts
	}
	return text
}

// request asks for a batch until there is an answer or hope is gone.
func (c *Client) request(ctx context.Context, texts []string) ([][]float64, error) {
	body, err := json.Marshal(map[string]any{"model": c.o.Model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, fmt.Errorf("embedding request: %w", err)
	}
	pause := firstWait
	for attempt := 1; ; attempt++ {
		found, after, err := c.attempt(ctx, body, len(texts))
		if err == nil || !errors.Is(err, ErrUnavailable) || attempt >= c.o.Attempts || ctx.Err() != nil {
			return found, err
		}
		if err := c.o.Wait(ctx, min(mostWait, max(pause, after))); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		pause *= 2
	}
}

// attempt asks once. Where the server said when to come back, that is told, too.
func (c *Client) attempt(ctx context.Context, body []byte, want int) (found [][]float64, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("embedding request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the URL
		}
		return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch status := answer.StatusCode; {
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return nil, time.Duration(max(0, min(seconds, 3600))) * time.Second, fmt.Errorf("%w: it says %s", ErrUnavailable, http.StatusText(status))
	case status != http.StatusOK:
		return nil, 0, fmt.Errorf("%w: status %d %s", ErrAnswer, status, http.StatusText(status))
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer+1))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case len(data) > mostAnswer:
		return nil, 0, fmt.Errorf("%w: more than %d bytes", ErrAnswer, mostAnswer)
	}
	found, err = c.parse(data, want)
	return found, 0, err
}

// parse reads an answer: one embedding for each text, in any order.
func (c *Client) parse(data []byte, want int) ([][]float64, error) {
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float64 `json:"embedding"`
		} `json:"data"`
	}
	if json.Unmarshal(data, &answer) != nil {
		return nil, fmt.Errorf("%w: not the JSON that was expected", ErrAnswer)
	}
	if len(answer.Data) != want {
		return nil, fmt.Errorf("%w: %d embeddings for %d texts", ErrAnswer, len(answer.Data), want)
	}
	out := make([][]float64, want)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= want || out[d.Index] != nil {
			return nil, fmt.Errorf("%w: embedding number %d of %d", ErrAnswer, d.Index, want)
		}
		if err := c.check(d.Embedding); err != nil {
			return nil, err
		}
		out[d.Index] = d.Embedding
	}
	return out, nil
}

// check tells whether an embedding is one.
func (c *Client) check(e []float64) error {
	switch {
	case len(e) == 0:
		return fmt.Errorf("%w: an empty embedding", ErrAnswer)
	case c.o.Dimensions > 0 && len(e) != c.o.Dimensions:
		return fmt.Errorf("%w: embeddings of %d coordinates, want %d", ErrAnswer, len(e), c.o.Dimensions)
	case slices.ContainsFunc(e, func(v float64) bool { return math.IsNaN(v) || math.Abs(v) > 1e6 }):
		return fmt.Errorf("%w: coordinates beyond a million", ErrAnswer)
	}
	return nil
}
