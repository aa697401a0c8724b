package web_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/browsertest"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
)

func TestAPageSaysThatItIsntUpToDateAnyMore(t *testing.T) {
	c := newCluster()
	site := web.New(web.Options{
		Source: sourceOf(c), Version: "1.0",
		Now: func() time.Time { return shownAt },
	})
	pages := site.Socket(func(*http.Request) login.Viewer { return admin })
	var away atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() && r.Header.Get("X-Epd-Live") != "" {
			http.Error(w, "epd stops", http.StatusServiceUnavailable)
			return
		}
		pages.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p := browsertest.OpenQuietly(t, server.URL+"/nodes", browsertest.View{})
	p.WaitFor(`document.getElementById('live-trouble').hidden`)
	away.Store(true)
	p.WaitFor(
		`document.getElementById('live-trouble').textContent.includes('Not updated since') && !document.getElementById('live-trouble').hidden`,
	)
	p.Says("epd answers 503")
}
