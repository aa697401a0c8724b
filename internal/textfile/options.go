package textfile

import "strings"

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

// Unused stands for a column without a use in a header that the caller gives.
const Unused = "-"

// PassedOver is a warning that names the columns that were passed over.
type PassedOver struct {
	Pos   Position // of the first
	names []string
	known map[string]bool
}

// Add adds a name, once.
func (p *PassedOver) Add(name string) {
	if p.known == nil {
		p.known = make(map[string]bool)
	}
	if !p.known[name] {
		p.known[name] = true
		p.names = append(p.names, Quoted(name))
	}
}

// Error names the columns.
func (p *PassedOver) Error() string {
	const most = 20
	names, rest := p.names, ""
	if len(names) > most {
		names, rest = names[:most], ", …"
	}
	return p.Pos.String() + ": passed over, as nothing is called so: " + strings.Join(names, ", ") + rest
}
