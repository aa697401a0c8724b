package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const wrongToken = "wrong-wrong-wrong-wrong"

// fails has a browser log in with wrong tokens, each of which must be refused.
func (b *browser) fails(times int) {
	b.t.Helper()
	for i := range times {
		if a := b.login(wrongToken); a.status != http.StatusForbidden || len(b.cookies) > 0 {
			b.t.Fatalf("the %d. wrong one: %d", i+1, a.status)
		}
	}
}

// from returns a browser behind a proxy at this machine, or something that says so.
func (p *port) from(t *testing.T, forwarded string) *browser {
	t.Helper()
	b := p.browser(t)
	b.headers = map[string]string{"X-Forwarded-For": forwarded}
	return b
}

func TestOneWhoseLoginsFailKeepsNobodyElseBehindAProxyOut(t *testing.T) {
	p := openPort(t)
	p.from(t, "10.0.0.7").fails(5)
	// What its client said before counts for nothing.
	for _, forwarded := range []string{"10.0.0.7", "10.0.0.9, 10.0.0.7", "::ffff:10.0.0.7"} {
		if a := p.from(t, forwarded).login(wrongToken); a.status != http.StatusTooManyRequests {
			t.Errorf("%q, whose logins failed: %d", forwarded, a.status)
		}
	}
	for _, forwarded := range []string{"10.0.0.8", "10.0.0.7, 10.0.0.8", "what", "", "2001:db8::1"} {
		if a := p.from(t, forwarded).login(adminToken); a.status != http.StatusSeeOther {
			t.Errorf("%q: %d", forwarded, a.status)
		}
	}
	p.from(t, "2001:db8::1").fails(5) // somebody has as many addresses as a network of 64 bits
	if a := p.from(t, "2001:db8::2").login(wrongToken); a.status != http.StatusTooManyRequests {
		t.Errorf("from another address of the same network: %d", a.status)
	}
	if a := p.from(t, "2001:db8:0:1::1").login(adminToken); a.status != http.StatusSeeOther {
		t.Errorf("from another network: %d", a.status)
	}
}

func TestWhoSaysThatItIsManyIsBoundedAsOne(t *testing.T) {
	p := openPort(t)
	for i := range 10 {
		p.from(t, fmt.Sprintf("10.0.1.%d", i)).fails(5)
	}
	if a := p.from(t, "10.0.2.1").login(wrongToken); a.status != http.StatusTooManyRequests {
		t.Errorf("after 50 by one proxy: %d", a.status)
	}
}

func TestATunnelThatManyShareHasALargerBound(t *testing.T) {
	p := openPort(t)
	b := p.browser(t)
	b.fails(49)
	if a := p.browser(t).login(adminToken); a.status != http.StatusSeeOther {
		t.Errorf("after 49: %d", a.status)
	}
	b.fails(1)
	if a := p.browser(t).login(wrongToken); a.status != http.StatusTooManyRequests {
		t.Errorf("after 50: %d", a.status)
	}
}

func TestOverANetworkNobodySaysWhoElseTheyAre(t *testing.T) {
	site := openPort(t).Config.Handler
	try := func(remote, forwarded string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/login", nil)
		r.Host = "localhost"
		site.ServeHTTP(w, r)
		form := url.Values{
			"token":      {"wrong-wrong-wrong-wrong"},
			"form_token": {tokenOfForm.FindStringSubmatch(w.Body.String())[1]},
		}
		w = httptest.NewRecorder()
		r = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login",
			strings.NewReader(form.Encode()))
		r.Host, r.RemoteAddr = "localhost", remote
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Forwarded-For", forwarded)
		site.ServeHTTP(w, r)
		return w.Code
	}
	for i := range 5 {
		if status := try(fmt.Sprintf("192.0.2.1:%d", 1000+i), fmt.Sprintf("10.0.0.%d", i)); status !=
			http.StatusForbidden {
			t.Fatal(status)
		}
	}
	if status := try("192.0.2.1:2000", "10.0.0.99"); status != http.StatusTooManyRequests {
		t.Errorf("the sixth: %d", status)
	}
	if status := try("192.0.2.2:2000", "192.0.2.1"); status != http.StatusForbidden {
		t.Errorf("from another address: %d", status)
	}
}

func TestSessionsOfTwoEpdsOnOneHostAreKeptApart(t *testing.T) {
	jar, err := cookiejar.New(nil) // as in browsers, cookies are of a host whatever the port
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	ask := func(method, address string, form url.Values) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close() //nolint:errcheck // read only
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	login := func(address, token string) {
		t.Helper()
		form := tokenOfForm.FindStringSubmatch(ask(http.MethodGet, address+"/login", nil))
		ask(http.MethodPost, address+"/login", url.Values{"form_token": {form[1]}, "token": {token}})
	}
	one, other := openPort(t), openPort(t)
	login(one.URL, readerToken)
	login(other.URL, adminToken)
	if body := ask(http.MethodGet, one.URL+"/", nil); !strings.Contains(body, "You are bob, reader.") {
		t.Error("the login at the other port ended the one at the first")
	}
	form := tokenOfForm.FindStringSubmatch(ask(http.MethodGet, one.URL+"/", nil))
	ask(http.MethodPost, one.URL+"/logout", url.Values{"form_token": {form[1]}})
	if body := ask(http.MethodGet, other.URL+"/", nil); !strings.Contains(body, "You are alice, admin.") {
		t.Error("the logout at the first port ended the session at the other")
	}
}

func TestLoginsThatFailAreBounded(t *testing.T) {
	p := openPort(t)
	b := p.from(t, "10.0.0.7")
	b.fails(5)
	if a := b.login(wrongToken); a.status != http.StatusTooManyRequests ||
		a.header.Get("Retry-After") != "60" || len(b.cookies) > 0 {
		t.Errorf("the sixth: %d, retry after %q", a.status, a.header.Get("Retry-After"))
	}
	if a := p.from(t, "10.0.0.7").login(adminToken); a.status != http.StatusSeeOther {
		t.Errorf("a right token after wrong ones of others at that address: %d", a.status)
	}
	p.now = p.now.Add(time.Minute)
	if a := b.login(adminToken); a.status != http.StatusSeeOther {
		t.Errorf("a minute later: %d", a.status)
	}
}

func TestALoginLeadsToThisSiteOnly(t *testing.T) {
	for _, next := range []string{
		"//evil.example/", "https://evil.example/", `/\evil.example`,
		"javascript:alert(1)", "/\tx", "jobs",
	} {
		p := openPort(t)
		b := p.browser(t)
		form := url.Values{"form_token": {b.formToken("/login")}, "token": {adminToken}, "next": {next}}
		if a := b.ask(http.MethodPost, "/login", form); a.header.Get("Location") != "/" {
			t.Errorf("%q leads to %q", next, a.header.Get("Location"))
		}
	}
}

// A proxy may pass the name of the host on without its port.
func TestWithoutAPortInTheHostsNameTheCookieHasTheOneThatEpdListensAt(t *testing.T) {
	names := make(map[string]bool)
	for _, host := range []string{"", "localhost", "localhost:8443", "localhost:what"} {
		p := openPort(t)
		b := p.browser(t)
		b.host = host
		b.login(readerToken)
		if len(b.cookies) != 1 || !strings.HasPrefix(b.cookies[0].Name, "epd_session_") {
			t.Fatalf("%q: %v", host, b.cookies)
		}
		if name := b.cookies[0].Name; strings.HasSuffix(host, ":8443") != (name == "epd_session_8443") ||
			names[name] {
			t.Errorf("%q: the cookie is called %s", host, name)
		} else {
			names[name] = true
		}
	}
}

// Whoever sends wrong tokens all the time, under whatever names, keeps nobody out who has a right one.
func TestARightTokenPassesWhateverWrongOnesDo(t *testing.T) {
	p := openPort(t)
	for i := range 210 { // as many as everybody together may
		p.from(t, fmt.Sprintf("10.0.%d.1", i)).login(wrongToken)
	}
	for _, forwarded := range []string{"10.0.1.1", "10.1.1.1", ""} {
		if a := p.from(t, forwarded).login(wrongToken); a.status != http.StatusTooManyRequests {
			t.Errorf("a further wrong one from %q: %d", forwarded, a.status)
		}
		if a := p.from(t, forwarded).login(adminToken); a.status != http.StatusSeeOther {
			t.Errorf("a right one from %q: %d", forwarded, a.status)
		}
	}
}
