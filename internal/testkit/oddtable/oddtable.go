// Package oddtable writes drawn tables as people and programs write them: in UTF-8 or UTF-16, with any
// separator, quotes, decimal commas, units in names, columns nobody asked for. It says of each whether
// a reader must refuse it, and reads nothing itself.
package oddtable

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Column is a column of a table.
type Column struct {
	Target string // the reader's own name for it, to which names are mapped
	Names  []Name
	Texts  []string // values that it may have; nil: it has numbers
	Most   int64    // the largest number, in thousandths of the name's unit
	Whole  bool     // numbers are whole ones
}

// Name is a name that a column may have in a file.
type Name struct {
	Text   string
	Factor float64 // what a number under it is multiplied by
	Mapped bool    // it stands for the column only if a user says so
	Unit   string  // that a user states; empty: none
}

// Table is a drawn table: cells by row and column of the columns that were asked for.
type Table struct {
	Bytes  []byte
	Text   string // the same as text
	Header []string
	Map    map[string]string // targets by names of the file
	Ignore bool
	Values [][]float64 // numbers in the columns' own units
	Texts  [][]string
	// Refuse says why the table must be refused; empty: it must be read. Where May is set it may be refused.
	Refuse string
	May    bool
}

// Judge returns what is wrong if a reader ended with an error, or with none, on the table.
func (t *Table) Judge(err error) error {
	switch {
	case err != nil && t.Refuse == "" && !t.May:
		return err
	case err == nil && t.Refuse != "":
		return fmt.Errorf("read in spite of %s", t.Refuse)
	}
	return nil
}

var (
	pointed = regexp.MustCompile(`^[1-9]\d{0,2}\.\d{3}$`)
	comma   = regexp.MustCompile(`^[1-9]\d{0,2},\d{3}$`)
)

type drawer struct {
	*rand.Rand
	t         *Table
	columns   []Column
	separator byte
	commas    bool // decimal commas are usual in the file
	quotes    int  // 0: where they must be, 1: everywhere, 2: at times
	seen      map[string]bool

	points, doubtfulPoints, decimals, doubtfulCommas bool // marks that numbers of the file have
}

// note notes the mark of a number.
func (d *drawer) note(cell string) {
	switch {
	case pointed.MatchString(cell):
		d.doubtfulPoints = true
	case comma.MatchString(cell):
		d.doubtfulCommas = true
	default:
		d.points = d.points || strings.Contains(cell, ".")
		d.decimals = d.decimals || strings.Contains(cell, ",")
	}
}

func (d *drawer) chance(oneIn int) bool { return d.IntN(oneIn) == 0 }

// Draw draws a table with as many rows. The first column's texts are unique.
func Draw(r *rand.Rand, columns []Column, rows int) *Table {
	d := &drawer{
		Rand: r, columns: columns, separator: ",;\t|"[r.IntN(4)], quotes: r.IntN(3), seen: map[string]bool{},
		t: &Table{Map: map[string]string{}},
	}
	d.commas = d.separator != ',' && d.chance(2)
	names := make([]Name, len(columns))
	order := make([]int, len(columns))
	header := make([]string, len(columns))
	for c := range columns {
		names[c], order[c] = columns[c].Names[d.IntN(len(columns[c].Names))], c
		if header[c] = names[c].Text; names[c].Mapped {
			d.t.Map[names[c].Text] = columns[c].Target
			if names[c].Unit != "" {
				d.t.Map[names[c].Text] = columns[c].Target + "[" + names[c].Unit + "]"
			}
		}
	}
	d.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	extras := d.extras()
	head := make([]string, 0, len(columns)+len(extras))
	for _, c := range order {
		head = append(head, header[c])
	}
	head = append(head, extras...)
	if d.chance(40) {
		d.t.Refuse = "a column twice"
		head = append(head, head[d.IntN(len(order))])
		extras = append(extras, "")
	}
	lines := d.lines(names, order, head, len(extras), rows)
	d.encode(lines)
	return d.t
}

// extras are columns that no reader knows.
func (d *drawer) extras() []string {
	if !d.chance(4) {
		return nil
	}
	all := []string{"Bemerkung", "foo bar", "a,b;c", "Größe", "x|y", "μ-Wert", "Kostenstelle"}
	d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if d.t.Ignore = d.chance(2); !d.t.Ignore {
		d.t.Refuse = "unknown columns"
	}
	return all[:1+d.IntN(3)]
}

func (d *drawer) lines(names []Name, order []int, head []string, extras, rows int) []string {
	var lines []string
	stated := d.chance(4)
	if stated {
		line := "sep=" + string(d.separator)
		if d.chance(2) {
			line = `"` + line + `"`
		}
		lines = append(lines, line)
	}
	if len(d.t.Map) == 0 && d.t.Refuse == "" && d.chance(8) {
		d.t.Header, d.t.May = head, !stated
		for i := len(head) - extras; i < len(head); i++ {
			d.t.Header[i] = "-"
		}
		d.t.Ignore = false
	} else {
		lines = append(lines, d.row(head))
	}
	for range rows {
		values, texts := make([]float64, len(d.columns)), make([]string, len(d.columns))
		cells := make([]string, 0, len(head))
		for _, c := range order {
			var cell string
			if d.columns[c].Texts != nil {
				texts[c] = d.text(c)
				cell = texts[c]
			} else {
				cell, values[c] = d.number(&d.columns[c], names[c].Factor)
				d.note(cell)
			}
			cells = append(cells, cell)
		}
		for range extras {
			cells = append(cells, []string{"", "1,5", "x;y", `"`, "ü", "3 %"}[d.IntN(6)])
		}
		d.t.Values, d.t.Texts = append(d.t.Values, values), append(d.t.Texts, texts)
		lines = append(lines, d.row(cells))
		if d.chance(10) {
			lines = append(lines, []string{"", "  "}[d.IntN(2)])
		}
	}
	twoKinds := d.doubtfulPoints && (d.decimals || d.doubtfulCommas) || d.doubtfulCommas && d.points
	if d.separator != ',' && twoKinds {
		d.t.Refuse = "numbers of two kinds"
	}
	return lines
}

func (d *drawer) text(c int) string {
	for try := 0; ; try++ {
		text := d.columns[c].Texts[d.IntN(len(d.columns[c].Texts))]
		if c == 0 {
			text += strconv.Itoa(d.IntN(1_000_000))
		}
		if c > 0 || !d.seen[text] {
			d.seen[text] = true
			return text
		}
	}
}

// number draws a number, as it is written and as it is meant.
func (d *drawer) number(c *Column, factor float64) (cell string, value float64) {
	thousandths := 1 + d.Int64N(c.Most)
	if d.chance(2) || c.Whole {
		thousandths = max(1000, thousandths/1000*1000)
	}
	whole, fraction := strconv.FormatInt(thousandths/1000, 10), ""
	if rest := thousandths % 1000; rest > 0 {
		fraction = strconv.FormatInt(1000+rest, 10)[1:]
		if d.chance(2) {
			fraction = strings.TrimRight(fraction, "0")
		}
	}
	meant := func(denominator int64) float64 {
		exact := big.NewRat(thousandths, denominator)
		value, _ := exact.Mul(exact, new(big.Rat).SetFloat64(factor)).Float64()
		return value
	}
	mark := "."
	if d.commas != d.chance(200) && d.separator != ',' {
		mark = ","
	}
	if n := len(whole); n > 3 && n < 7 && !c.Whole && d.chance(100) {
		group := []string{" ", "'", "\u202f", "."}[d.IntN(4)]
		whole = whole[:n-3] + group + whole[n-3:]
		if group == "." && fraction == "" {
			return whole, meant(1000 * 1000) // alone, a point is a decimal point
		}
		d.t.Refuse, mark = "marks between thousands", ","
	}
	if d.separator == ',' && d.chance(300) && fraction != "" {
		d.t.Refuse, mark = "a decimal comma between commas", ","
	}
	if fraction != "" {
		whole += mark + fraction
	}
	return whole, meant(1000)
}

// row writes cells as a line.
func (d *drawer) row(cells []string) string {
	out := make([]string, len(cells))
	for i, cell := range cells {
		quote := d.quotes == 1 || d.quotes == 2 && d.chance(2) || strings.ContainsAny(cell, ",;\t|\"\n")
		if quote {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		if d.chance(6) && d.separator != '\t' {
			cell = " " + cell + "  "
		}
		out[i] = cell
	}
	return strings.Join(out, string(d.separator))
}

// encode writes lines in a drawn encoding and with drawn line ends.
func (d *drawer) encode(lines []string) {
	end := []string{"\n", "\r\n", "\r"}[d.IntN(3)]
	text := strings.Join(lines, end)
	if d.chance(2) {
		text += end
	}
	d.t.Text = text
	first := []rune(text)
	small := len(first) > 1 && first[0] < 0x100 && first[1] < 0x100
	switch d.IntN(7) {
	case 0, 1:
		d.t.Bytes = []byte(text)
	case 2:
		d.t.Bytes = []byte("\ufeff" + text)
	case 3, 4:
		mark := ""
		if d.chance(2) || !small {
			mark = "\ufeff"
		}
		big := d.chance(2)
		for _, unit := range utf16.Encode([]rune(mark + text)) {
			bytes := []byte{byte(unit), byte(unit >> 8)}
			if big {
				slices.Reverse(bytes)
			}
			d.t.Bytes = append(d.t.Bytes, bytes...)
		}
	case 5: // Windows-1252, of which Latin-1 is a part
		for _, r := range text {
			if r > 0xff {
				r = '?'
			}
			if r >= 0x80 {
				d.t.Refuse = "no UTF-8"
			}
			d.t.Bytes = append(d.t.Bytes, byte(r))
		}
		if d.t.Refuse == "" && strings.ContainsFunc(text, func(r rune) bool { return r > 0xff }) {
			d.t.Bytes = []byte(text)
		}
	default:
		d.t.Bytes = []byte(text)
	}
}
