package report

import (
	"html/template"

	"github.com/epplan/epplan/queue"
)

// BarRow is a quantity of a group, and what it is measured against.
type BarRow struct {
	Name      string
	Value     float64
	Reference float64 // 0: none
	Note      string  // after the bar
}

const (
	barplotWidth  = 760
	barplotLabels = 190 // pixels for names
	barplotNotes  = 190 // after the longest bar
	barplotRow    = 30
	// barRowsWidth is less: these pictures are beside a table, and text that is scaled
	// down can't be read.
	barRowsWidth = 640
)

// DrawBarRows draws a bar for each group, with an outline for its reference.
func DrawBarRows(id, title, desc, what, against string, scale Scale, rows []BarRow) template.HTML {
	c := NewCanvas(id)
	const top = 34
	longest := 0.0
	for _, r := range rows {
		longest = max(longest, r.Value, r.Reference)
	}
	if longest <= 0 {
		longest = 1
	}
	c.Open(PictureClass, barRowsWidth, top+barplotRow*float64(len(rows))+6, title, desc)
	c.Printf(`<rect class="a1" x="%d" y="8" width="18" height="12"/>`, barplotLabels)
	c.Text(barplotLabels+24, 18, "k", what+", "+scale.Symbol())
	if against != "" {
		c.Printf(`<rect class="ghost" x="%d" y="8" width="18" height="12"/>`, barplotLabels+190)
		c.Text(barplotLabels+214, 18, "k", against)
	}
	const room = barRowsWidth - barplotLabels - barplotNotes
	for i, r := range rows {
		y := top + barplotRow*float64(i)
		c.Text(barplotLabels-10, y+16, "k e", Truncate(queue.Printable(r.Name), 26))
		c.Printf(`<rect class="a1" x="%d" y="%s" width="%s" height="18"><title>%s</title></rect>`,
			barplotLabels, Px(y+3), Px(max(1, room*r.Value/longest)), Escape(r.Name+": "+scale.With(r.Value)))
		if r.Reference > 0 {
			c.Printf(`<rect class="ghost" x="%d" y="%s" width="%s" height="22"/>`, barplotLabels, Px(y+1),
				Px(room*r.Reference/longest))
		}
		c.Text(barplotLabels+room*max(r.Value, r.Reference)/longest+8, y+16, "", scale.Format(r.Value)+r.Note)
	}
	return c.Close()
}

// drawEstimates draws a dot for each value, on a line from its lower to its
// upper bound.
func drawEstimates(id, title, desc string, axis Axis, rows []Estimate) template.HTML {
	c := NewCanvas(id)
	const row, foot = 42, 52
	f := Frame{
		X: axis, Left: 250, Right: barplotWidth - RightMargin, Upper: 12, Lower: 12 + row*float64(len(rows)),
	}
	c.Open(PictureClass, barplotWidth, f.Lower+foot, title, desc)
	for _, v := range f.X.ticks() {
		class := "g"
		if v > -f.X.Step/1e6 && v < f.X.Step/1e6 {
			class = "z"
		}
		c.Printf(`<path class="%s" d="M%s %sV%s"/>`, class, Px(f.Px(v)), Px(f.Upper), Px(f.Lower+5))
		c.Text(f.Px(v), f.Lower+19, "m", f.X.Label(v))
	}
	c.Text((f.Left+f.Right)/2, f.Lower+40, "m", f.X.Title)
	for i, r := range rows {
		y := f.Upper + row*(float64(i)+.5)
		c.Text(f.Left-16, y-1, "k e", Truncate(queue.Printable(r.Name), 30))
		c.Text(f.Left-16, y+14, "e", r.Note)
		if !r.Believed {
			left, right := Px(f.Px(r.Low)), Px(f.Px(r.High))
			c.Printf(`<path class="whisk c1" d="M%s %sH%sM%s %sv12M%s %[5]sv12"/>`, left, Px(y), right, left,
				Px(y-6), right)
		}
		class := "dot a1"
		if r.Believed {
			class = "late"
		}
		c.Printf(`<circle class="%s" cx="%s" cy="%s" r="6"><title>%s</title></circle>`+"\n", class,
			Px(f.Px(r.Value)), Px(y), Escape(r.Name))
	}
	return c.Close()
}
