package web

import (
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
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

// form is the fields above the queue.
func (f *queueFilter) form(all []epdapi.QueuedJob) template.HTML {
	users, partitions, states := map[string]bool{}, map[string]bool{}, map[string]bool{f.state: true}
	for i := range all {
		users[all[i].User], states[all[i].State] = true, true
		for p := range strings.SplitSeq(all[i].Partition, ",") {
			partitions[p] = true
		}
	}
	return filterFormHTML("/queue",
		formInput{Name: "user", Label: "User", Value: f.user, List: commonValues(users)},
		formInput{Name: "partition", Label: "Partition", Value: f.partition, List: commonValues(partitions)},
		formInput{Name: "state", Label: "State", Value: f.state, Options: anyOptions(commonValues(states))},
		formInput{Name: "sort", Label: "Order", Value: f.sort, Options: queueSorts})
}

// pager leads to the other pages of a list; nil where there are none.
func (f *queueFilter) pager(rows int) any {
	pages := (rows + rowsPerPage - 1) / rowsPerPage
	if pages < 2 && f.page == 0 {
		return nil
	}
	to := func(at int) string { return "/queue?" + f.queryOf(at).Encode() }
	links := []page.Link{
		{Text: "Page " + report.FormatCount(f.page+1) + " of " + report.FormatCount(max(1, pages))},
	}
	if f.page > 0 {
		links = append(links, page.Link{Text: "First", Href: trimQuery(to(0))},
			page.Link{Text: "Previous", Href: trimQuery(to(f.page - 1))})
	}
	if f.page+1 < pages {
		links = append(links, page.Link{Text: "Next", Href: to(f.page + 1)})
	}
	return renderTemplate(pagerLinks, links)
}

// trimQuery is an address without an empty query.
func trimQuery(href string) string { return strings.TrimSuffix(href, "?") }

// withQuery is an address with a query, if it isn't empty.
func withQuery(path string, q url.Values) string { return trimQuery(path + "?" + q.Encode()) }
