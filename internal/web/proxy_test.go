package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/web/login"
)

// openBehindProxy opens a port that believes the header of a proxy on this machine.
func openBehindProxy(t *testing.T) *port {
	t.Helper()
	p := openPort(t)
	p.settings.ProxyHeader, p.settings.Proxies = "X-Remote-User", []string{"127.0.0.1", "::1/128"}
	p.settings.Admins, p.settings.Readers = []string{"root-admin"}, []string{"carol"}
	return p
}

// as returns a browser whose proxy names a user.
func (p *port) as(t *testing.T, name string) *browser {
	t.Helper()
	b := p.browser(t)
	b.headers = map[string]string{"X-Remote-User": name}
	return b
}

func TestAProxysHeaderSaysWhoAsksAndTheListsTheRole(t *testing.T) {
	p := openBehindProxy(t)
	for name, want := range map[string]struct {
		says   string
		status map[string]int
	}{
		"root-admin": {"You are root-admin, admin.", map[string]int{"/admin": 200, "/jobs/4711": 200}},
		"carol":      {"You are carol, reader.", map[string]int{"/admin": 403, "/month": 200, "/jobs/4711": 200}},
		"ada":        {"You are ada, user.", map[string]int{"/admin": 403, "/month": 403, "/jobs/4711": 200}},
		"bob":        {"You are bob, user.", map[string]int{"/month": 403, "/jobs/4711": 404}},
		"stranger":   {"no user of your name, so no job", map[string]int{"/month": 403, "/jobs/4711": 404}},
	} {
		b := p.as(t, name)
		a := b.get("/")
		if a.status != http.StatusOK || !strings.Contains(a.body, want.says) {
			t.Errorf("%s: %d, want %q", name, a.status, want.says)
		}
		if strings.Contains(a.body, "Log out") {
			t.Errorf("%s is offered to log out where epd can't", name)
		}
		for path, status := range want.status {
			if a := b.get(path); a.status != status {
				t.Errorf("%s gets %d for %s, want %d", name, a.status, path, status)
			}
		}
		if a := b.get("/v1/jobs"); a.status != http.StatusOK {
			t.Errorf("%s: the JSON interface answers %d", name, a.status)
		}
		asked := p.asked[len(p.asked)-1]
		uid := map[string]int64{"ada": 1000, "bob": 1001}[name]
		if asked.Name != name || asked.UID != uid && (uid != 0 || asked.UID >= 0) {
			t.Errorf("%s asks as %+v", name, asked)
		}
	}
	if len(p.log.String()) > 0 {
		t.Errorf("logged: %s", &p.log)
	}
	p.settings.Admins = nil // by epplan reload
	if a := p.as(t, "root-admin").get("/admin"); a.status != http.StatusForbidden {
		t.Errorf("no longer an admin: %d", a.status)
	}
	if a := p.browser(t).get("/"); a.status != http.StatusSeeOther {
		t.Errorf("a request of the proxy without a name: %d", a.status)
	}
}

func TestTheProxysUserCountsBeforeASessionAndTokensGoOn(t *testing.T) {
	p := openBehindProxy(t)
	b := p.browser(t)
	b.login(adminToken)
	if a := b.get("/"); !strings.Contains(a.body, "You are alice, admin.") {
		t.Errorf("a token behind the proxy: %d", a.status)
	}
	b.headers = map[string]string{"X-Remote-User": "ada"}
	if a := b.get("/"); !strings.Contains(a.body, "You are ada, user.") {
		t.Errorf("the session of a token counts for ada: %d", a.status)
	}
	p.tokens = ""
	if a := p.browser(t).get("/login"); !strings.Contains(a.body, "it knows who you are") {
		t.Errorf("without tokens the login says\n%s", a.body)
	}
}

func TestAProxysHeaderThatCantBeIsRefusedWithAReason(t *testing.T) {
	p := openBehindProxy(t)
	for name, why := range map[string]string{
		"": "is empty", "ada bob": "characters other than", "ada,bob": "characters other than",
		"-ada": "characters other than", "<b>": "characters other than", "äda": "characters other than",
		`DOMAIN\ada`: "characters other than", strings.Repeat("a", 65): "too many", "(null)": "characters other than",
	} {
		for _, path := range []string{"/", "/login", "/v1/jobs", "/healthz"} {
			if a := p.as(t, name).get(path); a.status != http.StatusForbidden || !strings.Contains(a.body, why) ||
				a.header.Get("Content-Security-Policy") == "" {
				t.Errorf("%q at %s: %d, want 403 and %q", name, path, a.status, why)
			}
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["X-Remote-User"] = []string{"ada", "root-admin"}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("two names: %d", response.StatusCode)
	}
	if n := strings.Count(p.log.String(), "requests of the proxy are refused"); n != 1 {
		t.Errorf("logged %d times: %s", n, &p.log)
	}
}

func TestTheHeaderOfAnybodyElseIsIgnoredAndLoggedOnce(t *testing.T) {
	p := openBehindProxy(t)
	ask := func(remote string, header string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/admin", nil)
		r.Host, r.RemoteAddr = "localhost", remote
		r.Header.Set(header, "root-admin")
		r.Header.Set("X-Forwarded-For", "127.0.0.1")
		p.Config.Handler.ServeHTTP(w, r)
		return w.Code
	}
	for _, remote := range []string{
		"192.0.2.1:4711", "[2001:db8::1]:80", "", "@", "127.0.0.2:80",
		"127.0.0.1:1", "[::ffff:127.0.0.1]:1", // no such connection: it may be anybody's
	} {
		if status := ask(remote, "X-Remote-User"); status != http.StatusSeeOther {
			t.Errorf("%q is believed: %d", remote, status)
		}
	}
	if n := strings.Count(p.log.String(), "was ignored"); n != 1 {
		t.Errorf("logged %d times: %s", n, &p.log)
	}
	p.settings.Proxies = append(p.settings.Proxies, "192.0.2.0/30")
	if status := ask("192.0.2.1:4711", "X-Remote-User"); status != http.StatusOK {
		t.Errorf("another machine's proxy: %d", status)
	}
	for _, header := range []string{"X_Remote_User", "Remote-User", "X-Remote-User "} {
		if status := ask("192.0.2.1:4711", header); status != http.StatusSeeOther {
			t.Errorf("%q is taken for the header: %d", header, status)
		}
	}
	p.settings.ProxyHeader = ""
	if status := ask("192.0.2.1:4711", "X-Remote-User"); status != http.StatusSeeOther {
		t.Errorf("without proxy_header: %d", status)
	}
}

// A user's forms are bound to the name, and another site's are refused.
func TestFormsBehindAProxyAreBoundToTheName(t *testing.T) {
	p := openBehindProxy(t)
	p.settings.Admins = append(p.settings.Admins, "ada", "stranger")
	form := func(name string) string { return p.as(t, name).formToken("/admin/reload") }
	tokens := map[string]string{"nobody": p.browser(t).formToken("/login")}
	for _, name := range []string{"root-admin", "ada", "stranger"} {
		tokens[name] = form(name)
	}
	for name := range tokens {
		for of, token := range tokens {
			if name == "nobody" {
				continue
			}
			a := p.as(t, name).ask(http.MethodPost, "/admin/reload", url.Values{"form_token": {token}})
			if (a.status == http.StatusSeeOther) != (name == of) {
				t.Errorf("%s sends the form of %s: %d", name, of, a.status)
			}
		}
	}
	b := p.as(t, "ada")
	b.headers["Origin"] = "https://evil.example"
	if a := b.ask(http.MethodPost, "/admin/reload", url.Values{"form_token": {tokens["ada"]}}); a.status !=
		http.StatusForbidden {
		t.Errorf("another site's form: %d", a.status)
	}
}

// A viewer of a role that the proxy's name has sees no more than that of a socket.
func TestAnUnknownUserOfAProxyOwnsNothing(t *testing.T) {
	p := openBehindProxy(t)
	v := login.NamedViewer(&p.settings, "stranger", nil, nil)
	if v.UID >= 0 || v.SeesAll() || v.Acts() || v.Role != login.User || v.Session == "" {
		t.Errorf("%+v", v)
	}
	if v := login.ViewerOf(context.Background()); v.Role != login.Anonymous {
		t.Errorf("%+v", v)
	}
}
