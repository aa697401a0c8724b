package web

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
)

// freeVersion is the version in the address of a page that asks whether fits
// shall replace a model again.
const freeVersion = "free"

// maxNote bounds the reason that an administrator gives, bytes.
const maxNote = 400

// confirmForm is a form that asks whether something shall be done.
type confirmForm struct {
	Action string // address that it is sent to
	Hidden template.HTML
	Values []formValue // sent with it
	Reason bool        // it asks for a reason
	Button string
	Danger bool
	Cancel string // address
}

type formValue struct{ Name, Value string }

// confirmation returns a page that says what will happen and how to undo it, and asks.
func confirmation(
	r *Request, title string, back page.Link, what, undo []any, q *confirmForm,
) *View {
	q.Hidden, q.Cancel = r.site.forms.hidden(r.Viewer), back.Href
	return &View{Title: title, Back: back, Still: true, Sections: []Section{
		{ID: "what", Heading: "What will happen", Parts: what},
		{ID: "undo", Heading: "How to undo it", Parts: undo},
		{
			ID: "confirm", Heading: "Do it?", Still: true,
			Parts: []any{renderTemplate("question", q)},
		},
	}}
}

// adminPage returns the page with what an administrator may do.
func adminPage(ctx context.Context, r *Request) (*View, error) {
	status, err := r.Admin.Status(ctx)
	if err != nil {
		return nil, err
	}
	facts := page.Facts{
		{
			Name: "Take every lever back", Text: "what is steered in Slurm, and what undoing it does",
			Href: "/admin/levers",
		},
		{
			Name: "Read the configuration again", Text: "what is in force, and what reading it does",
			Href: "/admin/reload",
		},
		{Name: "Choose a model's version", Text: "on the page of a workload", Href: "/workloads"},
	}
	var parts []any
	if done := doneNotices[r.Query.Get("done")]; done != "" {
		parts = append(parts, &page.Notice{Kind: page.Good, Text: done})
	}
	parts = append(parts, facts)
	if c := status.Controller; c != nil {
		parts = append(parts, page.Facts{{Name: "Configuration in force", Text: c.ConfigVersion}})
	}
	return &View{
		Title: "Administration", Lead: "Each of these says first what it will do and how to undo it. What " +
			"is done is in epd's log, with who did it.",
		Sections: []Section{{ID: "actions", Parts: parts}},
	}, nil
}

// doneNotices are what the page of administration says after something was done.
var doneNotices = map[string]string{
	"levers": "The levers were taken back. What couldn't be yet is on the page of levers.",
	"reload": "The configuration was read again.",
}

// leversPage asks whether all levers shall be taken back.
func leversPage(ctx context.Context, r *Request) (*View, error) {
	levers, err := r.Source.Levers(ctx)
	if isRefused(err) {
		return nil, notFound("Nothing is steered from here.",
			"epd steers Slurm where it can ask Slurm, unless it was started with --no-levers.")
	}
	if err != nil {
		return nil, err
	}
	what := append([]any{
		page.Text("Everything that epd steers in Slurm beside clocks is set back to what it was, and " +
			"nothing is steered again until the configuration is another one. Clocks of running jobs stay; " +
			"jobs keep running."),
	}, view.Levers(&levers.Status).Parts()...)
	undo := []any{
		page.Text("Change the configuration, if only a comment in it, and read it again: then epd steers " +
			"as the configuration says. At a terminal: epplan reload."),
	}
	return confirmation(r, "Take every lever back", administration, what, undo, &confirmForm{
		Action: "/admin/levers", Button: "Take every lever back", Danger: true,
	}), nil
}

var administration = page.Link{Text: "Administration", Href: "/admin"}

// undoLevers takes the levers back.
func undoLevers(ctx context.Context, r *Request) (string, error) {
	done, err := r.Admin.UndoLevers(ctx)
	if err != nil {
		return "", err
	}
	if done.Failed > 0 || done.Error != "" {
		text := fmt.Sprintf("%d levers were taken back, %d couldn't be: %s", done.Undone, done.Failed,
			cmp.Or(done.Error, "epd tries again"))
		return "", &pageError{
			http.StatusServiceUnavailable, text,
			"Slurm may not answer now. Look at the levers again in a minute.",
		}
	}
	return "/admin?done=levers", nil
}

// reloadPage asks whether the configuration shall be read again.
func reloadPage(ctx context.Context, r *Request) (*View, error) {
	status, err := r.Admin.Status(ctx)
	if err != nil {
		return nil, err
	}
	what := []any{
		page.Text("epd reads its configuration file again, as on SIGHUP. If anything in it is wrong, the " +
			"configuration in force stays, and the next page says what is wrong. Decisions from then on " +
			"follow the new one; jobs that run keep their clocks."),
	}
	if c := status.Controller; c != nil {
		what = append(what, page.Facts{{Name: "Configuration in force", Text: c.ConfigVersion}})
	}
	undo := []any{page.Text("Put the earlier file back and read it again.")}
	return confirmation(r, "Read the configuration again", administration, what, undo, &confirmForm{
		Action: "/admin/reload", Button: "Read it again",
	}), nil
}

// reload has the configuration read again.
func reload(ctx context.Context, r *Request) (string, error) {
	if _, err := r.Admin.Reload(ctx); err != nil {
		return "", err
	}
	return "/admin?done=reload", nil
}

// useModelHref returns where a version is chosen: a number, 0 for none, or [freeVersion].
func useModelHref(fit *epdapi.ModelFit, version string) string {
	return "/workloads/" + url.PathEscape(fit.Workload) + "/use?" + url.Values{
		"gpu": {fit.GPUModel}, "version": {version},
	}.Encode()
}

// readModelChoice reads which version is meant.
func readModelChoice(workload string, values url.Values) (*epdapi.ModelChoice, error) {
	c := &epdapi.ModelChoice{
		Workload: workload, GPUModel: values.Get("gpu"), Note: strings.TrimSpace(values.Get("reason")),
	}
	if len(c.Note) > maxNote {
		return nil, badQuery(fmt.Sprintf("The reason has %d bytes, want at most %d.", len(c.Note), maxNote),
			"Say it in fewer words.")
	}
	text := values.Get("version")
	if c.Free = text == freeVersion; c.Free {
		return c, nil
	}
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 0 {
		return nil, badQuery("The version isn't a number from 0.", "Choose one on the workload's page.")
	}
	c.Version = version
	return c, nil
}

// useModelPage asks whether a version of a model shall be used.
func useModelPage(ctx context.Context, r *Request) (*View, error) {
	c, err := readModelChoice(r.PathValue("name"), r.Query)
	if err != nil {
		return nil, err
	}
	versions, err := r.Source.ModelVersions(ctx, c.Workload, c.GPUModel)
	if err != nil {
		return nil, err
	}
	name := versions.LastJob.WordsOf(c.Workload)
	before, found := int64(0), c.Version == 0
	for i := range versions.Versions {
		m := &versions.Versions[i]
		if m.InUse {
			before = m.Version
		}
		found = found || m.Version == c.Version
	}
	if !found || len(versions.Versions) == 0 {
		return nil, notFound("There is no such version.", "Choose one on the workload's page.")
	}
	what := "From now on clocks of " + name + " on " + c.GPUModel +
		" are chosen by version " + strconv.FormatInt(c.Version, 10) +
		", and fits don't replace it. Jobs that run keep their clocks."
	title, button := "Use version "+strconv.FormatInt(c.Version, 10), "Use this version"
	switch {
	case c.Free:
		title, button = "Let fits replace the model again", "Let fits replace it"
		what = "The version in use stays until the next fit, which then replaces it, as those of " +
			"other workloads do."
	case c.Version == 0:
		title, button = "Use no model", "Use no model"
		what = "From now on " + name + " runs on " + c.GPUModel +
			" at default clocks, and fits don't change that. Jobs that run keep their clocks."
	}
	back := page.Link{Text: name + " on " + c.GPUModel, Href: workloadHref(c.Workload, c.GPUModel)}
	inUse := "no version is in use"
	if before > 0 {
		inUse = "version " + strconv.FormatInt(before, 10)
	}
	what += " Who did it, when and why is kept with the model, and shown."
	undo := page.Text("Choose another version on the workload's page in the same way, or let fits replace " +
		"the model again there. Now in use: " + inUse + ".")
	return confirmation(r, title, back, []any{page.Text(what)}, []any{undo}, &confirmForm{
		Action: "/workloads/" + url.PathEscape(c.Workload) + "/use", Reason: !c.Free, Button: button,
		Danger: c.Version == 0 && !c.Free,
		Values: []formValue{{"gpu", c.GPUModel}, {"version", r.Query.Get("version")}},
	}), nil
}

// useModel chooses a version.
func useModel(ctx context.Context, r *Request) (string, error) {
	c, err := readModelChoice(r.PathValue("name"), r.PostForm)
	if err != nil {
		return "", err
	}
	if _, err := r.Admin.UseModel(ctx, c); err != nil {
		return "", err
	}
	return workloadHref(c.Workload, c.GPUModel), nil
}
