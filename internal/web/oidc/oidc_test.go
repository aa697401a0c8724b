package oidc_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/internal/web/oidc"
)

// pages are epd's, with an issuer beside them.
type pages struct {
	*httptest.Server
	issuer   *issuer
	settings config.Web
	now      time.Time // zero: the time that it is
	log      bytes.Buffer
}

// administration knows nothing.
type administration struct{ web.Administration }

func (administration) Status(context.Context) (*epdapi.Status, error) { return &epdapi.Status{}, nil }

func (p *pages) time() time.Time {
	if p.now.IsZero() {
		return time.Now()
	}
	return p.now
}

func openPages(t *testing.T) *pages {
	t.Helper()
	p := &pages{issuer: newIssuer(t), settings: config.Default().Web}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(clientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.settings.OIDC.Issuer, p.settings.OIDC.ClientID, p.settings.OIDC.SecretFile = p.issuer.URL, clientID, secret
	p.settings.Admins, p.settings.Readers = []string{"alice"}, []string{"bob"}
	site := web.New(web.Options{
		Source:   func(login.Viewer) (web.Source, web.Administration) { return nil, administration{} },
		Settings: func() config.Web { return p.settings }, Now: p.time,
		Issuer: oidc.New(func() config.OIDC { return p.settings.OIDC }, p.time),
		Log:    slog.New(slog.NewTextHandler(&p.log, nil)),
		Tokens: func() (*login.Tokens, error) {
			return login.ReadTokens(strings.NewReader("admin carol 0123456789abcdef0123"), "tokens")
		},
		Accounts: func(name string) (uint32, string, bool) { return 1000, name, name == "ada" },
	})
	p.Server = httptest.NewServer(site.Network())
	t.Cleanup(p.Close)
	return p
}

// browser is somebody who keeps cookies and follows no redirect by itself.
type browser struct {
	t *testing.T
	p *pages
	*http.Client
}

func (p *pages) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, p, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

func (b *browser) get(address string) (status int, body string, header http.Header) {
	b.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.p.URL + address
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	response, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

// begin goes to the issuer, and returns the address to which that sends the browser back.
func (b *browser) begin(next string) string {
	b.t.Helper()
	status, body, header := b.get("/login/oidc?" + url.Values{"next": {next}}.Encode())
	if status != http.StatusSeeOther ||
		!strings.HasPrefix(header.Get("Location"), b.p.issuer.URL+"/authorize?") {
		b.t.Fatalf("%d to %s\n%s", status, header.Get("Location"), body)
	}
	cookie := header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Lax", "Max-Age=600"} {
		if !strings.Contains(cookie, want) {
			b.t.Errorf("the attempt's cookie is %s, want %s", cookie, want)
		}
	}
	status, body, header = b.get(header.Get("Location"))
	if status != http.StatusFound {
		b.t.Fatalf("the issuer: %d\n%s", status, body)
	}
	return header.Get("Location")
}

// login goes to the issuer and back.
func (b *browser) login(next string) (status int, body string, header http.Header) {
	b.t.Helper()
	return b.get(b.begin(next))
}

// viewer is what the foot of a page says.
func (b *browser) viewer() string {
	b.t.Helper()
	_, body, _ := b.get("/nowhere")
	found := regexp.MustCompile(`(You are [^ ]+, \w+)\. Times`).FindStringSubmatch(body)
	if found == nil {
		return ""
	}
	return found[1]
}

func TestTheIssuerLogsPeopleInWithTheirRoles(t *testing.T) {
	for user, want := range map[string]string{
		"alice": "You are alice, admin", "bob": "You are bob, reader", "ada": "You are ada, user",
		"eve@example.org": "You are eve@example.org, user",
	} {
		p := openPages(t)
		p.issuer.user = user
		b := p.browser(t)
		if _, body, _ := b.get("/login?next=/queue"); !strings.Contains(body, `href="/login/oidc?next=%2Fqueue"`) ||
			!strings.Contains(body, `name="token"`) {
			t.Fatalf("the login offers\n%s", body)
		}
		status, body, header := b.login("/queue?sort=age&user=ada")
		if status != http.StatusOK || header.Get("Refresh") != "0; url=/queue?sort=age&user=ada" ||
			!strings.Contains(body, `href="/queue?sort=age&amp;user=ada"`) || !strings.Contains(body, want) {
			t.Errorf("%s: %d, %v\n%s\n%s", user, status, header, body, &p.log)
		}
		cookies := strings.Join(header.Values("Set-Cookie"), "\n")
		if !strings.Contains(cookies, "_oidc=;") || !strings.Contains(cookies, "SameSite=Strict") {
			t.Errorf("%s: cookies %s", user, cookies)
		}
		if said := b.viewer(); said != want {
			t.Errorf("%s: %q", user, said)
		}
		if status, _, _ := b.get("/admin/reload"); (status == http.StatusOK) != (user == "alice") {
			t.Errorf("%s administers: %d", user, status)
		}
		if !strings.Contains(p.log.String(), "logged in") || strings.Contains(p.log.String(), clientSecret) {
			t.Errorf("%s: logged %s", user, &p.log)
		}
		p.settings.Admins, p.settings.Readers = []string{user}, nil // by epplan reload
		if said := b.viewer(); !strings.HasSuffix(said, "admin") {
			t.Errorf("%s is made an admin: %q", user, said)
		}
		p.settings.OIDC.Issuer = "https://another.example"
		if said := b.viewer(); said != "" {
			t.Errorf("%s is logged in by an issuer that isn't configured: %q", user, said)
		}
	}
}

// A name's role and that of a group may differ: the higher one counts.
func TestGroupsOfTheIssuerHaveRoles(t *testing.T) {
	for name, c := range map[string]struct {
		user   string
		groups any
		want   string
	}{
		"an admin's group":          {"ada", []string{"staff", "/hpc/admins"}, "admin"},
		"a reader's group":          {"ada", []string{"/hpc/readers"}, "reader"},
		"both":                      {"ada", []string{"/hpc/readers", "/hpc/admins"}, "admin"},
		"a reader in admins":        {"bob", []string{"/hpc/admins"}, "admin"},
		"an admin in readers":       {"alice", []string{"/hpc/readers"}, "admin"},
		"a group as a text":         {"ada", "/hpc/admins", "admin"},
		"two in a text are another": {"ada", "/hpc/admins,/hpc/readers", "user"},
		"a group that begins so":    {"ada", []string{"/hpc/admins2", "/hpc", "/HPC/ADMINS"}, "user"},
		"no group":                  {"ada", []string{}, "user"},
		"no claim":                  {"ada", nil, "user"},
		"none that are texts":       {"ada", []any{7, nil, map[string]any{"/hpc/admins": true}}, "user"},
		"a claim that isn't a list": {"ada", map[string]any{"/hpc/admins": true}, ""},
		"a number":                  {"ada", 7, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := openPages(t)
			p.settings.OIDC.AdminGroups, p.settings.OIDC.ReaderGroups = []string{
				"/hpc/admins",
			}, []string{
				"/hpc/readers",
			}
			p.settings.OIDC.Scopes = []string{"groups"}
			p.issuer.user = c.user
			p.issuer.claims = func(all map[string]any) {
				if c.groups != nil {
					all["groups"] = c.groups
				}
			}
			b := p.browser(t)
			back := b.begin("/")
			if asked := p.issuer.scopes(); asked != "openid profile groups" {
				t.Errorf("asked for %s", asked)
			}
			want := ""
			if c.want != "" {
				want = "You are " + c.user + ", " + c.want
			}
			if b.get(back); b.viewer() != want {
				t.Errorf("%q, want %q\n%s", b.viewer(), want, &p.log)
			}
			p.settings.OIDC.AdminGroups, p.settings.OIDC.ReaderGroups = nil, nil // by epplan reload
			if said := b.viewer(); c.user == "ada" && want != "" && said != "You are ada, user" {
				t.Errorf("once no group has a role: %q", said)
			}
		})
	}
}

func TestASessionOfTheIssuersEndsAsOthersDo(t *testing.T) {
	p := openPages(t)
	p.now = time.Now()
	b := p.browser(t)
	b.login("/")
	_, body, _ := b.get("/nowhere")
	form := regexp.MustCompile(`name="form_token" value="([0-9a-f]{64})"`).FindStringSubmatch(body)
	if form == nil {
		t.Fatal(body)
	}
	response, err := b.PostForm(p.URL+"/logout", url.Values{"form_token": {form[1]}}) //nolint:noctx // a test's
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if said := b.viewer(); said != "" {
		t.Errorf("after the logout: %q", said)
	}
	b.login("/")
	p.now = p.now.Add(91 * time.Minute)
	if said := b.viewer(); said != "" {
		t.Errorf("after 91 idle minutes: %q", said)
	}
}

// All that an issuer may say wrongly, or somebody in its place.
func TestATokenThatIsWrongLogsNobodyIn(t *testing.T) {
	set := func(claim string, v any) func(*issuer) {
		return func(i *issuer) { i.claims = func(all map[string]any) { all[claim] = v } }
	}
	without := func(claim string) func(*issuer) {
		return func(i *issuer) { i.claims = func(all map[string]any) { delete(all, claim) } }
	}
	const distrust, nameless = "be trusted", "states no name"
	for name, c := range map[string]struct {
		change func(*issuer)
		page   string
		log    string
	}{
		"wrong nonce":         {set("nonce", "another"), distrust, "wrong nonce"},
		"no nonce":            {without("nonce"), distrust, "wrong nonce"},
		"another audience":    {set("aud", "another"), distrust, "audience"},
		"no audience":         {without("aud"), distrust, "audience"},
		"made for another":    {set("azp", "another"), distrust, "made for"},
		"two audiences alone": {set("aud", []string{clientID, "another"}), distrust, "made for"},
		"expired":             {set("exp", time.Now().Add(-time.Second).Unix()), distrust, "expired"},
		"not yet valid":       {set("nbf", time.Now().Add(time.Hour).Unix()), distrust, "nbf"},
		"another issuer":      {set("iss", "https://evil.example"), distrust, "different provider"},
		"no subject":          {without("sub"), distrust, "no subject"},
		"no name":             {without("preferred_username"), nameless, "no text as claim"},
		"a name that's none":  {set("preferred_username", 7), nameless, "no text as claim"},
		"an empty name":       {set("preferred_username", ""), nameless, "other than"},
		"a name of markup":    {set("preferred_username", "<b>ada</b>"), nameless, "other than"},
		"a name with a line":  {set("preferred_username", "ada\nadmin"), nameless, "other than"},
		"a long name":         {set("preferred_username", strings.Repeat("a", 1000)), nameless, "other than"},
		"lists of names":      {set("preferred_username", []string{"alice"}), nameless, "no text as claim"},
		"signed by a secret": {func(i *issuer) {
			i.signer = jose.SigningKey{Algorithm: jose.HS256, Key: []byte(strings.Repeat(clientSecret, 2))}
		}, distrust, "malformed jwt"},
	} {
		t.Run(name, func(t *testing.T) {
			p := openPages(t)
			c.change(p.issuer)
			b := p.browser(t)
			status, body, _ := b.login("/")
			if status != http.StatusForbidden || !strings.Contains(body, c.page) || b.viewer() != "" {
				t.Errorf("%d, %q\n%s", status, b.viewer(), body)
			}
			if !strings.Contains(p.log.String(), c.log) || strings.Contains(p.log.String(), clientSecret) ||
				len(p.log.String()) > 1000 {
				t.Errorf("logged %s", &p.log)
			}
			p.issuer.change(func() { p.issuer.claims = nil })
			if name != "signed by a secret" {
				if b.login("/"); b.viewer() == "" {
					t.Errorf("the next login fails, too: %s", &p.log)
				}
			}
		})
	}
}

func TestAnIssuersNewKeyIsFetchedAndAnUnknownOneRefused(t *testing.T) {
	p := openPages(t)
	b := p.browser(t)
	b.login("/")
	p.issuer.rotate(false)
	other := p.browser(t)
	if status, _, _ := other.login("/"); status != http.StatusForbidden || other.viewer() != "" {
		t.Errorf("a key that isn't published: %d", status)
	}
	p.issuer.rotate(true)
	if status, body, _ := other.login("/"); status != http.StatusOK || other.viewer() == "" {
		t.Errorf("a new key: %d\n%s\n%s", status, body, &p.log)
	}
}

func TestAnAnswerCountsOnceAndInTheBrowserThatAskedAlone(t *testing.T) {
	p := openPages(t)
	b, other := p.browser(t), p.browser(t)
	back := b.begin("/")
	if status, _, _ := other.get(back); status != http.StatusForbidden || other.viewer() != "" {
		t.Errorf("another browser: %d", status)
	}
	other.begin("/") // with an attempt of its own
	if status, _, _ := other.get(back); status != http.StatusForbidden || other.viewer() != "" {
		t.Errorf("another browser with another attempt: %d", status)
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	kept := b.Jar.Cookies(u)
	if status, _, _ := b.get(back); status != http.StatusOK {
		t.Fatalf("the one that asked: %d\n%s", status, &p.log)
	}
	again := p.browser(t)
	again.Jar.SetCookies(u, kept)
	if status, body, _ := again.get(back); status != http.StatusForbidden || again.viewer() != "" ||
		!strings.Contains(body, "used already") {
		t.Errorf("the same code again: %d", status)
	}
	for name, change := range map[string]func(url.Values){
		"another state": func(q url.Values) { q.Set("state", "another") },
		"no state":      func(q url.Values) { q.Del("state") },
		"two states":    func(q url.Values) { q.Add("state", "another") },
		"made-up code":  func(q url.Values) { q.Set("code", "made-up") },
		"no code":       func(q url.Values) { q.Del("code") },
		"other issuer":  func(q url.Values) { q.Set("iss", "https://evil.example") },
		"an error":      func(q url.Values) { q.Set("error", "<b>access_denied\x1b") },
	} {
		b := p.browser(t)
		back, err := url.Parse(b.begin("/"))
		if err != nil {
			t.Fatal(err)
		}
		q := back.Query()
		change(q)
		back.RawQuery = q.Encode()
		status, body, _ := b.get(back.String())
		if status != http.StatusForbidden && name != "no code" || status == http.StatusOK || b.viewer() != "" {
			t.Errorf("%s: %d", name, status)
		}
		if strings.Contains(body, "access_denied") || strings.Contains(p.log.String(), "\x1b") {
			t.Errorf("%s: what was sent is shown", name)
		}
	}
	p.now = time.Now()
	b = p.browser(t)
	back = b.begin("/")
	p.now = p.now.Add(11 * time.Minute)
	if status, _, _ := b.get(back); status != http.StatusForbidden {
		t.Errorf("after 11 minutes: %d", status)
	}
}

func TestAnIssuerThatIsDownKeepsNoPageAndNoTokenFromWorking(t *testing.T) {
	p := openPages(t)
	p.now = time.Now()
	p.issuer.wrong = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
	b := p.browser(t)
	for range 3 {
		status, body, header := b.get("/login/oidc")
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "answer now. Try again") ||
			!strings.Contains(body, `name="token"`) || header.Get("Retry-After") == "" {
			t.Errorf("%d\n%s", status, body)
		}
	}
	if n := p.issuer.asked["/.well-known/openid-configuration"]; n != 1 {
		t.Errorf("the issuer was asked %d times at once", n)
	}
	if status, _, _ := b.get("/healthz"); status != http.StatusOK {
		t.Error(status)
	}
	_, body, _ := b.get("/login")
	form := regexp.MustCompile(`name="form_token" value="([0-9a-f]{64})"`).FindStringSubmatch(body)
	response, err := b.PostForm(p.URL+"/login", url.Values{ //nolint:noctx // a test's
		"form_token": {form[1]}, "token": {"0123456789abcdef0123"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if said := b.viewer(); said != "You are carol, admin" {
		t.Errorf("by a token: %q", said)
	}
	p.issuer.change(func() { p.issuer.wrong = nil })
	p.now = p.now.Add(11 * time.Second)
	other := p.browser(t)
	if status, _, _ := other.login("/"); status != http.StatusOK {
		t.Errorf("when it answers again: %d\n%s", status, &p.log)
	}
}

// What answers in the issuer's place, or a broken one, is bounded and believed in nothing.
func TestWhatAnIssuerAnswersIsBounded(t *testing.T) {
	long := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		chunk := bytes.Repeat([]byte(" "), 1<<16)
		for range 64 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	for name, at := range map[string]map[string]func(w http.ResponseWriter){
		"a long discovery": {"/.well-known/openid-configuration": long},
		"a long token":     {"/token": long},
		"long keys":        {"/keys": long},
		"a discovery elsewhere": {"/.well-known/openid-configuration": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusFound)
		}},
		"a discovery of another": {"/.well-known/openid-configuration": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"issuer": "https://evil.example"}`)
		}},
		"a token that's none": {"/token": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<b>no</b>") }},
		"no id token": {"/token": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token": "x", "token_type": "Bearer"}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := openPages(t)
			p.issuer.wrong = func(w http.ResponseWriter, r *http.Request) bool {
				answer := at[r.URL.Path]
				if answer != nil {
					answer(w)
				}
				return answer != nil
			}
			b := p.browser(t)
			status, _, header := b.get("/login/oidc")
			if status == http.StatusSeeOther {
				_, _, header = b.get(header.Get("Location"))
				status, _, _ = b.get(header.Get("Location"))
			}
			if status != http.StatusServiceUnavailable && status != http.StatusForbidden || b.viewer() != "" {
				t.Errorf("%d", status)
			}
			if len(p.log.String()) == 0 || len(p.log.String()) > 1000 {
				t.Errorf("logged %.2000s", &p.log)
			}
		})
	}
}

func TestALoginAtTheIssuerLeadsToThisSiteOnly(t *testing.T) {
	for _, next := range []string{
		"//evil.example/", "https://evil.example/", `/\evil.example`, "javascript:alert(1)", "/\tx", "jobs", "",
		"/x\r\nSet-Cookie: a=b", "/login?next=/", "/é", "/" + strings.Repeat("a", 1025), "///evil.example",
	} {
		p := openPages(t)
		_, body, header := p.browser(t).login(next)
		if header.Get("Refresh") != "0; url=/" || strings.Contains(body, "evil") {
			t.Errorf("%q leads to %q", next, header.Get("Refresh"))
		}
	}
}

func TestTheIssuerSendsBrowsersBackToTheConfiguredAddress(t *testing.T) {
	p := openPages(t)
	const back = "https://epd.example.org/login/oidc/callback"
	p.settings.OIDC.RedirectURL = back
	if got := p.browser(t).begin("/"); !strings.HasPrefix(got, back+"?") {
		t.Errorf("sent to %s", got)
	}
	p.settings.OIDC.RedirectURL = ""
	if got := p.browser(t).begin("/"); !strings.HasPrefix(got, p.URL+"/login/oidc/callback?") {
		t.Errorf("sent to %s", got)
	}
}

func TestClientsAreProvedAsTheIssuerWantsThem(t *testing.T) {
	p := openPages(t)
	p.issuer.methods = []string{"client_secret_post"}
	b := p.browser(t)
	if b.login("/"); b.viewer() == "" {
		t.Errorf("by a form: %s", &p.log)
	}
	p = openPages(t)
	p.issuer.secret, p.settings.OIDC.SecretFile = "", ""
	b = p.browser(t)
	if b.login("/"); b.viewer() == "" {
		t.Errorf("without a secret: %s", &p.log)
	}
	p = openPages(t)
	p.issuer.secret = "another"
	if status, body, _ := p.browser(t).login("/"); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "refused epd") {
		t.Errorf("a wrong secret: %d\n%s", status, body)
	}
	if err := os.Chmod(p.settings.OIDC.SecretFile, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, body, _ := p.browser(t).get("/login/oidc"); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "use its secret") {
		t.Errorf("a secret that others may read: %d\n%s", status, body)
	}
}

func TestAnAddressCountsAsANameIfItIsVerified(t *testing.T) {
	for verified, want := range map[any]string{
		true: "You are ada@example.org, user", false: "", "true": "", nil: "",
	} {
		p := openPages(t)
		p.settings.OIDC.Claim = "email"
		p.issuer.claims = func(all map[string]any) {
			all["email"], all["email_verified"] = "ada@example.org", verified
		}
		b := p.browser(t)
		b.login("/")
		if said := b.viewer(); said != want {
			t.Errorf("verified %v: %q, %s", verified, said, &p.log)
		}
	}
}

func TestWithoutAnIssuerThereIsNoSuchLogin(t *testing.T) {
	p := openPages(t)
	p.settings.OIDC.Issuer = ""
	b := p.browser(t)
	for _, path := range []string{"/login/oidc", "/login/oidc/callback?code=a&state=b"} {
		if status, _, header := b.get(path); status != http.StatusSeeOther || header.Get("Location") != "/login" {
			t.Errorf("%s: %d to %s", path, status, header.Get("Location"))
		}
	}
	if _, body, _ := b.get("/login"); strings.Contains(body, "/login/oidc") {
		t.Error("the login offers an issuer that there isn't")
	}
}
