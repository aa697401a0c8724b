package textfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/epplan/epplan/spelling"
)

// Column is a column that a reader of tables knows.
type Column struct {
	// Name is the one that messages use. Numbers under it are in the quantity's own unit.
	Name string
	// Further are more names as they are documented, with what a number under them is
	// multiplied by.
	Further  map[string]float64
	Quantity Quantity
	// Aliases are names as people write them, folded and without a unit, which may follow.
	Aliases []string
	// Bare says that numbers under an alias without a unit are in the quantity's own.
	Bare bool
	// Ask are aliases that may mean something else, and want a unit.
	Ask      []string
	Required bool
}

// Found is where a table has a column.
type Found struct {
	At     int     // -1: nowhere
	Factor float64 // what its numbers are multiplied by
}

// Arrange finds the columns that a reader knows, under their own names, under names as
// people write them, with units, and under those that a user gave them. Columns that are
// unknown are an error that names all of them, or are passed over and returned. Two
// columns that mean the same are an error.
func (t *Table) Arrange(columns []Column, o *Options) (found []Found, passed *PassedOverError, err error) {
	if o == nil {
		o = &Options{}
	}
	a := &arrangement{
		table: t, columns: columns, options: o, mapped: map[string]bool{}, found: make([]Found, len(columns)),
	}
	for i := range a.found {
		a.found[i].At = -1
	}
	for i, name := range t.Header {
		if name == "" || name == UnusedColumn && len(o.Header) > 0 {
			continue
		}
		if err := a.placeColumn(i, name); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Columns)) {
		if !a.mapped[Fold(name)] {
			return nil, nil, a.fault(-1, "nothing is called "+Quoted(name)+", which is to be "+o.Columns[name],
				"a name that the file has")
		}
	}
	if len(a.unknown) > 0 {
		if !o.Ignore {
			return nil, nil, a.unknownColumns()
		}
		passed = &PassedOverError{Pos: t.CellAt(a.unknown[0])}
		for _, i := range a.unknown {
			passed.Add(t.Header[i])
		}
	}
	for c := range columns {
		if columns[c].Required && a.found[c].At < 0 {
			return nil, nil, a.fault(-1, "no column "+columns[c].Name, a.names())
		}
	}
	return a.found, passed, nil
}

type arrangement struct {
	table   *Table
	columns []Column
	options *Options
	mapped  map[string]bool // names that a user gave columns, and that the table has
	found   []Found
	unknown []int
}

func (a *arrangement) fault(cell int, msg, want string) error {
	return &SyntaxError{Pos: a.table.CellAt(max(cell, 0)), Msg: msg, Want: want}
}

// placeColumn finds the column of a name of the header.
func (a *arrangement) placeColumn(i int, name string) error {
	c, factor, msg, want := a.findGiven(name)
	if c < 0 && msg == "" {
		c, factor, msg, want = a.byName(name)
	}
	switch {
	case msg != "":
		return a.fault(i, msg, want)
	case c < 0:
		a.unknown = append(a.unknown, i)
		return nil
	case a.found[c].At >= 0:
		return a.fault(i, "columns "+Quoted(a.table.Header[a.found[c].At])+" and "+Quoted(name)+" are both "+
			a.columns[c].Name, "one of them")
	}
	a.found[c] = Found{i, factor}
	return nil
}

// findGiven finds the column for which a user said that a name stands; -1: there is none.
func (a *arrangement) findGiven(name string) (c int, factor float64, msg, want string) {
	for own, target := range a.options.Columns {
		if Fold(own) != Fold(name) {
			continue
		}
		a.mapped[Fold(own)] = true
		column, unit := SplitTarget(target)
		c, factor = a.findDocumented(column)
		if c < 0 {
			return c, 0, "there is no column " + Quoted(column) + " for " + Quoted(name), a.names()
		}
		q := a.columns[c].Quantity
		stated, ok, doubt := q.StatedUnit(name)
		switch said, known := q.InUnit(unit); {
		case unit == "" && doubt != "":
			return c, 0, doubt, "the unit stated as " + column + "[UNIT]: " + q.Units()
		case unit == "" && ok:
			return c, stated, "", ""
		case unit == "":
			return c, factor, "", ""
		case !known:
			return c, 0, "column " + column + " can't be in " + Quoted(unit), q.Units()
		case ok && stated != said:
			return c, 0, Quoted(name) + " is said to be in " + unit + ", and its name says another unit", "one of both"
		default:
			return c, said, "", ""
		}
	}
	return -1, 0, "", ""
}

// findDocumented finds a column by the names that are documented.
func (a *arrangement) findDocumented(name string) (c int, factor float64) {
	folded := Fold(name)
	for c := range a.columns {
		if folded == Fold(a.columns[c].Name) {
			return c, 1
		}
		for further, factor := range a.columns[c].Further {
			if folded == Fold(further) {
				return c, factor
			}
		}
	}
	return -1, 0
}

// byName finds a column by its name in the file; -1: there is none.
func (a *arrangement) byName(name string) (c int, factor float64, msg, want string) {
	if c, factor = a.findDocumented(name); c >= 0 {
		return c, factor, "", ""
	}
	if c = a.findAlias(Fold(name)); c >= 0 {
		k := &a.columns[c]
		if k.Quantity != NoQuantity && (!k.Bare || slices.Contains(k.Ask, Fold(name))) {
			return c, 0, Quoted(name) + " has no unit", "one in its name: " + k.Quantity.Units()
		}
		return c, 1, "", ""
	}
	wrong := ""
	for _, split := range UnitSplits(name) {
		if c = a.findAlias(split.Rest); c >= 0 && a.columns[c].Quantity != NoQuantity {
			k := &a.columns[c]
			if factor, ok := k.Quantity.InUnit(split.Unit); ok {
				return c, factor, "", ""
			}
			if split.Brackets && !isUnit(split.Unit) {
				wrong = k.Quantity.Units()
			}
		}
	}
	if wrong != "" && !a.options.Ignore {
		return -1, 0, Quoted(name) + " has a unit that isn't known", wrong
	}
	return -1, 0, "", ""
}

// findAlias returns the column with an alias; -1: there is none.
func (a *arrangement) findAlias(folded string) int {
	return slices.IndexFunc(a.columns, func(k Column) bool {
		return slices.Contains(k.Aliases, folded) || slices.Contains(k.Ask, folded)
	})
}

// names lists the columns' names, for messages.
func (a *arrangement) names() string {
	names, further := make([]string, len(a.columns)), make([]string, 0, len(a.columns))
	for c := range a.columns {
		names[c] = a.columns[c].Name
		further = append(further, slices.Sorted(maps.Keys(a.columns[c].Further))...)
	}
	text := strings.Join(names, ", ")
	if len(further) > 0 {
		text += " (or " + strings.Join(further, ", ") + ")"
	}
	return text
}

// unknownColumns names all columns that aren't known.
func (a *arrangement) unknownColumns() error {
	var known []string
	for c := range a.columns {
		known = append(append(known, a.columns[c].Name), a.columns[c].Aliases...)
	}
	names := make([]string, len(a.unknown))
	for k, i := range a.unknown {
		names[k] = Quoted(a.table.Header[i])
		if near := spelling.Nearest(a.table.Header[i], known); near != "" {
			names[k] += " (did you mean " + near + "?)"
		}
	}
	msg := "unknown column " + names[0]
	if len(names) > 1 {
		msg = "unknown columns " + strings.Join(names, ", ")
	}
	return a.fault(a.unknown[0], msg, a.names())
}

// CheckTarget says what is wrong with a column that a name of a file is to stand for:
// COLUMN, or COLUMN[UNIT] where the name doesn't say in what its numbers are.
func CheckTarget(columns []Column, target string) error {
	a := &arrangement{columns: columns}
	column, unit := SplitTarget(target)
	c, _ := a.findDocumented(column)
	if c < 0 {
		return fmt.Errorf("there is no column %s, want one of %s", Printable(column), a.names())
	}
	return columns[c].Quantity.CheckUnit(column, unit)
}

// CheckUnit says what is wrong with a unit of a column; "" is none.
func (q Quantity) CheckUnit(column, unit string) error {
	switch _, ok := q.InUnit(unit); {
	case unit == "" || ok:
		return nil
	case q == NoQuantity:
		return fmt.Errorf("column %s has no unit, want %s alone", column, column)
	default:
		return fmt.Errorf("column %s can't be in %s, want %s", column, Quoted(unit), q.Units())
	}
}
