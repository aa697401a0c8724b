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
	barplotWidth = 760
	barplotRow   = 30
	manyBars     = 15 // from then on rows are lower
	// barRowsWidth is less: these pictures are beside a table, and text that is scaled
	// down can't be read.
	barRowsWidth = 640
)

// DrawBarRows draws a bar for each group, with an outline for its reference.
func DrawBarRows(id, title, desc, what, against string, scale Scale, rows []BarRow) template.HTML {
	longest := 0.0
	for _, r := range rows {
		longest = max(longest, r.Value, r.Reference)
	}
	if longest <= 0 {
		longest = 1
	}
	row := float64(barplotRow)
	if len(rows) > manyBars {
		row = 22
	}
	return DrawForScreens(id, func(c *Canvas) template.HTML {
		width, labels, notes := c.Either(barRowsWidth, NarrowWidth), c.Either(190, 96), c.Either(190, 110)
		room, againstX, againstY, top := width-labels-notes, labels+190, 18.0, 34.0
		if c.Narrow() {
			againstX, againstY, top = labels, 38, 52
		}
		c.Open(PictureClass, width, top+row*float64(len(rows))+6, title, desc)
		c.Printf(`<rect class="a1" x="%s" y="8" width="18" height="12"/>`, Px(labels))
		c.Text(labels+24, 18, "k", what+", "+scale.Symbol())
		if against != "" {
			c.Printf(`<rect class="ghost" x="%s" y="%s" width="18" height="12"/>`, Px(againstX), Px(againstY-10))
			c.Text(againstX+24, againstY, "k", against)
		}
		for i, r := range rows {
			y := top + row*float64(i)
			c.Text(labels-10, y+row/2+1, "k e", Truncate(queue.Printable(r.Name), int(c.Either(26, 13))))
			c.Printf(`<rect class="a1" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`,
				Px(labels), Px(y+3), Px(max(1, room*r.Value/longest)), Px(row-12),
				Escape(r.Name+": "+scale.FormatWithUnit(r.Value)))
			if r.Reference > 0 {
				c.Printf(`<rect class="ghost" x="%s" y="%s" width="%s" height="%s"/>`, Px(labels), Px(y+1),
					Px(room*r.Reference/longest), Px(row-8))
			}
			c.Text(labels+room*max(r.Value, r.Reference)/longest+8, y+row/2+1, "", scale.Format(r.Value)+r.Note)
		}
		return c.Close()
	})
}

// drawEstimates draws a dot for each value, on a line from its lower to its
// upper bound.
func drawEstimates(id, desc, what string, unit Unit, rows []Estimate) template.HTML {
	return DrawForScreens(id, func(c *Canvas) template.HTML {
		row, foot := c.Either(42, 58), 52.0
		f := Frame{
			X: estimateAxis(what, unit, rows, int(c.Either(8, 4))), Left: c.Either(250, 16),
			Right: c.Either(barplotWidth-RightMargin, NarrowWidth-16), Upper: 12, Lower: 12 + row*float64(len(rows)),
		}
		c.Open(PictureClass, c.Either(barplotWidth, NarrowWidth), f.Lower+foot, what, desc)
		for _, v := range f.X.ticks() {
			class := "g"
			if v > -f.X.Step/1e6 && v < f.X.Step/1e6 {
				class = "z"
			}
			c.Printf(`<path class="%s" d="M%s %sV%s"/>`, class, Px(f.Px(v)), Px(f.Upper), Px(f.Lower+5))
			c.Text(f.Px(v), f.Lower+19, "m", f.X.Label(v))
		}
		c.Text((f.Left+f.Right)/2, f.Lower+40, "m", f.X.Title)
		for i := range rows {
			rows[i].draw(c, &f, f.Upper+row*float64(i), row)
		}
		return c.Close()
	})
}

// draw draws an estimate in its row.
func (r *Estimate) draw(c *Canvas, f *Frame, top, row float64) {
	y := top + row/2
	if c.Narrow() {
		y = top + 36
		c.Text(0, top+16, "k halo", Truncate(queue.Printable(r.Name)+": "+r.Note, 50))
	} else {
		c.Text(f.Left-16, y-1, "k e", Truncate(queue.Printable(r.Name), 30))
		c.Text(f.Left-16, y+14, "e", r.Note)
	}
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
