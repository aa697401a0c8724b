package web

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/view"
)

// monthLayout is the form of a month in an address.
const monthLayout = "2006-01"

// monthsToChoose is the number of months in the form.
const monthsToChoose = 24

// monthPage returns the energy of a month's jobs, its cost and the savings.
func monthPage(ctx context.Context, r *Request) (*View, error) {
	month := cmp.Or(r.Query.Get("month"), r.Now.Local().Format(monthLayout))
	since, err := time.ParseInLocation(monthLayout, month, time.Local)
	if err != nil {
		return nil, badQuery("That is no month.", "Choose one in the form.")
	}
	by := cmp.Or(r.Query.Get("by"), record.Groupings[0])
	if !slices.Contains(record.Groupings, by) {
		return nil, badQuery("Jobs can't be grouped by that.", "Choose a group in the form.")
	}
	used, err := r.Admin.Usage(ctx, since, since.AddDate(0, 1, 0), by, false)
	if err != nil {
		return nil, err
	}
	shown := view.Usage(used)
	v := &View{Title: shown.Title, Lead: shown.Lead, Still: true} // a month of a large cluster takes a second
	v.add("filter", "", monthForm(since, by, r.Now)).Still = true
	parts := []any{shown.Tiles}
	for _, n := range shown.Notices {
		parts = append(parts, n)
	}
	v.add("month", "In figures", append(parts, besideFigures(shown))...)
	for _, s := range shown.Sections {
		v.add(s.ID, s.Heading, slices.DeleteFunc(s.Parts, isFigure)...)
	}
	v.add("mail", "", page.Text("As a file to mail, or as data: epplan report --month "+month+" --by "+by+
		" --html month.html, or -o csv."))
	return v, nil
}

// besideFigures returns the facts and the pictures of a view in two columns; its tables take the whole width.
func besideFigures(v *view.View) any {
	left, right := &page.Group{Parts: []any{v.Facts.Page()}}, &page.Group{}
	for _, s := range v.Sections {
		for _, part := range s.Parts {
			switch {
			case !isFigure(part):
			case s.ID == "time":
				right.Parts = append(right.Parts, part)
			default:
				left.Parts = append(left.Parts, part)
			}
		}
	}
	if len(right.Parts) == 0 {
		return left
	}
	return &page.Group{Columns: true, Parts: []any{left, right}}
}

func isFigure(part any) bool {
	_, is := part.(*page.Figure)
	return is
}

// monthForm returns the fields that choose a month and a group.
func monthForm(month time.Time, by string, now time.Time) any {
	last := now.Local()
	months := make([]selectOption, 0, monthsToChoose+1)
	for i := range monthsToChoose {
		at := time.Date(last.Year(), last.Month()-time.Month(i), 1, 0, 0, 0, 0, time.Local)
		months = append(months, selectOption{at.Format(monthLayout), at.Format("January 2006")})
	}
	chosen := selectOption{month.Format(monthLayout), month.Format("January 2006")}
	if !slices.Contains(months, chosen) {
		months = append(months, chosen)
	}
	return filterFormHTML("/month", formInput{
		Name: "month", Label: "Month", Value: chosen.Value, Options: months,
	}, formInput{Name: "by", Label: "By", Value: by, Options: anyOptions(record.Groupings)[1:]})
}
