package config

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPagesAreForNobodyUnlessTheFileSaysSo(t *testing.T) {
	w := Default().Web
	if w.Anonymous != AnonymousNone || w.Insecure || w.TokenFile+w.Cert+w.Key != "" || len(w.Hosts) > 0 {
		t.Errorf("%+v", w)
	}
	c, err := Load(strings.NewReader("[web]\nanonymous = \"aggregates\"\nhosts = [\"epd.example.org\", "+
		"\"10.1.2.3:8443\", \"[fe80::1]:80\"]\ncert = \"c\"\nkey = \"k\"\n"), "c.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Web; w.Anonymous != AnonymousAggregates || len(w.Hosts) != 3 || w.Cert != "c" {
		t.Errorf("%+v", w)
	}
}

func TestPagesThatCantBeServedAreAFault(t *testing.T) {
	for text, want := range map[string]string{
		`anonymous = "all"`:                   `c.toml:2:13: web.anonymous is "all", want one of none, aggregates`,
		`cert = "c.pem"`:                      `web.cert is "c.pem", want key with it`,
		`key = "k.pem"`:                       `web.key is "k.pem", want cert with it`,
		`hosts = ["http://epd.example.org/"]`: `web.hosts has "http://epd.example.org/", want a host's name or address`,
		`hosts = ["a b"]`:                     `want a host's name or address`,
		`hosts = "a"`:                         `want an array of texts`,
		`insecure = 1`:                        `web.insecure is 1, want true or false`,

		`proxy_header = "X-User"`: `c.toml:2:16: web.proxy_header is "X-User", want proxies with it`,
		`proxies = ["::1"]`:       `c.toml:2:11: web.proxies has "::1", want proxy_header with it`,
		"proxy_header = \"X-U\"\nproxies = [\"::1\", \"0.0.0.0/0\"]": `c.toml:3:19: web.proxies has "0.0.0.0/0", want ` +
			`the addresses of the proxy alone`,
		"proxy_header = \"X-U\"\nproxies = [\"proxy\"]": `web.proxies has "proxy", want an address or a network`,
		`proxy_header = "X User"`:                       "web.proxy_header: want a header's name of letters, digits and -",
		`proxy_header = "cookie"`:                       "web.proxy_header: browsers send that header",
		`admins = ["ada"]`:                              `c.toml:2:10: web.admins has "ada", want proxy_header or [web.oidc] with it`,
		`readers = ["ada"]`:                             `web.readers has "ada", want proxy_header or [web.oidc] with it`,
		`admins = ["a b"]`:                              `web.admins has "a b", want letters, digits and`,
		`admins = ["ada", "ada"]`:                       `c.toml:2:18: web.admins has "ada" twice`,
		"proxy_header = \"X-U\"\nproxies = [\"::1\"]\nadmins = [\"ada\"]\nreaders = [\"bob\", \"ada\"]": `c.toml:5:19: ` +
			`web.readers has "ada", who is in admins`,
	} {
		if _, err := Load(strings.NewReader("[web]\n"+text+"\n"), "c.toml", nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestAnIssuerThatCantBeAskedSafelyIsAFault(t *testing.T) {
	const good = "issuer = \"https://login.example.org/site\"\nclient_id = \"epd\"\n"
	const back = "web.oidc.redirect_url is "
	for text, want := range map[string]string{
		good: "",
		"issuer = \"http://localhost:8080\"\nclient_id = \"epd\"\n":           "",
		good + `redirect_url = "https://epd.example.org/login/oidc/callback"`: "",
		good + `redirect_url = "http://localhost:80/login/oidc/callback"`:     "",
		`client_id = "epd"`:                "c.toml:4:13: web.oidc.client_id is \"epd\", want issuer with it",
		`client_secret_file = "s"`:         "want issuer with it",
		`redirect_url = "https://x"`:       "want issuer with it",
		`admin_groups = ["a"]`:             "c.toml:4:16: web.oidc.admin_groups is \"a\", want issuer with it",
		`scopes = ["groups"]`:              "want issuer with it",
		`claim = ""`:                       "web.oidc.claim is \"\", want a line of text",
		`issuer = "https://l.example.org"`: "want client_id with it",
		"client_id = \"e\"\nissuer = \"http://login.example.org\"":      "c.toml:5:10: web.oidc.issuer is",
		"client_id = \"e\"\nissuer = \"http://127.0.0.1.example.org\"":  "want https: others could read",
		"client_id = \"e\"\nissuer = \"login.example.org\"":             "want an address such as",
		"client_id = \"e\"\nissuer = \"https://a:b@login.example.org\"": "want an address such as",
		"client_id = \"e\"\nissuer = \"https://l.example.org?x=1\"":     "want an address such as",
		good + `redirect_url = "https://epd.example.org/"`:              back,
		good + `redirect_url = "https://other/login/oidc/callback"`: "web.oidc.redirect_url names the host \"other\", " +
			"want it in hosts",
		good + `redirect_url = "http://epd.example.org/login/oidc/callback"`: "want https, or insecure = true",
		good + `redirect_url = "//epd.example.org/login/oidc/callback"`:      back,
		good + `secret = "s"`: "unknown key secret in [web.oidc]",
	} {
		file := "[web]\nhosts = [\"epd.example.org\"]\n[web.oidc]\n" + text + "\n"
		_, err := Load(strings.NewReader(file), "c.toml", nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	file := "[web]\nadmins = [\"ada\"]\n[web.oidc]\n" + good
	if _, err := Load(strings.NewReader(file), "c.toml", nil); err != nil {
		t.Error(err)
	}
}

func TestAProxyIsKnownByItsAddress(t *testing.T) {
	c, err := Load(strings.NewReader("[web]\nproxy_header = \"x-remote-user\"\nproxies = [\"127.0.0.1\", "+
		"\"10.1.0.0/28\", \"::1\"]\nadmins = [\"alice\"]\nreaders = [\"bob@example.org\"]\n"), "c.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"127.0.0.1": true, "::ffff:127.0.0.1": true, "10.1.0.15": true, "::1": true,
		"127.0.0.2": false, "10.1.0.16": false, "::2": false,
	} {
		if c.Web.IsProxy(netip.MustParseAddr(address)) != want {
			t.Errorf("%s: want %v", address, want)
		}
	}
	for name, want := range map[string]bool{
		"ada": true, "ada.b-c_d+e@example.org": true, "_ada": true, "7": true, strings.Repeat("a", 64): true,
		"": false, "-a": false, ".": false, "@a": false, "a b": false, "a\x00": false, "ä": false, "a/b": false,
		strings.Repeat("a", 65): false,
	} {
		if IsLoginName(name) != want {
			t.Errorf("%q: want %v", name, want)
		}
	}
}
