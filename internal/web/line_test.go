package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
)

// planners are people who ask one site for plans of a queue, which takes as long to
// be told as the test likes.
type planners struct {
	*cluster
	handler http.Handler
}

func newPlanners() *planners {
	p := &planners{cluster: newCluster()}
	p.slow, p.asked = make(chan struct{}), make(chan struct{}, 99)
	site := web.New(web.Options{Source: sourceOf(p.cluster)})
	p.handler = site.Socket(func(r *http.Request) login.Viewer {
		uid, _ := strconv.ParseInt(r.Header.Get("Uid"), 10, 64)
		return login.Viewer{UID: uid, Role: login.User}
	})
	return p
}

// ask has somebody ask for a page.
func (p *planners) ask(ctx context.Context, uid int, path string) <-chan *httptest.ResponseRecorder {
	answer := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
		r.Host = "localhost"
		r.Header.Set("Uid", strconv.Itoa(uid))
		p.handler.ServeHTTP(w, r)
		answer <- w
	}()
	return answer
}

const planPath = "/whatif?policy=edl&jobs=3"

func TestAPlanOfTheQueueWaitsForThatOfSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlanners()
		first, second := p.ask(t.Context(), 1, planPath), p.ask(t.Context(), 2, planPath)
		synctest.Wait()
		if len(p.asked) != 1 {
			t.Errorf("%d plans are made at once", len(p.asked))
		}
		if w := <-p.ask(t.Context(), 3, "/jobs"); w.Code != http.StatusOK {
			t.Errorf("who waits for a plan keeps others from a page: %d", w.Code)
		}
		<-time.After(2 * time.Second)
		close(p.slow)
		for _, answer := range []<-chan *httptest.ResponseRecorder{first, second} {
			if w := <-answer; w.Code != http.StatusOK ||
				!strings.Contains(w.Body.String(), "The plan is of") {
				t.Errorf("%d:\n%.2000s", w.Code, w.Body)
			}
		}
	})
}

func TestWhoWaitedTooLongForAPlanIsToldWhenToAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlanners()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		first := p.ask(ctx, 1, planPath)
		synctest.Wait()
		waiting := make([]<-chan *httptest.ResponseRecorder, 0, 8)
		for uid := range 8 {
			waiting = append(waiting, p.ask(ctx, 10+uid, planPath))
		}
		synctest.Wait()
		began := time.Now()
		refused := func(w *httptest.ResponseRecorder, says string) {
			t.Helper()
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "5" ||
				!strings.Contains(w.Body.String(), says) {
				t.Errorf("%d, again after %q, want %q:\n%.2000s", w.Code, w.Header().Get("Retry-After"),
					says, w.Body)
			}
			if !strings.Contains(w.Body.String(), "value=\"3\"") {
				t.Error("the form is not as it was filled in")
			}
		}
		refused(<-p.ask(ctx, 99, planPath), "Others wait for their plans")
		if waited := time.Since(began); waited > 0 {
			t.Errorf("it took %s to say that the line is full", waited)
		}
		for _, answer := range waiting {
			refused(<-answer, "Others wait for their plans")
		}
		if waited := time.Since(began); waited < 4*time.Second || waited > 6*time.Second {
			t.Errorf("people waited for %s", waited)
		}
		leave()
		<-first
	})
}

func TestOfTheSameUserTheLastPlanThatWaitsIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlanners()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		first := p.ask(ctx, 1, planPath)
		synctest.Wait()
		old := p.ask(ctx, 1, planPath)
		synctest.Wait()
		last := p.ask(ctx, 1, "/whatif?policy=edl&jobs=2")
		if w := <-old; w.Code != http.StatusTooManyRequests ||
			!strings.Contains(w.Body.String(), "asked for another plan since") {
			t.Errorf("%d:\n%.2000s", w.Code, w.Body)
		}
		close(p.slow)
		<-first
		if w := <-last; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "plans all 2 jobs") {
			t.Errorf("%d:\n%.2000s", w.Code, w.Body)
		}
	})
}
