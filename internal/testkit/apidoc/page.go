package apidoc

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// whoText is who may ask, for people.
var whoText = map[string]string{
	Root: "root", Control: "root, Slurm's user", Nodes: "these, and a node for itself by its key",
	Operators: "these and operators", Anybody: "everybody",
}

// Markdown returns the document as a page.
func (d *Document) Markdown() string {
	var b strings.Builder
	b.WriteString("# API of epd\n\n<!-- Written by go test ./internal/testkit/apidoc -update. -->\n\n")
	b.WriteString(strings.ReplaceAll(d.Info.Description, ". ", ".\n"))
	b.WriteString("\nThe same for programs: [openapi.json](openapi.json).\n\n")
	b.WriteString("<!-- run by epd -->\n```sh\ncurl --fail --silent --show-error --unix-socket " +
		"/run/epplan/submit.sock http://epd/v1/status\n```\n\n")
	b.WriteString("Operators are those whom `[live] operators` names. A request that will never do is " +
		"answered with 400, one by somebody who\n" +
		"may not ask with 403, what isn't there, or isn't theirs, with 404, and what may be tried again " +
		"with 503; the answer is a\n" +
		"[ErrorAnswer](#erroranswer) then. What answers take is bounded: 5 s at most. Metrics have [a page of their own](../metrics.md).\n")
	for _, t := range d.Tags {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| request | who may ask | what for | sends | gets |\n"+
			"|---|---|---|---|---|\n", strings.ToUpper(t.Name[:1])+t.Name[1:], backticked(t.Description))
		for _, p := range slices.Sorted(maps.Keys(d.Paths)) {
			for _, method := range slices.Sorted(maps.Keys(d.Paths[p])) {
				if m := d.Paths[p][method]; slices.Contains(m.Tags, t.Name) {
					fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s | %s |\n", strings.ToUpper(method), p,
						whoText[m.Access[t.Name]], m.text(), m.sends(),
						m.Responses["200"].Content[mediaType].Schema.text())
				}
			}
		}
	}
	b.WriteString("\n# Messages\n\nKeys that may be missing are marked with ?.\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		fmt.Fprintf(&b, "\n## %s\n\n", name)
		if s.Description != "" {
			b.WriteString(cell(s.Description) + "\n\n")
		}
		if len(s.Properties) == 0 {
			b.WriteString("No keys.\n")
			continue
		}
		b.WriteString("| key | type | unit | meaning |\n|---|---|---|---|\n")
		for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[key]
			missing := "?"
			if slices.Contains(s.Required, key) {
				missing = ""
			}
			fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s |\n", key, missing, p.text(), p.Unit,
				cell(p.Description))
		}
	}
	return b.String()
}

// text returns what an operation is for, with its parameters.
func (m *PathMethod) text() string {
	text := m.Summary
	var in []string
	for _, p := range m.Parameters {
		if p.In == "query" {
			in = append(in, "`"+p.Name+"` "+p.Description)
		}
	}
	if len(in) > 0 {
		text += " Query: " + strings.Join(in, "; ")
	}
	return cell(text)
}

func (m *PathMethod) sends() string {
	if m.Body == nil {
		return ""
	}
	return m.Body.Content[mediaType].Schema.text()
}

// text returns a schema in a word or two.
func (s *schema) text() string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		name := path.Base(s.Ref)
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	case len(s.OneOf) > 0:
		parts := make([]string, len(s.OneOf))
		for i, one := range s.OneOf {
			parts[i] = one.text()
		}
		return strings.Join(parts, " or ")
	case s.Type == "array":
		return "array of " + s.Items.text()
	case s.Additional != nil:
		return "object of " + s.Additional.text()
	case s.Format == "date-time":
		return "time (RFC 3339)"
	case s.Format == "byte":
		return "text (base64)"
	case s.Type == "":
		return "any"
	case s.Type == "object":
		return "object"
	}
	return s.Type
}

// cell returns a text within a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "\n", " ").Replace(text)
}

// backticked puts a path's words into code.
func backticked(text string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		if bare := strings.TrimSuffix(w, ","); strings.HasPrefix(w, "/") {
			words[i] = "`" + bare + "`" + w[len(bare):]
		}
	}
	return strings.Join(words, " ")
}
