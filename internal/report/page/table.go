package page

import (
	"cmp"
	"html"
	"html/template"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/epplan/epplan/queue"
)

// Tables are written without a template: they may have very many cells.

// escape is text for an element or an attribute.
func escape(text string) string { return html.EscapeString(queue.Printable(text)) }

// html returns the table in a region of its own, which scrolls where it is too wide.
func (t *Table) html() template.HTML {
	var b strings.Builder
	b.WriteString(`<div class="scroll" role="region" aria-label="` + escape(t.Caption) +
		`" tabindex="0">` + "\n<table")
	writeAttribute(&b, "id", t.ID)
	if t.asCards() {
		writeAttribute(&b, "class", "cards")
	}
	b.WriteString(">\n<caption>" + escape(t.Caption))
	if t.Note != "" {
		b.WriteString(`<span class="muted">` + safeProse(t.Note) + `</span>`)
	}
	b.WriteString("</caption>\n<thead><tr>")
	for i := range t.Columns {
		t.Columns[i].writeTo(&b)
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		t.writeRow(&b, row)
	}
	if len(t.Rows) == 0 {
		b.WriteString(`<tr><td colspan="` + strconv.Itoa(len(t.Columns)) + `">` + escape(cmp.Or(t.Empty,
			"nothing")) + "</td></tr>\n")
	}
	b.WriteString("</tbody>\n</table>\n</div>\n")
	if t.More != "" {
		b.WriteString(`<p class="more">` + safeProse(t.More) + "</p>\n")
	}
	return template.HTML(b.String()) //nolint:gosec // all of it is escaped
}

// asCards reports whether a telephone shows each row as a card, as so many columns don't fit there.
func (t *Table) asCards() bool {
	const fitting = 3
	return len(t.Columns) > fitting
}

func writeAttribute(b *strings.Builder, name, value string) {
	if value != "" {
		b.WriteString(" " + name + `="` + escape(value) + `"`)
	}
}

func (c *Column) writeTo(b *strings.Builder) {
	b.WriteString(`<th scope="col"`)
	if c.Number {
		b.WriteString(` class="n"`)
	}
	b.WriteString(">" + escape(c.Head))
	if c.Unit != "" {
		b.WriteString(`<span class="unit">` + escape(c.Unit) + `</span>`)
	}
	b.WriteString("</th>")
}

func (t *Table) writeRow(b *strings.Builder, row []Cell) {
	b.WriteString("<tr>")
	for i := range row {
		c, tag := &row[i], "td"
		if i == 0 && !t.Unnamed {
			tag = "th"
		}
		b.WriteString("<" + tag)
		if tag == "th" {
			b.WriteString(` scope="row"`)
		}
		class, head := c.class(i < len(t.Columns) && t.Columns[i].Number), ""
		if i > 0 && i < len(t.Columns) && t.asCards() {
			head = t.cardHead(i)
			if c.isShort(head) {
				class = strings.TrimSpace(class + " half")
			}
		}
		writeAttribute(b, "class", class)
		writeAttribute(b, "id", c.ID)
		writeAttribute(b, "title", c.Title)
		writeAttribute(b, "data-head", head)
		b.WriteString(">")
		c.writeTo(b, i < len(t.Columns) && t.Columns[i].Number)
		b.WriteString("</" + tag + ">")
	}
	b.WriteString("</tr>\n")
}

// cardHead returns what stands before a cell of a card: the heading, with that of the column before if others
// have the same.
func (t *Table) cardHead(column int) string {
	head := func(i int) string { return strings.TrimSpace(t.Columns[i].Head + " " + t.Columns[i].Unit) }
	for i := range t.Columns {
		if i != column && head(i) == head(column) {
			return t.Columns[column-1].Head + ", " + head(column)
		}
	}
	return head(column)
}

// isShort reports whether the cell fits in half of a card, beside its heading.
func (c *Cell) isShort(head string) bool {
	const fitting, badge = 16, 3 // characters
	length := utf8.RuneCountInString(head) + utf8.RuneCountInString(c.Text)
	if c.Badge {
		length += badge
	}
	return c.HTML == "" && length <= fitting
}

// minLongWord is how many characters without a place to break a cell may have before
// it is broken anywhere: one long name mustn't push all other columns out of sight.
const minLongWord = 18

// minLongText is from how many bytes on a cell has more room where a table scrolls.
const minLongText = 32

func (c *Cell) class(number bool) string {
	var classes []string
	if number {
		classes = append(classes, "n")
	}
	if c.Kind != "" && !c.Badge {
		classes = append(classes, string(c.Kind))
	}
	if c.HTML != "" || c.Badge || number {
		return strings.Join(classes, " ")
	}
	if hasLongWord(c.Text) {
		classes = append(classes, "long")
	}
	if len(c.Text) > minLongText && !c.Listed {
		classes = append(classes, "text")
	}
	return strings.Join(classes, " ")
}

// hasLongWord reports whether a text has a word that is broken anywhere.
func hasLongWord(text string) bool {
	word := 0
	for _, r := range text {
		if word++; r == ' ' || r == '-' {
			word = 0
		}
		if word > minLongWord {
			return true
		}
	}
	return false
}

// writeTo writes the cell. The bounds of a number stand below it: beside it they push columns out of sight.
func (c *Cell) writeTo(b *strings.Builder, number bool) {
	text := string(c.HTML)
	switch {
	case text != "":
	case c.Badge:
		text = `<span class="badge ` + string(c.Kind) + `">` + escape(c.Text) + `</span>`
	case c.Listed:
		text = `<span class="whole">` +
			strings.ReplaceAll(escape(c.Text), ", ", `,</span> <span class="whole">`) + `</span>`
	default:
		text = escape(c.Text)
		if number {
			text = strings.Replace(text, " (", "<br>(", 1)
		}
	}
	if IsLocal(c.Href) {
		text = `<a href="` + html.EscapeString(c.Href) + `">` + text + `</a>`
	}
	b.WriteString(text)
}

// IsLocal reports whether an address stays on its site: one that begins with a
// slash, a question mark, or the mark of a section. Other addresses make no link
// in a table.
func IsLocal(href string) bool {
	switch {
	case href == "" || strings.HasPrefix(href, "//") || strings.HasPrefix(href, "/\\"):
		return false
	default:
		return strings.ContainsRune("/?#", rune(href[0]))
	}
}
