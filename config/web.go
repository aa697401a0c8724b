package config

import (
	"net"
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
}

// What those see who aren't logged in.
const (
	AnonymousNone       = "none"
	AnonymousAggregates = "aggregates"
)

func defaultWeb() Web { return Web{Anonymous: AnonymousNone} }

func (w *Web) fields() []field {
	return []field{
		textField("token_file", "File with the tokens of those who may log in to epd's pages at "+
			"a port, lines of role, name and token,\n"+
			"readable by epd alone; empty: nobody may.", &w.TokenFile),
		choiceField("anonymous", "What those see there who aren't logged in: none, or aggregates (the "+
			"overview without any job, user\n"+
			"or workload).", &w.Anonymous, AnonymousNone, AnonymousAggregates),
		textField("cert", "File (PEM) with the certificate for TLS; empty: there is none.",
			&w.Cert),
		textField("key", "File (PEM) with its key.", &w.Key),
		boolField("insecure", "Whether pages may be served to a network without TLS: tokens and pages can "+
			"be read on the way.", &w.Insecure),
		checkedListField("hosts",
			"Names by which browsers reach the pages, such as [\"epd.example.org\"], with or without a port;\n"+
				"localhost needn't be named.", &w.Hosts, func(hosts []string, i int) string {
				if isHost(hosts[i]) {
					return ""
				}
				return ", want a host's name or address, with or without a port"
			}),
	}
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
		return r != '-' && r != '.' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') &&
			(r < 'A' || r > 'Z')
	})
}

// checkTogether notes a certificate without a key, and the reverse.
func (w *Web) checkTogether(d *document) {
	switch {
	case w.Cert != "" && w.Key == "":
		d.faultAt("web.cert", "web.cert is %s, want key with it", quoteName(w.Cert))
	case w.Key != "" && w.Cert == "":
		d.faultAt("web.key", "web.key is %s, want cert with it", quoteName(w.Key))
	}
}
