package report

import (
	"io"

	"github.com/epplan/epplan/queue"
)

// barRow is a quantity of a group, and what it is measured against.
type barRow struct {
	name      string
	value     float64
	reference float64 // 0: none
	note      string  // after the bar
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

// drawBarRows draws a bar for each group, with an outline for its reference.
func drawBarRows(w io.Writer, id, title, desc, what, against string, scale Scale, rows []barRow) error {
	c := newCanvas(w, id)
	const top = 34
	longest := 0.0
	for _, r := range rows {
		longest = max(longest, r.value, r.reference)
	}
	if longest <= 0 {
		longest = 1
	}
	c.open(pictureClass, barRowsWidth, top+barplotRow*float64(len(rows))+6, title, desc)
	c.printf(`<rect class="a1" x="%d" y="8" width="18" height="12"/>`, barplotLabels)
	c.text(barplotLabels+24, 18, "k", what+", "+scale.Symbol())
	if against != "" {
		c.printf(`<rect class="ghost" x="%d" y="8" width="18" height="12"/>`, barplotLabels+190)
		c.text(barplotLabels+214, 18, "k", against)
	}
	const room = barRowsWidth - barplotLabels - barplotNotes
	for i, r := range rows {
		y := top + barplotRow*float64(i)
		c.text(barplotLabels-10, y+16, "k e", truncate(queue.Printable(r.name), 26))
		c.printf(`<rect class="a1" x="%d" y="%s" width="%s" height="18"><title>%s</title></rect>`,
			barplotLabels, px(y+3), px(max(1, room*r.value/longest)), escape(r.name+": "+scale.With(r.value)))
		if r.reference > 0 {
			c.printf(`<rect class="ghost" x="%d" y="%s" width="%s" height="22"/>`, barplotLabels, px(y+1),
				px(room*r.reference/longest))
		}
		c.text(barplotLabels+room*max(r.value, r.reference)/longest+8, y+16, "", scale.Format(r.value)+r.note)
	}
	return c.close()
}

// drawEstimates draws a dot for each value, on a line from its lower to its
// upper bound.
func drawEstimates(w io.Writer, id, title, desc string, axis plotAxis, rows []Estimate) error {
	c := newCanvas(w, id)
	const row, foot = 42, 52
	f := plotFrame{
		x: axis, left: 250, right: barplotWidth - rightMargin, upper: 12, lower: 12 + row*float64(len(rows)),
	}
	c.open(pictureClass, barplotWidth, f.lower+foot, title, desc)
	for _, v := range f.x.ticks() {
		class := "g"
		if v > -f.x.step/1e6 && v < f.x.step/1e6 {
			class = "z"
		}
		c.printf(`<path class="%s" d="M%s %sV%s"/>`, class, px(f.px(v)), px(f.upper), px(f.lower+5))
		c.text(f.px(v), f.lower+19, "m", f.x.label(v))
	}
	c.text((f.left+f.right)/2, f.lower+40, "m", f.x.title)
	for i, r := range rows {
		y := f.upper + row*(float64(i)+.5)
		c.text(f.left-16, y-1, "k e", truncate(queue.Printable(r.Name), 30))
		c.text(f.left-16, y+14, "e", r.Note)
		if !r.Believed {
			left, right := px(f.px(r.Low)), px(f.px(r.High))
			c.printf(`<path class="whisk c1" d="M%s %sH%sM%s %sv12M%s %[5]sv12"/>`, left, px(y), right, left,
				px(y-6), right)
		}
		class := "dot a1"
		if r.Believed {
			class = "late"
		}
		c.printf(`<circle class="%s" cx="%s" cy="%s" r="6"><title>%s</title></circle>`+"\n", class,
			px(f.px(r.Value)), px(y), escape(r.Name))
	}
	return c.close()
}
