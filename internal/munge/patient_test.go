package munge_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/munge"
)

// slowVoucher is a munged that is busy with whatever it is asked until it is told to go on, and asks how many
// at once.
type slowVoucher struct {
	asked chan struct{}
	goOn  chan struct{}
}

func (v slowVoucher) Decode(ctx context.Context, _ string) (munge.Credential, error) {
	v.asked <- struct{}{}
	select {
	case <-v.goOn:
	case <-ctx.Done():
	}
	return munge.Credential{}, munge.ErrInvalid
}

func (v slowVoucher) Encode(context.Context, []byte, munge.CredentialTerms) (string, error) {
	return "", munge.ErrUnavailable
}

func TestManyRequestsThatNobodyWaitsForKeepMungedFromNoOther(t *testing.T) {
	const many = 50
	v := slowVoucher{make(chan struct{}, 2*many), make(chan struct{})}
	h := munge.Authenticate(http.NotFoundHandler(), v, munge.Options{
		Patient: func(r *http.Request) bool { return r.URL.Path == "/report" },
	})
	answered := make(chan int, 2*many)
	ask := func(path string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody)
		r.Header.Set(munge.Header, "MUNGE:AAAA:")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		answered <- w.Code
	}
	for range many {
		go ask("/report")
	}
	asked := 0
	for quiet := false; !quiet; {
		select {
		case <-v.asked:
			asked++
		case <-time.After(200 * time.Millisecond):
			quiet = asked > 0
		}
	}
	if asked > 4 {
		t.Errorf("munged is asked about %d reports at once, want at most 4", asked)
	}
	go ask("/decide")
	select {
	case <-v.asked:
	case <-time.After(10 * time.Second):
		t.Fatal("a decision waits for reports")
	}
	close(v.goOn)
	for range many + 1 {
		if code := <-answered; code != http.StatusUnauthorized {
			t.Errorf("status %d, want 401", code)
		}
	}
}
