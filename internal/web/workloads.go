package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
)

// maxShownWorkloads is how many rows the list of workloads has at most, and
// maxShownRuns how many a workload's page has of the runs behind its model.
const (
	maxShownWorkloads = 200
	maxShownRuns      = 64
)

func workloadsPage(ctx context.Context, r *Request) (*View, error) {
	all, err := r.Source.Models(ctx)
	if err != nil {
		return nil, err
	}
	part := strings.ToLower(r.Query.Get("name"))
	rows := slices.DeleteFunc(slices.Clone(all.Models), func(m epdapi.ModelStatus) bool {
		return !strings.Contains(strings.ToLower(strings.Join([]string{
			m.Workload, m.GPUModel, m.LastJob.Name, m.LastJob.User, m.LastJob.Partition,
		}, "\n")), part)
	})
	slices.SortFunc(rows, func(a, b epdapi.ModelStatus) int {
		return cmp.Or(cmp.Compare(a.LastJob.NameOf(a.Workload), b.LastJob.NameOf(b.Workload)),
			cmp.Compare(a.LastJob.User, b.LastJob.User),
			cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.GPUModel, b.GPUModel))
	})
	table := &page.Table{
		Caption: "Workloads and the models that their clocks are chosen by",
		Note: "A workload is called as its last job. Others may be called the same: keys tell them " +
			"apart, and end with the number of GPUs.",
		Columns: []page.Column{
			{Head: "Workload"},
			{Head: "GPU model"},
			{Head: "Model"},
			{Head: "Version", Number: true},
			{Head: "Runs", Unit: "it was fitted to", Number: true},
			{Head: "Last fit", Number: true},
			{Head: "Error of time", Unit: "seldom more", Number: true},
			{Head: "Missed", Unit: "runs in a row", Number: true},
			{Head: "State"},
			{Head: "Key"},
		},
		Empty: "no workload has a model: the first comes after a few runs that ended",
	}
	for i := range rows[:min(len(rows), maxShownWorkloads)] {
		table.Rows = append(table.Rows, workloadRow(&rows[i], r.Now))
	}
	if more := len(rows) - maxShownWorkloads; more > 0 {
		table.More = report.FormatCount(more) + " more workloads aren't shown: name a part of one above."
	}
	return &View{
		Title: "Workloads",
		Lead: "What epd has learnt of how workloads respond to clocks. A workload is what repeats: the " +
			"same script, or the same name, of the same user.",
		Sections: []Section{
			{
				ID: "filter", Still: true, Parts: []any{
					filterFormHTML("/workloads", formInput{
						Name: "name", Label: "Part of a name, user or key", Value: r.Query.Get("name"),
					}),
				},
			},
			{ID: "list", Parts: []any{table}},
		},
	}, nil
}

func workloadRow(m *epdapi.ModelStatus, now time.Time) []page.Cell {
	version, fitted, off := dash, page.Cell{Text: dash}, dash
	if m.Version > 0 {
		version = strconv.FormatInt(m.Version, 10)
	}
	if m.Samples > 1 && m.Version > 0 && m.GPUModel != "" { // through one point any curve is exact
		off = report.FormatPercent(m.Margin)
	}
	if !m.Created.IsZero() {
		fitted = page.Cell{Text: ago(m.Created, now), Title: view.DateTime(m.Created)}
	}
	missed := page.Cell{Text: strconv.Itoa(m.Missed)}
	if m.Missed > 1 {
		missed.Kind = page.Warn
	}
	return []page.Cell{
		{
			Text: m.LastJob.WordsOf(m.Workload), Href: workloadHref(m.Workload, m.GPUModel),
			Title: m.LastJob.Name,
		},
		{Text: m.GPUModel},
		{Text: modelBasis(m)},
		{Text: version},
		{Text: report.FormatCount(m.Samples)},
		fitted,
		{Text: off},
		missed, modelStateCell(m),
		{Text: epdapi.ShortWorkload(m.Workload), Title: m.Workload},
	}
}

// modelBasis says what a workload's clocks are chosen by.
func modelBasis(m *epdapi.ModelStatus) string {
	switch {
	case m.GPUModel == "":
		return "of predictions"
	case m.Version == 0:
		return "none"
	case m.Prior:
		return "pooled prior"
	}
	return "its own"
}

// modelStateCell says what else there is to know of a model.
func modelStateCell(m *epdapi.ModelStatus) page.Cell {
	switch {
	case m.Pinned:
		return page.Cell{
			Text: "chosen by hand", Kind: page.Info, Badge: true, Title: cmp.Or(m.Note, m.Chosen.Why),
		}
	case m.Note != "":
		return page.Cell{Text: m.Note}
	}
	return page.Cell{Text: "follows its runs"}
}

// workloadPage returns the page of a workload on a GPU model.
func workloadPage(ctx context.Context, r *Request) (*View, error) {
	name, gpu := r.PathValue("name"), r.Query.Get("gpu")
	if gpu == "" {
		return workloadIndexPage(ctx, r, name)
	}
	fit, err := r.Source.Fit(ctx, name, gpu)
	if err != nil {
		return nil, err
	}
	versions, err := r.Source.ModelVersions(ctx, name, gpu)
	if err != nil {
		return nil, err
	}
	if len(versions.Versions) == 0 && len(fit.Points) == 0 {
		return nil, notFound("There is neither a model nor a run of this workload on "+gpu+".",
			"The list of workloads has those that there are.")
	}
	return &View{
		Title: fit.LastJob.WordsOf(name) + " on " + gpu,
		Lead: "How this workload responds to clocks, as far as its runs told, and what its " +
			"clocks are chosen by.",
		Back: page.Link{Text: "Workloads", Href: "/workloads"},
		Sections: []Section{
			{ID: "standing", Parts: []any{standingFacts(fit)}},
			{ID: "fit", Heading: "Runs and the model's curve", Parts: fitParts(fit)},
			{ID: "parameters", Heading: "Parameters", Parts: []any{parameterTable(fit, versions.Versions)}},
			{ID: "versions", Heading: "Versions", Parts: versionParts(r, fit, versions.Versions)},
			{ID: "runs", Heading: "The runs behind it", Parts: []any{runTable(fit), page.Facts{
				{
					Name: "More of them", Text: "jobs of this workload",
					Href: "/jobs?" + url.Values{"workload": {name}}.Encode(),
				},
			}}},
		},
	}, nil
}

// workloadIndexPage lists a workload's GPU models.
func workloadIndexPage(ctx context.Context, r *Request, name string) (*View, error) {
	all, err := r.Source.Models(ctx)
	if err != nil {
		return nil, err
	}
	var facts page.Facts
	var last epdapi.LastJob
	for i := range all.Models {
		if m := &all.Models[i]; m.Workload == name && m.GPUModel != "" {
			last = m.LastJob
			facts = append(facts, page.Fact{
				Name: m.GPUModel, Text: modelBasis(m), Href: workloadHref(name, m.GPUModel),
			})
		}
	}
	if len(facts) == 0 {
		return nil, notFound("No workload is called that.", "The list of workloads has those that there are.")
	}
	return &View{
		Title: last.WordsOf(name), Lead: "This workload has a model for each GPU model that it ran on.",
		Back:     page.Link{Text: "Workloads", Href: "/workloads"},
		Sections: []Section{{ID: "models", Parts: []any{facts}}},
	}, nil
}

// standingFacts say how a model fares.
func standingFacts(fit *epdapi.ModelFit) page.Facts {
	m := &fit.ModelStatus
	by := map[string]string{
		"none":         "nothing: default clocks",
		"pooled prior": "what workloads have in common, after the runs seen", "its own": "a model of its own",
	}
	facts := page.Facts{{Name: "Clocks are chosen by", Text: by[modelBasis(m)]}}
	add := func(name, text string) { facts = append(facts, page.Fact{Name: name, Text: text}) }
	if j := &m.LastJob; j.ID != 0 {
		facts = append(facts, page.Fact{
			Name: "Called as its last job", Text: strconv.FormatInt(j.ID, 10) + ", " + orDash(j.Name),
			Href: view.JobHref(j.ID),
		})
	}
	add("Key", m.Workload)
	if m.Version > 0 {
		add("Version in use", strconv.FormatInt(m.Version, 10))
		add("Form", fit.Form)
		add("Fitted", view.DateTime(fit.Created)+", to "+report.Plural(m.Samples, "run"))
		add("Runs that it missed", strconv.Itoa(m.Missed)+" in a row")
	}
	if fit.Model != nil {
		add("Time", "seldom more than "+report.FormatPercent(fit.Model.Margin)+" above the curve")
		add("Core clocks seen", mhzText(fit.Model.MinCore)+" to "+mhzText(fit.Model.MaxCore))
	}
	state := modelStateCell(m)
	add("State", strings.TrimSuffix(state.Text+": "+state.Title, ": "))
	if by := m.Chosen.Words(view.DateTime); by != "" {
		add("Chosen", by)
	}
	return facts
}

// storedShape is what a version's coefficients hold, as far as it is shown.
type storedShape struct {
	Coefficients []struct {
		Name   string  `json:"name"`
		Value  float64 `json:"value"`
		StdErr float64 `json:"std_err"`
	} `json:"coefficients"`
}

// parameterTable returns the numbers of the version in use.
func parameterTable(fit *epdapi.ModelFit, versions []epdapi.ModelVersion) *page.Table {
	t := &page.Table{
		Caption: "Parameters of the version in use",
		Note:    "The error is one standard deviation; of a prior it says how much like workloads differ.",
		Columns: []page.Column{
			{Head: "Parameter"},
			{Head: "Value", Number: true},
			{Head: "Error", Unit: "±", Number: true},
			{Head: "Of the value", Number: true},
		},
		Empty: "no version is in use",
	}
	i := slices.IndexFunc(versions, func(m epdapi.ModelVersion) bool { return m.Version == fit.Version })
	if i < 0 || fit.Version == 0 {
		return t
	}
	var shape storedShape
	if err := json.Unmarshal(versions[i].Coefficients, &shape); err != nil {
		t.Empty = "the version in use can't be read"
		return t
	}
	for _, c := range shape.Coefficients {
		part := dash
		if c.Value != 0 {
			part = report.FormatPercent(math.Abs(c.StdErr / c.Value))
		}
		t.Rows = append(t.Rows, page.Cells(c.Name, parameterText(c.Value), parameterText(c.StdErr), part))
	}
	return t
}

// versionParts returns all versions, and what an administrator may do with them.
func versionParts(r *Request, fit *epdapi.ModelFit, versions []epdapi.ModelVersion) []any {
	t := &page.Table{
		Caption: "All versions, the newest first",
		Columns: []page.Column{
			{Head: "Version"},
			{Head: "Form"},
			{Head: "Runs", Number: true},
			{Head: "Fitted"},
			{Head: "In use"},
			{Head: "Note"},
			{Head: "Chosen"},
		},
		Empty: "there is none yet",
	}
	acts := r.Viewer.Acts()
	if acts {
		t.Columns = append(t.Columns, page.Column{Head: "Use"})
	}
	for i := range versions {
		m := &versions[i]
		number := strconv.FormatInt(m.Version, 10)
		row := page.Cells(number, m.Form, strconv.Itoa(m.Samples), view.DateTime(m.Created), "", m.Note,
			orDash(m.Chosen.Words(view.DateTime)))
		if m.InUse {
			row[4] = page.Cell{Text: "in use", Kind: page.Good, Badge: true}
		}
		if acts {
			row = append(row, page.Cell{Text: "use version " + number, Href: useModelHref(fit, number)})
		}
		t.Rows = append(t.Rows, row)
	}
	parts := []any{t}
	if acts && len(versions) > 0 {
		facts := page.Facts{{
			Name: "None of them", Text: "take the model out of use", Href: useModelHref(fit, "0"),
		}}
		if fit.Pinned {
			facts = append(facts, page.Fact{
				Name: "The newest again", Text: "let fits replace the model again",
				Href: useModelHref(fit, freeVersion),
			})
		}
		parts = append(parts, facts)
	}
	return parts
}

func runTable(fit *epdapi.ModelFit) *page.Table {
	t := &page.Table{
		Caption: "The last runs, the newest first, of one GPU",
		Columns: []page.Column{
			{Head: "Job"},
			{Head: "Ended"},
			{Head: "Core clock", Unit: "MHz", Number: true},
			{Head: "Memory clock", Unit: "MHz", Number: true},
			{Head: "Time", Number: true},
			{Head: "Power", Number: true},
			{Head: "Energy", Number: true},
			{Head: "Off the curve", Number: true},
			{Head: "Group"},
			{Head: "In a fit"},
		},
		Empty: "no run of this workload has ended yet",
	}
	for i := range fit.Points[:min(len(fit.Points), maxShownRuns)] {
		p := &fit.Points[i]
		off := page.Cell{Text: dash}
		if v, ok := p.Off.Get(); ok {
			off.Text = fmt.Sprintf("%+.1f %%", 100*v)
			if !p.Within {
				off.Kind, off.Title = page.Warn, "outside of what the model says happens seldom"
			}
		}
		used := page.Cell{Text: "yes"}
		switch {
		case !p.Used:
			used = page.Cell{Text: "no: " + p.Why}
		case p.Outlier != "":
			used = page.Cell{Text: "less: " + p.Outlier, Kind: page.Warn}
		}
		t.Rows = append(t.Rows, []page.Cell{
			jobCell(p.JobID),
			{Text: view.DateTime(p.Ended)},
			{Text: parameterText(float64(p.Core))},
			{Text: parameterText(float64(p.Mem))},
			{Text: numberOrDash(p.TimeS, report.FormatSeconds)},
			{Text: numberOrDash(p.PowerW, wattsText)},
			{Text: joulesOrDash(p.EnergyJ)},
			off,
			{Text: view.ArmWords(p.Arm)},
			used,
		})
	}
	return t
}

func parameterText(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
