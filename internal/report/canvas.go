package report

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/queue"
)

// canvas is a picture being written. The writer keeps its first error until it
// is flushed.
type canvas struct {
	out *bufio.Writer
	// id is what the ids of the picture begin with. A picture that is part of a
	// page has one, and colours and background of the page.
	id string
}

func newCanvas(w io.Writer, id string) canvas {
	return canvas{out: bufio.NewWriterSize(w, 1<<16), id: id}
}

func (c *canvas) printf(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format, args...) }

// inPage reports whether the picture is part of a page.
func (c *canvas) inPage() bool { return c.id != "" }

// scopedID is an id of the picture's own.
func (c *canvas) scopedID(name string) string {
	if !c.inPage() {
		return name
	}
	return c.id + "-" + name
}

// The classes of pictures: in plans text is small.
const (
	pictureClass     = "pic"
	planPictureClass = "pic plan"
)

// open begins a picture, which says in a title and a description what it shows.
// One in a file of its own brings its style and background along.
func (c *canvas) open(class string, width, height float64, title, desc string) {
	attributes := ""
	if !c.inPage() {
		attributes = ` xmlns="http://www.w3.org/2000/svg"`
	}
	c.printf(
		`<svg%s class="%s" width="%s" height="%s" viewBox="0 0 %[3]s %[4]s" role="img" aria-labelledby="%[5]s %[6]s">`+"\n",
		attributes, class, px(width), px(height), c.scopedID("title"), c.scopedID("desc"),
	)
	c.printf("<title id=\"%s\">%s</title><desc id=\"%s\">%s</desc>\n", c.scopedID("title"), escape(title),
		c.scopedID("desc"), escape(desc))
	if !c.inPage() {
		c.printf("<style>\n%s</style>\n<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n",
			page.PictureStyle())
	}
}

// close ends it.
func (c *canvas) close() error {
	c.printf("</svg>\n")
	return c.out.Flush()
}

// text writes one line of text.
func (c *canvas) text(x, y float64, class, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	c.printf(`<text x="%s" y="%s"%s>%s</text>`+"\n", px(x), px(y), class, escape(text))
}

// inlineHTML is a picture as a part of a page.
func inlineHTML(draw func(w io.Writer) error) (template.HTML, error) {
	var out bytes.Buffer
	if err := draw(&out); err != nil {
		return "", err
	}
	return template.HTML(out.String()), nil //nolint:gosec // pictures escape all text
}

// px is a length with two decimals at most.
func px(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}

// escape makes a text safe inside an element or an attribute.
func escape(text string) string {
	var out strings.Builder
	// A strings.Builder takes everything.
	_ = xml.EscapeText(&out, []byte(queue.Printable(text)))
	return out.String()
}
