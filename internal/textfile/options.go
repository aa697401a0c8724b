package textfile

import (
	"fmt"
	"strings"
)

// Options say what a caller knows of a table's columns.
type Options struct {
	// Columns are the reader's columns by the file's names for them; COLUMN[UNIT] says in what
	// the numbers are.
	Columns map[string]string
	// Header is one that the file lacks; [Unused] is a column without a use.
	Header []string
	// Ignore has columns passed over that the reader doesn't know.
	Ignore bool
}

// UnusedColumn stands for a column without a use in a header that the caller gives.
const UnusedColumn = "-"

// AddMapping adds COLUMN=NAME, or COLUMN[UNIT]=NAME; check says what is wrong with a column. NAME=COLUMN
// does, too, if only COLUMN is one.
func (o *Options) AddMapping(text string, check func(target string) error) error {
	target, name, ok := strings.Cut(text, "=")
	target, name = strings.TrimSpace(target), strings.TrimSpace(name)
	if !ok || target == "" || name == "" {
		return fmt.Errorf("%q, want COLUMN=NAME, such as runtime_s=Seconds", text)
	}
	if err := check(target); err != nil {
		if check(name) != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		target, name = name, target
	}
	column, _ := SplitTarget(target)
	for other, taken := range o.Columns {
		if taken, _ := SplitTarget(taken); taken == column || Fold(other) == Fold(name) {
			return fmt.Errorf("%q: %s or %s is mapped already, want each once", text, column, name)
		}
	}
	if o.Columns == nil {
		o.Columns = make(map[string]string)
	}
	o.Columns[name] = target
	return nil
}

// PassedOverError is a warning that names the columns that were passed over.
type PassedOverError struct {
	Pos   Position // of the first
	names []string
	known map[string]bool
}

// Add adds a name, once.
func (p *PassedOverError) Add(name string) {
	if p.known == nil {
		p.known = make(map[string]bool)
	}
	if !p.known[name] {
		p.known[name] = true
		p.names = append(p.names, Quoted(name))
	}
}

// Error names the columns.
func (p *PassedOverError) Error() string {
	const most = 20
	names, rest := p.names, ""
	if len(names) > most {
		names, rest = names[:most], ", …"
	}
	return p.Pos.String() + ": unknown columns passed over: " + strings.Join(names, ", ") + rest
}
