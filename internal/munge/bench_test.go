package munge_test

import (
	"context"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/testkit/mungetest"
)

// measure runs f for each iteration and reports the median and the 99th
// percentile of its time.
func measure(b *testing.B, f func() error) {
	b.Helper()
	took := make([]time.Duration, 0, 1024)
	for b.Loop() {
		begin := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// roundTrip is one credential encoded and decoded.
func roundTrip(ctx context.Context, m *munge.Client) error {
	text, err := m.Encode(ctx, make([]byte, 200), munge.CredentialTerms{TTL: time.Minute})
	if err != nil {
		return err
	}
	_, err = m.Decode(ctx, text)
	return err
}

func BenchmarkEncodeAndDecode(b *testing.B) {
	m := munge.New(mungetest.Start(b, nil).Socket)
	measure(b, func() error { return roundTrip(b.Context(), m) })
}

// What the same costs by munge's own commands: why they aren't used.
func BenchmarkEncodeAndDecodeByCommands(b *testing.B) {
	d := mungetest.Start(b, nil)
	measure(b, func() error {
		enc := exec.CommandContext(b.Context(), "munge", "--socket", d.Socket)
		enc.Stdin = strings.NewReader(strings.Repeat("x", 200))
		text, err := enc.Output()
		if err != nil {
			return err
		}
		dec := exec.CommandContext(b.Context(), "unmunge", "--socket", d.Socket)
		dec.Stdin = strings.NewReader(string(text))
		return dec.Run()
	})
}

// post sends a decision's worth of JSON and reads as much.
func post(ctx context.Context, c *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/decide",
		strings.NewReader(strings.Repeat("x", 1500)))
	if err != nil {
		return err
	}
	response, err := c.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return err
}

var decision = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, strings.Repeat("y", 800))
})

func benchmarkServer(b *testing.B, h http.Handler, by http.RoundTripper) {
	b.Helper()
	l := munge.NewServer(h)
	url := serve(b, l)
	client := &http.Client{Transport: by}
	measure(b, func() error { return post(b.Context(), client, url) })
}

func BenchmarkSignedRequest(b *testing.B) {
	here := mungetest.Start(b, nil)
	there := mungetest.Start(b, here.Key)
	h := munge.Authenticate(decision, munge.New(there.Socket), munge.Options{})
	benchmarkServer(b, h, munge.NewTransport(munge.New(here.Socket), me()))
}

func BenchmarkUnsignedRequest(b *testing.B) {
	benchmarkServer(b, decision, &http.Transport{DisableKeepAlives: true})
}

// Prologs of many nodes at once: how many a controller takes in a second.
func BenchmarkSignedRequestsOfManyNodes(b *testing.B) {
	here := mungetest.Start(b, nil)
	there := mungetest.Start(b, here.Key)
	url := serve(b, munge.NewServer(munge.Authenticate(decision, munge.New(there.Socket), munge.Options{})))
	const nodes = 64
	b.SetParallelism(nodes)
	b.RunParallel(func(p *testing.PB) {
		client := &http.Client{Transport: munge.NewTransport(munge.New(here.Socket), me())}
		for p.Next() {
			if err := post(b.Context(), client, url); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
