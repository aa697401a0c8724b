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

// option is a choice of a form.
type option struct{ Value, Text string }

// input is a field of a form that filters: one of options, or a text.
type input struct {
	Name, Label, Value string
	Options            []option // nil: a text
	List               []string // what a text is likely to be
}

var filterForm = template.Must(template.New("filter").Funcs(template.FuncMap{"show": queue.Printable}).Parse(`<form class="filters" method="get" action="{{.Action}}" role="search">
<div class="fields">{{range .Inputs}}{{$in := .}}<div><label for="f-{{.Name}}">{{.Label}}</label>
{{if .Options}}<select id="f-{{.Name}}" name="{{.Name}}">{{range .Options}}<option value="{{.Value}}"{{if eq .Value $in.Value}} selected{{end}}>{{show .Text}}</option>{{end}}</select>
{{else}}<input id="f-{{.Name}}" name="{{.Name}}" value="{{.Value}}" maxlength="200"{{if .List}} list="l-{{.Name}}"{{end}} autocomplete="off">{{if .List}}<datalist id="l-{{.Name}}">{{range .List}}<option value="{{.}}"></option>{{end}}</datalist>{{end}}
{{end}}</div>{{end}}</div>
<div class="actions"><button>Show</button> <a href="{{.Action}}">Show all</a></div>
</form>
`))

var pagerLinks = template.Must(template.New("pager").Parse(`<nav class="pager" aria-label="Pages of the list">{{range .}}{{if .Href}}<a href="{{.Href}}">{{.Text}}</a>{{else}}<span class="muted">{{.Text}}</span>{{end}}
{{end}}</nav>
`))

// made is what a template makes of data. The templates are this package's own, and
// can only fail by a mistake in one.
func made(t *template.Template, data any) template.HTML {
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		panic(err)
	}
	return template.HTML(b.String()) //nolint:gosec // of a template
}

// filter is the form of fields that filter a page.
func filter(action string, inputs ...input) template.HTML {
	return made(filterForm, map[string]any{"Action": action, "Inputs": inputs})
}

// likely are the values that there are, in order, at most a handful.
func likely(values map[string]bool) []string {
	const most = 200
	delete(values, "")
	all := slices.Sorted(maps.Keys(values))
	return all[:min(len(all), most)]
}

// anyOf are options for each of some values, and one for any.
func anyOf(values []string) []option {
	options := make([]option, 1, 1+len(values))
	options[0] = option{"", "any"}
	for _, v := range values {
		options = append(options, option{v, v})
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
	return filter("/queue",
		input{Name: "user", Label: "User", Value: f.user, List: likely(users)}, input{Name: "partition", Label: "Partition", Value: f.partition, List: likely(partitions)},
		input{Name: "state", Label: "State", Value: f.state, Options: anyOf(likely(states))}, input{Name: "sort", Label: "Order", Value: f.sort, Options: queueSorts})
}

// pager leads to the other pages of a list; nil where there are none.
func (f *queueFilter) pager(rows int) any {
	pages := (rows + rowsOfPage - 1) / rowsOfPage
	if pages < 2 && f.page == 0 {
		return nil
	}
	to := func(at int) string { return "/queue?" + f.values(at).Encode() }
	links := []page.Link{{Text: "Page " + report.FormatCount(f.page+1) + " of " + report.FormatCount(max(1, pages))}}
	if f.page > 0 {
		links = append(links, page.Link{Text: "First", Href: bare(to(0))}, page.Link{Text: "Previous", Href: bare(to(f.page - 1))})
	}
	if f.page+1 < pages {
		links = append(links, page.Link{Text: "Next", Href: to(f.page + 1)})
	}
	return made(pagerLinks, links)
}

// bare is an address without an empty query.
func bare(href string) string { return strings.TrimSuffix(href, "?") }

// withQuery is an address with a query, if it isn't empty.
func withQuery(path string, q url.Values) string { return bare(path + "?" + q.Encode()) }
