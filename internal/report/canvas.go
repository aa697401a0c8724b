package report

import (
	"encoding/xml"
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/queue"
)

// Canvas is a picture being drawn.
type Canvas struct {
	svg strings.Builder
	// id is what the ids of the picture begin with. A picture that is part of a
	// page has one, and colours and background of the page.
	id     string
	shown  string // the class of the screens that show it; empty: all
	narrow bool
}

// NewCanvas begins a picture; an id makes it a part of a page, on which the id is unique.
func NewCanvas(id string) *Canvas { return &Canvas{id: id} }

// NarrowWidth is the width of a picture on a phone, where text keeps its size.
const NarrowWidth = 360

// DrawForScreens returns a picture that is drawn for wide and for narrow screens, of which a page shows one.
// Without an id it is a file of its own, and drawn once.
func DrawForScreens(id string, draw func(c *Canvas) template.HTML) template.HTML {
	if id == "" {
		return draw(NewCanvas(""))
	}
	return draw(&Canvas{id: id, shown: " wide"}) +
		draw(&Canvas{id: id + "-narrow", shown: " narrow", narrow: true})
}

// Narrow reports whether the picture is for a phone.
func (c *Canvas) Narrow() bool { return c.narrow }

// Either returns the length for a wide screen or for a narrow one.
func (c *Canvas) Either(wide, narrow float64) float64 {
	if c.narrow {
		return narrow
	}
	return wide
}

// Printf writes SVG as it is: text in it has gone through [Escape].
func (c *Canvas) Printf(format string, args ...any) { _, _ = fmt.Fprintf(&c.svg, format, args...) }

// InPage reports whether the picture is part of a page.
func (c *Canvas) InPage() bool { return c.id != "" }

// ScopedID returns an id of the picture's own.
func (c *Canvas) ScopedID(name string) string {
	if !c.InPage() {
		return name
	}
	return c.id + "-" + name
}

// PictureClass is the class of pictures.
const PictureClass = "pic"

// Open begins a picture, which says in a title and a description what it shows.
// One in a file of its own brings its style and background along.
func (c *Canvas) Open(class string, width, height float64, title, desc string) {
	attributes := ""
	if !c.InPage() {
		attributes = ` xmlns="http://www.w3.org/2000/svg"`
	}
	c.Printf(
		`<svg%s class="%s" width="%s" height="%s" viewBox="0 0 %[3]s %[4]s" role="img" aria-labelledby="%[5]s %[6]s">`+"\n",
		attributes, class+c.shown, Px(width), Px(height), c.ScopedID("title"), c.ScopedID("desc"),
	)
	c.Printf("<title id=\"%s\">%s</title><desc id=\"%s\">%s</desc>\n", c.ScopedID("title"), Escape(title),
		c.ScopedID("desc"), Escape(desc))
	if !c.InPage() {
		c.Printf("<style>\n%s</style>\n<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n",
			page.PictureStyle())
	}
}

// Close ends it, and returns it as a part of a page or what a file of its own holds.
func (c *Canvas) Close() template.HTML {
	c.Printf("</svg>\n")
	return template.HTML(c.svg.String()) //nolint:gosec // pictures escape all text
}

// Text writes one line of text.
func (c *Canvas) Text(x, y float64, class, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	c.Printf(`<text x="%s" y="%s"%s>%s</text>`+"\n", Px(x), Px(y), class, Escape(text))
}

// Px returns a length with two decimals at most.
func Px(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}

// Escape makes a text safe inside an element or an attribute.
func Escape(text string) string {
	var out strings.Builder
	// A strings.Builder takes everything.
	_ = xml.EscapeText(&out, []byte(queue.Printable(text)))
	return out.String()
}
