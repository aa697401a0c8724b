package epdapi_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/spelling"
)

// answering answers all requests in one way.
type answering struct {
	status int
	body   string
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader(a.body))
	return &http.Response{StatusCode: a.status, Status: a.body, Body: body}, nil
}

// FuzzAnswersOfAnEPD: whatever answers at a socket, a client has an answer, or an error that is one line
// which can be shown.
func FuzzAnswersOfAnEPD(f *testing.F) {
	for _, text := range []string{
		`{"version":"1","gpus":[{"uuid":"GPU-1"}],"queue":{"jobs":[{"id":7,"limit_s":60}]}}`, "<html>", "\xff",
		`{"gpus":{"a":1},"started":"never\u202e","jobs":[null],"limit_s":-1,"at":"9999-99-99"}`, `[]`, `{}`,
		`{"error":"no \u001b[31m\u202e","hint":"\n"}`, `{"jobs":[{"limit_s":"\u001b[31m"}]}`,
	} {
		f.Add(uint16(http.StatusOK), text)
		f.Add(uint16(http.StatusForbidden), text)
	}
	f.Fuzz(func(t *testing.T, status uint16, body string) {
		c := epdapi.NewRemote("epd", answering{int(status), body})
		ctx := t.Context()
		for what, err := range map[string]error{
			"status":  second(c.Status(ctx)),
			"jobs":    second(c.Jobs(ctx, nil)),
			"job":     second(c.Job(ctx, "7")),
			"savings": second(c.Savings(ctx, time.Time{}, time.Time{})),
			"queue":   second(c.Queue(ctx)),
			"hook":    second(c.Hook(ctx, &hooks.Event{Kind: hooks.Prolog})),
		} {
			if err == nil {
				continue
			}
			if said := err.Error(); strings.ContainsFunc(said, func(r rune) bool { return !spelling.IsShown(r) }) {
				t.Errorf("%s: %q", what, said)
			}
			if _, refused := errors.AsType[*epdapi.RefusedError](err); refused && status == http.StatusOK {
				t.Errorf("%s: refused, though answered: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
