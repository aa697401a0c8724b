package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/live"
)

// controllerAt answers every question in one way.
func controllerAt(t *testing.T, status int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" ||
			!json.Valid(readAll(t, r)) {
			t.Errorf("%s %s is no question", r.Method, r.URL)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func readAll(t *testing.T, r *http.Request) []byte {
	t.Helper()
	data := make([]byte, r.ContentLength)
	if _, err := r.Body.Read(data); err != nil && err.Error() != "EOF" {
		t.Error(err)
	}
	return data
}

// silent accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	return strings.TrimPrefix(server.URL, "http://")
}

func TestAnotherControllerIsAskedWhenOneDoesntAnswer(t *testing.T) {
	const answer = `{"apply":true,"core_mhz":945,"limit_s":60,"upper_s":null}`
	for name, first := range map[string]string{
		"closed":  "127.0.0.1:1",
		"silent":  silent(t),
		"broken":  controllerAt(t, http.StatusServiceUnavailable, `{"error":"no store"}`),
		"skewed":  controllerAt(t, http.StatusUnauthorized, `{"error":"the credential has expired"}`),
		"another": controllerAt(t, http.StatusNotFound, ``),
		"garbage": controllerAt(t, http.StatusOK, "\x00{"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := daemon.NewRemoteController([]string{first, controllerAt(t, http.StatusOK, answer)},
				http.DefaultTransport)
			for range 2 { // the second time the one that answered is asked first
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				d, err := r.Decide(ctx, &epdapi.DecideRequest{})
				cancel()
				if err != nil || !d.Apply || d.Core != 945 || d.Limit != live.LimitOf(time.Minute) {
					t.Errorf("decision %+v, error %v", d, err)
				}
			}
		})
	}
}

func TestWhatAControllerSaysOfAnOutcomeIsUnderstood(t *testing.T) {
	for _, test := range []struct {
		status int
		want   error
	}{
		{http.StatusOK, nil},
		{http.StatusTooEarly, control.ErrNotYet},
		{http.StatusBadRequest, daemon.ErrRefused},
		{http.StatusRequestEntityTooLarge, daemon.ErrRefused},
	} {
		r := daemon.NewRemoteController([]string{controllerAt(t, test.status, `{"receipt":"stored"}`)},
			http.DefaultTransport)
		if err := r.Record(t.Context(), []byte(`{"run_id":"r"}`)); !errors.Is(err, test.want) ||
			(err == nil) != (test.want == nil) {
			t.Errorf("status %d: %v, want %v", test.status, err, test.want)
		}
	}
	for _, status := range []int{
		http.StatusForbidden, http.StatusUnauthorized, http.StatusServiceUnavailable,
		http.StatusFound,
	} {
		r := daemon.NewRemoteController([]string{controllerAt(t, status, `{"error":"who are you?"}`)},
			http.DefaultTransport)
		err := r.Record(t.Context(), []byte(`{"run_id":"r"}`))
		if err == nil || errors.Is(err, daemon.ErrRefused) || errors.Is(err, control.ErrNotYet) {
			t.Errorf("status %d: %v, want one that is tried again", status, err)
		}
	}
}

// tooLong refuses to send anything.
type tooLong struct{}

func (tooLong) RoundTrip(*http.Request) (*http.Response, error) { return nil, munge.ErrTooLong }

func TestAnOutcomeThatCantBeSentHoldsUpNoOther(t *testing.T) {
	r := daemon.NewRemoteController([]string{"controller:1"}, tooLong{})
	if err := r.Record(t.Context(), []byte(`{"run_id":"r"}`)); !errors.Is(err, daemon.ErrRefused) {
		t.Errorf("%v, want one that is refused for good", err)
	}
	if err := r.Record(t.Context(), []byte(`{"run_id":`)); !errors.Is(err, daemon.ErrRefused) {
		t.Errorf("half of an outcome: %v, want that it is refused for good", err)
	}
}
