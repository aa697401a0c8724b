package config

import (
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
	} {
		if _, err := Load(strings.NewReader("[web]\n"+text+"\n"), "c.toml", nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
