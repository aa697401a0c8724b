package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/openai"
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
	maxText   = 64 << 10
	maxAnswer = 64 << 20
)

// Client asks one server. Its methods may be called from many goroutines.
type Client struct {
	o      Options
	server *openai.Server
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
	c := &Client{o: *o}
	c.defaults()
	var err error
	c.server, err = openai.New(&openai.Options{
		What: "embedding server", URL: o.URL, Path: "/embeddings", Hosts: o.Hosts, KeyFile: o.KeyFile,
		Attempts: c.o.Attempts,
		Timeout:  c.o.Timeout, Most: maxAnswer, Wait: o.Wait, Unavailable: ErrUnavailable,
		Senseless: ErrAnswer,
	})
	return c, err
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
}

// Embed is an embedding for each text, all of the same length.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float64, error) {
	out := make([][]float64, len(texts))
	missing := make(map[string][]int) // what is sent, by where it is wanted
	var order []string
	for i, text := range texts {
		text = prepareText(text)
		if out[i] = c.load(text); out[i] != nil {
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
			if err := c.store(text, found[k]); err != nil {
				return nil, err
			}
			for _, i := range missing[text] {
				out[i] = found[k]
			}
		}
	}
	for i := range out {
		if len(out[i]) != len(out[0]) {
			return nil, fmt.Errorf("%w: embeddings of %d and of %d coordinates", ErrAnswer,
				len(out[0]), len(out[i]))
		}
	}
	return out, nil
}

// prepareText is what of a text is sent.
func prepareText(text string) string {
	text = Scrub(text)
	if len(text) > maxText {
		text = text[:maxText]
	}
	text = strings.ToValidUTF8(text, " ")
	if strings.TrimSpace(text) == "" {
		return "(empty)" // servers refuse empty texts
	}
	return text
}

// request asks for a batch.
func (c *Client) request(ctx context.Context, texts []string) ([][]float64, error) {
	body, err := json.Marshal(map[string]any{"model": c.o.Model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, fmt.Errorf("embedding request: %w", err)
	}
	data, err := c.server.Ask(ctx, body)
	if err != nil {
		return nil, err
	}
	return c.parse(data, texts)
}

// parse reads an answer: one embedding for each text, in any order.
func (c *Client) parse(data []byte, texts []string) ([][]float64, error) {
	var answer struct {
		Data []struct {
			Index     int        `json:"index"`
			Embedding []*float64 `json:"embedding"`
		} `json:"data"`
	}
	want := len(texts)
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
		e, err := nonNull(d.Embedding)
		if err == nil {
			err = c.check(e)
		}
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(texts[d.Index]) != "" &&
			!slices.ContainsFunc(e, func(v float64) bool { return v != 0 }) {
			return nil, fmt.Errorf("%w: an embedding of nothing but zeros", ErrAnswer)
		}
		out[d.Index] = e
	}
	return out, nil
}

// nonNull are coordinates none of which is null.
func nonNull(coordinates []*float64) ([]float64, error) {
	e := make([]float64, len(coordinates))
	for i, v := range coordinates {
		if v == nil {
			return nil, fmt.Errorf("%w: a coordinate that is null", ErrAnswer)
		}
		e[i] = *v
	}
	return e, nil
}

// check reports whether an embedding is one.
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
