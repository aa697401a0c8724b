package embed

import (
	"cmp"
	"context"
	"encoding/json"
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

	Timeout time.Duration // of an attempt; 0: 20 s

	// Wait waits between attempts; nil waits by the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

// Bounds of what is sent and read.
const (
	maxText   = 64 << 10
	maxAnswer = 64 << 20
	maxBatch  = 16 // texts of a request
	attempts  = 4
)

// Client asks one server. Its methods may be called from many goroutines.
type Client struct {
	o      Options
	server *openai.Server
}

// New returns a client; nothing is sent yet.
func New(o *Options) (*Client, error) {
	c := &Client{o: *o}
	var err error
	c.server, err = openai.New(&openai.Options{
		What: "embedding server", URL: o.URL, Path: "/embeddings", Hosts: o.Hosts, KeyFile: o.KeyFile,
		Attempts: attempts, Timeout: cmp.Or(max(0, o.Timeout), 20*time.Second), Most: maxAnswer, Wait: o.Wait,
	})
	return c, err
}

// Embed returns an embedding for each text, all of the same length.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float64, error) {
	out := make([][]float64, len(texts))
	missing := make(map[string][]int) // what is sent, by where it is wanted
	var order []string
	for i, text := range texts {
		text = scrubText(text)
		if out[i] = c.loadCached(text); out[i] != nil {
			continue
		}
		if missing[text] == nil {
			order = append(order, text)
		}
		missing[text] = append(missing[text], i)
	}
	for part := range slices.Chunk(order, maxBatch) {
		found, err := c.request(ctx, part)
		if err != nil {
			return nil, err
		}
		for k, text := range part {
			if err := c.storeCached(text, found[k]); err != nil {
				return nil, err
			}
			for _, i := range missing[text] {
				out[i] = found[k]
			}
		}
	}
	for i := range out {
		if len(out[i]) != len(out[0]) {
			return nil, c.server.WrongAnswer("embeddings of %d and of %d coordinates", len(out[0]), len(out[i]))
		}
	}
	return out, nil
}

// scrubText returns what of a text is sent.
func scrubText(text string) string {
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
		return nil, c.server.WrongAnswer("not the JSON that was expected")
	}
	if len(answer.Data) != want {
		return nil, c.server.WrongAnswer("%d embeddings for %d texts", len(answer.Data), want)
	}
	out := make([][]float64, want)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= want || out[d.Index] != nil {
			return nil, c.server.WrongAnswer("embedding number %d of %d", d.Index, want)
		}
		e := make([]float64, len(d.Embedding))
		for i, v := range d.Embedding {
			if v == nil {
				return nil, c.server.WrongAnswer("a coordinate that is null")
			}
			e[i] = *v
		}
		if err := c.check(e); err != nil {
			return nil, err
		}
		if strings.TrimSpace(texts[d.Index]) != "" &&
			!slices.ContainsFunc(e, func(v float64) bool { return v != 0 }) {
			return nil, c.server.WrongAnswer("an embedding of nothing but zeros")
		}
		out[d.Index] = e
	}
	return out, nil
}

func (c *Client) check(e []float64) error {
	switch {
	case len(e) == 0:
		return c.server.WrongAnswer("an empty embedding")
	case slices.ContainsFunc(e, func(v float64) bool { return math.IsNaN(v) || math.Abs(v) > 1e6 }):
		return c.server.WrongAnswer("coordinates beyond a million")
	}
	return nil
}
