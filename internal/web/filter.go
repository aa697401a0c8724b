package web

import (
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/epplan/epplan/queue"
)

// selectOption is a choice of a form.
type selectOption struct{ Value, Text string }

// formInput is a field of a form that filters: one of options, or a text.
type formInput struct {
	Name, Label, Value string
	Options            []selectOption // nil: a text
	List               []string       // what a text is likely to be
}

//nolint:lll // markup
var filterForm = template.Must(
	template.New("filter").Funcs(template.FuncMap{"show": queue.Printable}).Parse(
		`<form class="filters" method="get" action="{{.Action}}" role="search">
<div class="fields">{{range .Inputs}}{{$in := .}}<div><label for="f-{{.Name}}">{{.Label}}</label>
{{if .Options}}<select id="f-{{.Name}}" name="{{.Name}}">{{range .Options}}<option value="{{.Value}}"{{if eq .Value $in.Value}} selected{{end}}>{{show .Text}}</option>{{end}}</select>
{{else}}<input id="f-{{.Name}}" name="{{.Name}}" value="{{.Value}}" maxlength="200"{{if .List}} list="l-{{.Name}}"{{end}} autocomplete="off">{{if .List}}<datalist id="l-{{.Name}}">{{range .List}}<option value="{{.}}"></option>{{end}}</datalist>{{end}}
{{end}}</div>{{end}}</div>
<div class="actions"><button>Show</button> <a href="{{.Action}}">Show all</a></div>
</form>
`,
	),
)

var pagerLinks = template.Must(
	template.New("pager").Parse(
		`<nav class="pager" aria-label="Pages of the list">{{range .}}{{if .Href}}<a href="{{.Href}}">{{.Text}}</a>{{else}}<span class="muted">{{.Text}}</span>{{end}}
{{end}}</nav>
`,
	),
)

// renderTemplate is what a template makes of data. The templates are this package's own, and
// can only fail by a mistake in one.
func renderTemplate(t *template.Template, data any) template.HTML {
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		panic(err)
	}
	return template.HTML(b.String()) //nolint:gosec // of a template
}

// filterFormHTML is the form of fields that filter a page.
func filterFormHTML(action string, inputs ...formInput) template.HTML {
	return renderTemplate(filterForm, map[string]any{"Action": action, "Inputs": inputs})
}

// commonValues are the values that there are, in order, at most a handful.
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

// trimQuery is an address without an empty query.
func trimQuery(href string) string { return strings.TrimSuffix(href, "?") }

// withQuery is an address with a query, if it isn't empty.
func withQuery(path string, q url.Values) string { return trimQuery(path + "?" + q.Encode()) }
