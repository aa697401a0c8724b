package config

import (
	"errors"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Web is how epd's pages are reached, see docs/web.md.
type Web struct {
	// TokenFile has the tokens of those who may log in; "": nobody may.
	TokenFile string
	// Anonymous is what those see who aren't logged in: none or aggregates.
	Anonymous string
	// Cert and Key are PEM files for TLS; "": there is none.
	Cert, Key string
	// Insecure allows an address of a network without TLS.
	Insecure bool
	// Hosts are names by which browsers reach the pages, beside those of this
	// machine alone.
	Hosts []string
	// ProxyHeader holds the name of the user in requests of the site's proxy; "": none does.
	ProxyHeader string
	// Proxies are addresses and networks from which ProxyHeader is believed.
	Proxies []string
	// Admins and Readers have these roles under a name that a proxy passes on or an issuer
	// states. Every other name is a user's.
	Admins, Readers []string
	OIDC            OIDC
}

// OIDC is the site's OpenID Connect issuer, at which people log in.
type OIDC struct {
	// Issuer is its address, as its tokens state it; "": there is none.
	Issuer string
	// ClientID is the name of these pages there.
	ClientID string
	// SecretFile holds the client's secret; "": it has none.
	SecretFile string
	// Claim is the one with the user's name.
	Claim string
	// GroupsClaim is the one with the user's groups, a text or a list of texts. Whoever is in one of
	// AdminGroups or ReaderGroups has that role, unless the name has a higher one.
	GroupsClaim               string
	AdminGroups, ReaderGroups []string
	// Scopes are asked for beside openid and profile: some issuers state groups only then.
	Scopes []string
	// RedirectURL is where the issuer sends browsers back; "": by the host that they named.
	RedirectURL string
}

// OIDCCallback is the path of OIDC.RedirectURL.
const OIDCCallback = "/login/oidc/callback"

// What those see who aren't logged in.
const (
	AnonymousNone       = "none"
	AnonymousAggregates = "aggregates"
)

func defaultWeb() Web {
	return Web{Anonymous: AnonymousNone, OIDC: OIDC{Claim: "preferred_username", GroupsClaim: "groups"}}
}

func (o *OIDC) fields() []field {
	return []field{
		textField("issuer", "Address of the site's OpenID Connect issuer.", &o.Issuer),
		textField("client_id", "Name of epd's pages there.", &o.ClientID),
		textField("client_secret_file", "File with their secret, readable by epd alone.", &o.SecretFile),
		lineField("claim", "Claim with the user's name.", &o.Claim),
		lineField("groups_claim", "Claim with the user's groups.", &o.GroupsClaim),
		lineListField("admin_groups", "Groups with the role admin.", &o.AdminGroups),
		lineListField("reader_groups", "Groups with the role reader.", &o.ReaderGroups),
		lineListField("scopes", "What to ask the issuer for, beside openid and profile.", &o.Scopes),
		textField("redirect_url", "Callback; empty: by the browser's host.", &o.RedirectURL),
	}
}

func (w *Web) fields() []field {
	return []field{
		textField("token_file",
			"File with tokens for epd's pages at a port, readable by epd alone: lines of role, name and token.",
			&w.TokenFile),
		choiceField("anonymous",
			"What everybody else sees: none, or aggregates (the overview without jobs, users and workloads).",
			&w.Anonymous, AnonymousNone, AnonymousAggregates),
		textField("cert", "File (PEM) with the TLS certificate.",
			&w.Cert),
		textField("key", "File (PEM) with its key.", &w.Key),
		boolField("insecure",
			"Whether a network may get pages without TLS, readable on the way.", &w.Insecure),
		checkedListField("hosts",
			"Names by which browsers reach the pages, beside localhost.", &w.Hosts,
			func(hosts []string, i int) string {
				if isHost(hosts[i]) {
					return ""
				}
				return ", want a host's name or address, with or without a port"
			}),
		checkedField(textField("proxy_header",
			"Header with the user's name, from the site's web server.",
			&w.ProxyHeader), checkHeader),
		checkedListField("proxies",
			"Addresses or networks that may send it.", &w.Proxies,
			func(all []string, i int) string {
				network, err := parseNetwork(all[i])
				switch {
				case err != nil:
					return ", want an address or a network, such as 10.0.0.5 or 10.0.0.0/28"
				case network.Bits() == 0:
					return ", want the addresses of the proxy alone: everybody could send the header"
				}
				return ""
			}),
		namesField("admins", "Names with the role admin.", &w.Admins),
		namesField("readers", "Names with the role reader; others are users.", &w.Readers),
	}
}

// namesField returns a field with names of people, each once.
func namesField(key, doc string, to *[]string) field {
	return checkedListField(key, doc, to, func(all []string, i int) string {
		switch {
		case !IsLoginName(all[i]):
			return ", want letters, digits and . _ - + @, at most 64"
		case slices.Contains(all[:i], all[i]):
			return " twice"
		}
		return ""
	})
}

// maxLoginName is the longest name of somebody who logs in without a token, in bytes.
const maxLoginName = 64

// IsLoginName reports whether somebody may be called so who logs in without a token: by
// ASCII letters, digits and . _ - + @, the first of them a letter, a digit or _.
func IsLoginName(name string) bool {
	if name == "" || len(name) > maxLoginName || strings.ContainsRune(".-+@", rune(name[0])) {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("._-+@", r) && !isLetterOrDigit(r)
	})
}

// isLetterOrDigit reports whether a character is an ASCII letter or digit.
func isLetterOrDigit(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// checkHeader refuses names of headers that browsers or other programs set for purposes of
// their own.
func checkHeader(name string) error {
	taken := []string{
		"Accept", "Authorization", "Connection", "Content-Length", "Content-Type", "Cookie", "Forwarded",
		"Host", "Origin", "Referer", "Transfer-Encoding", "User-Agent", "X-Forwarded-For",
	}
	switch {
	case strings.ContainsFunc(name, func(r rune) bool { return r != '-' && !isLetterOrDigit(r) }):
		return errors.New("want a header's name of letters, digits and -, such as X-Remote-User")
	case slices.Contains(taken, textproto.CanonicalMIMEHeaderKey(name)):
		return errors.New("browsers send that header, want one of the proxy alone, such as X-Remote-User")
	}
	return nil
}

// parseNetwork reads a network, or an address as the network of it alone.
func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	return netip.ParsePrefix(text) //nolint:wrapcheck // the caller says what it wants
}

// IsProxy reports whether the proxy's header is believed from an address.
func (w *Web) IsProxy(address netip.Addr) bool {
	return w.ProxyHeader != "" && slices.ContainsFunc(w.Proxies, func(text string) bool {
		network, err := parseNetwork(text)
		return err == nil && network.Contains(address.Unmap().WithZone(""))
	})
}

// isHost reports whether a text is a host, with or without a port.
func isHost(text string) bool {
	name := text
	if host, port, err := net.SplitHostPort(text); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		name = host
	}
	if net.ParseIP(strings.Trim(name, "[]")) != nil {
		return true
	}
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '.' && r != '_' && !isLetterOrDigit(r)
	})
}

// checkTogether notes keys that need another one, and names with two roles.
func (w *Web) checkTogether(d *document) {
	switch {
	case w.Cert != "" && w.Key == "":
		d.faultAt("web.cert", "web.cert is %s, want key with it", quoteName(w.Cert))
	case w.Key != "" && w.Cert == "":
		d.faultAt("web.key", "web.key is %s, want cert with it", quoteName(w.Key))
	}
	switch {
	case w.ProxyHeader != "" && len(w.Proxies) == 0:
		d.faultAt("web.proxy_header", "web.proxy_header is %s, want proxies with it: from nowhere else is it "+
			"believed", quoteName(w.ProxyHeader))
	case w.ProxyHeader == "" && len(w.Proxies) > 0:
		d.faultAt("web.proxies", "web.proxies has %s, want proxy_header with it", quoteName(w.Proxies[0]))
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"web.admins", w.Admins}, {"web.readers", w.Readers}} {
		if len(list.names) > 0 && !w.HasNames() {
			d.faultAt(list.key, "%s has %s, want proxy_header or [web.oidc] with it: roles of tokens are in the "+
				"token file", list.key, quoteName(list.names[0]))
		}
	}
	for i, name := range w.Readers {
		if slices.Contains(w.Admins, name) {
			d.faultAt("web.readers["+strconv.Itoa(i)+"]", "web.readers has %s, who is in admins", quoteName(name))
		}
	}
	w.OIDC.check(d, w)
}

// HasNames reports whether people may log in by names, without a token.
func (w *Web) HasNames() bool { return w.ProxyHeader != "" || w.OIDC.Issuer != "" }

// check notes addresses that can't be an issuer's or these pages', and those that would show
// tokens on the way.
func (o *OIDC) check(d *document, w *Web) {
	if o.Issuer == "" {
		for _, other := range []struct{ key, value string }{
			{"client_id", o.ClientID},
			{"client_secret_file", o.SecretFile},
			{"redirect_url", o.RedirectURL},
			{"admin_groups", strings.Join(o.AdminGroups, ", ")},
			{"reader_groups", strings.Join(o.ReaderGroups, ", ")},
			{"scopes", strings.Join(o.Scopes, ", ")},
		} {
			if other.value != "" {
				d.faultAt("web.oidc."+other.key, "web.oidc.%s is %s, want issuer with it", other.key,
					quoteName(other.value))
			}
		}
		return
	}
	issuer, err := url.Parse(o.Issuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.RawQuery+issuer.Fragment != "" || issuer.User != nil ||
		issuer.Scheme != "https" && issuer.Scheme != "http":
		d.faultAt("web.oidc.issuer", "web.oidc.issuer is %s, want an address such as "+
			"https://login.example.org/realms/site", quoteName(o.Issuer))
	case issuer.Scheme == "http" && !isLoopbackHost(issuer.Hostname()):
		d.faultAt("web.oidc.issuer", "web.oidc.issuer is %s, want https: others could read and change what it "+
			"says", quoteName(o.Issuer))
	}
	if o.ClientID == "" {
		d.faultAt("web.oidc.issuer", "web.oidc.issuer is %s, want client_id with it", quoteName(o.Issuer))
	}
	if o.RedirectURL == "" {
		return
	}
	back, err := url.Parse(o.RedirectURL)
	switch {
	case err != nil || back.Host == "" || back.Path != OIDCCallback || back.RawQuery+back.Fragment != "" ||
		back.User != nil || back.Scheme != "https" && back.Scheme != "http":
		d.faultAt("web.oidc.redirect_url", "web.oidc.redirect_url is %s, want an address such as "+
			"https://epd.example.org%s", quoteName(o.RedirectURL), OIDCCallback)
	case back.Scheme == "http" && !w.Insecure && !isLoopbackHost(back.Hostname()):
		d.faultAt("web.oidc.redirect_url", "web.oidc.redirect_url is %s, want https, or insecure = true",
			quoteName(o.RedirectURL))
	case !isLoopbackHost(back.Hostname()) && !slices.ContainsFunc(w.Hosts, func(host string) bool {
		return strings.EqualFold(host, back.Host) || strings.EqualFold(host, back.Hostname())
	}):
		d.faultAt("web.oidc.redirect_url", "web.oidc.redirect_url names the host %s, want it in hosts, too",
			quoteName(back.Host))
	}
}

// isLoopbackHost reports whether a host is this machine, by a name that only it has.
func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
