package web

import (
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// selectOption is a choice of a form.
type selectOption struct{ Value, Text string }

// formInput is a field of a form that filters: one of options, or a text.
type formInput struct {
	Name, Label, Value string
	Options            []selectOption // nil: a text
	List               []string       // what a text is likely to be
}

// renderTemplate returns what one of the templates makes of data: it can only fail by a mistake in
// one.
func renderTemplate(name string, data any) template.HTML {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic(err)
	}
	return template.HTML(b.String()) //nolint:gosec // of a template
}

// filterFormHTML returns the form of fields that filter a page.
func filterFormHTML(action string, inputs ...formInput) template.HTML {
	return renderTemplate("filter", map[string]any{"Action": action, "Inputs": inputs})
}

// commonValues returns the values that there are, in order, at most a handful.
func commonValues(values map[string]bool) []string {
	const most = 200
	delete(values, "")
	all := slices.Sorted(maps.Keys(values))
	return all[:min(len(all), most)]
}

// anyOptions are options for each of some values, and one for any.
func anyOptions(values []string) []selectOption {
	options := make([]selectOption, 1, 1+len(values))
	options[0] = selectOption{"", "any"}
	for _, v := range values {
		options = append(options, selectOption{v, v})
	}
	return options
}

// trimQuery returns an address without an empty query.
func trimQuery(href string) string { return strings.TrimSuffix(href, "?") }

// withQuery returns an address with a query, if it isn't empty.
func withQuery(path string, q url.Values) string { return trimQuery(path + "?" + q.Encode()) }
