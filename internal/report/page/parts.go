package page

import "html/template"

// Severity is what something means for its reader. In HTML it is a class, and a
// notice begins with a word for it.
type Severity string

// The kinds: Plain means nothing in particular.
const (
	Plain Severity = ""
	Info  Severity = "info"
	Good  Severity = "good"
	Warn  Severity = "warn"
	Bad   Severity = "bad"
)

// Word returns what a notice of the kind begins with.
func (k Severity) Word() string {
	switch k {
	case Good:
		return "Good"
	case Warn:
		return "Warning"
	case Bad:
		return "Problem"
	default:
		return "Note"
	}
}

// Text is a paragraph.
type Text string

// Group is parts below each other. With a heading it has an h3 above.
type Group struct {
	Heading string
	Parts   []any
	Columns bool // beside each other where there is room
}

// Table is rows under headings. The first cell of each row names it, unless
// Unnamed is set.
type Table struct {
	ID      string // empty: none
	Caption string
	Note    string // a sentence below the caption
	Columns []Column
	Rows    [][]Cell
	Unnamed bool
	More    string // below the table, such as how many rows aren't shown
	Empty   string // in place of rows where there are none; empty: "nothing"
}

// Column is the heading of a column.
type Column struct {
	Head   string
	Unit   string // in a line of its own; empty: none
	Number bool   // right-aligned and never wrapped
}

// Cell is a cell of a table.
type Cell struct {
	Text  string
	Href  string        // of a link around the text; empty: none
	Kind  Severity      // what the text says, in colour too
	Title string        // tooltip, for what is also said elsewhere
	HTML  template.HTML // in place of the text; the caller escapes
	ID    string        // for a script to find; empty: none
	Badge bool          // the text in a frame, in the colour of its kind
	// Listed text has parts with commas between them, which aren't broken into lines.
	Listed bool
}

// Cells are cells of plain text.
func Cells(texts ...string) []Cell {
	all := make([]Cell, len(texts))
	for i, text := range texts {
		all[i].Text = text
	}
	return all
}

// Figure is a picture with what it shows in words.
type Figure struct {
	ID      string // unique on its page
	Caption string
	// SVG is an inline picture: an svg element of class pic, role img, named by
	// a title and a desc of its own with ids that begin with the figure's.
	SVG template.HTML
	// Numbers are what the picture shows, folded below it; nil: none.
	Numbers *Table
}

// Tiles are a few figures that matter most.
type Tiles []Tile

// Tile is one of them.
type Tile struct {
	Label, Value string
	Note         string   // in small letters; empty: none
	Kind         Severity // the colour of the edge; the note has to say why
	ID           string   // of the value, for a script to find; empty: none
}

// Facts are names with values.
type Facts []Fact

// Fact is a name with its value.
type Fact struct {
	Name, Text string
	Href       string // of a link around the text; empty: none
}

// Notice is what the reader must not overlook. It begins with the word for its
// kind.
type Notice struct {
	Kind  Severity
	Text  string
	Items []string
}

// Details is parts folded under a line.
type Details struct {
	Summary string
	Parts   []any
}

// Link leads to another page, or to a section of this one.
type Link struct {
	Text, Href string
	Here       bool // it leads to the page that is shown
}
