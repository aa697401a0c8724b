package joblog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/epplan/epplan/slurm"
)

// ReadSacct reads what sacct prints with --parsable2, --parsable or --json.
// Text has a header, with columns in any order: JobID or JobIDRaw, State, End,
// and Start or ElapsedRaw at least. The delimiter is what stands between the
// header's columns. Steps are folded into the job before them.
//
// Neither form of text marks a delimiter or a newline in a job's name. A
// delimiter of [randomDelimiterLength] bytes or more is taken for one that was drawn at random
// for this log: no name has it, so that a record is as many lines as it takes to
// have all columns, and no name forges anything. With any other one a line with
// too many columns is taken if there is one way only to read it, and a name over
// several lines if its record goes on within [maxTorn] bytes; lines that may
// belong to a name are left out, but a name can be made that nothing tells from
// records.
func ReadSacct(r io.Reader, name string, o *Options, visit Visit) (*Tally, error) {
	in := newLineReader(r)
	if first := skipSpace(in); first == '{' {
		return readJSON(in.in, name, o, visit)
	}
	t := newTally(name, o)
	s := &sacctReader{tally: t, sink: newJobSink(t, o, visit), in: in, zone: o.Zone}
	if s.zone == nil {
		s.zone = time.UTC
	}
	if o.Columns != nil {
		var err error
		if s.columns, err = newColumns(o.Columns); err != nil {
			return t, fmt.Errorf("the columns given: %w", err)
		}
	}
	for {
		line, long, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			if s.delimiter == nil {
				return t, fmt.Errorf("%s: is empty, want what sacct --parsable2 prints, with its header",
					name)
			}
			return t, s.flush()
		case err != nil:
			return t, readError(name, in.number, err)
		}
		t.Lines++
		if err := s.line(s.number, line, long); err != nil {
			return t, err
		}
	}
}

// skipSpace passes over space that JSON may begin with, and tells what follows;
// 0 at the end.
func skipSpace(in *lineReader) byte {
	for {
		next, err := in.in.Peek(1)
		switch {
		case err != nil:
			return 0
		case bytes.IndexByte([]byte(" \t\r\n"), next[0]) < 0:
			return next[0]
		case next[0] == '\n':
			in.number++
		}
		_, _ = in.in.Discard(1) // it was there
	}
}

// sacctReader reads the text form.
type sacctReader struct {
	tally *Tally
	sink  *jobSink
	in    *lineReader
	zone  *time.Location

	number    int        // of the line in hand
	lookahead []readLine // lines that were looked at already

	columns    slurm.AccountingHeader
	delimiter  []byte
	header     []byte
	afterWhole bool // the line before was a whole one: this one begins a record

	job     *slurm.AccountingRow // whose steps may follow
	jobLine int                  // its line
	id      string               // under which they come; of a job that was left out, too
}

type readLine struct {
	line []byte
	long bool
}

// next returns the next line, until io.EOF; it holds until the one after it is read.
func (s *sacctReader) next() ([]byte, bool, error) {
	s.number++
	if len(s.lookahead) > 0 {
		first := s.lookahead[0]
		s.lookahead = s.lookahead[1:]
		return first.line, first.long, nil
	}
	line, long, err := s.in.next()
	s.number = s.in.number
	return line, long, err
}

func (s *sacctReader) line(number int, line []byte, long bool) error {
	switch {
	case long && s.delimiter == nil:
		return fmt.Errorf("%s:%d: a line of more than %d bytes, want a header with JobID or JobIDRaw",
			s.tally.name, number, maxLine)
	case long:
		return s.tally.skipLine(number, kindTooLong, fmt.Errorf("more than %d bytes", maxLine))
	}
	if err := checkText(line); err != nil {
		if s.delimiter == nil {
			return fmt.Errorf("%s:%d: %w that sacct printed", s.tally.name, number, err)
		}
		return s.tally.skipLine(number, kindNotText, err)
	}
	switch {
	case s.delimiter == nil && s.columns.Len() > 0:
		if err := s.startWithoutHeader(number, line); err != nil {
			return err
		}
	case s.delimiter == nil:
		return s.readHeader(number, line)
	case len(line) == 0, bytes.Equal(line, s.header):
		return nil
	// Of another export.
	case s.afterWhole && bytes.HasPrefix(line, []byte("JobID")) && s.readHeader(number, line) == nil:
		return nil
	}
	more, want := bytes.Count(line, s.delimiter), s.columns.Len()-1
	switch {
	case more == want:
		return s.readComplete(number, line)
	case s.isRandomDelimiter():
		return s.joinLines(number, line, want-more)
	case more > want:
		return s.readExcess(number, line, more-want)
	}
	return s.readTorn(number, line, want-more)
}

// isRandomDelimiter reports whether the delimiter is one that no name can have.
func (s *sacctReader) isRandomDelimiter() bool { return len(s.delimiter) >= randomDelimiterLength }

// randomDelimiterLength is the length from which on a delimiter is one that was drawn at
// random, bytes.
const randomDelimiterLength = 8

// readComplete reads a line with all columns.
func (s *sacctReader) readComplete(number int, line []byte) error {
	cells := strings.Split(string(line), string(s.delimiter))
	r, err := s.columns.Row(cells, s.zone)
	wrong, ok := errors.AsType[*slurm.CellError](err)
	if ok && wrong.Kind == slurm.CellID && !s.isRandomDelimiter() {
		return s.skipTornLines(number, cells, string(wrong.Kind), err)
	}
	s.afterWhole = !s.isRandomDelimiter() || !s.endsInText()
	return s.addRow(number, r, err)
}

func (s *sacctReader) readHeader(number int, line []byte) error {
	delimiter, c, err := columnsOf(line)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", s.tally.name, number, err)
	}
	s.columns, s.delimiter, s.header = c, delimiter, slices.Clone(line)
	for _, name := range c.Foreign() {
		s.tally.noteLine(number, kindForeign, errors.New(printable(name)))
	}
	return nil
}

// startWithoutHeader finds what separates the cells of a log whose columns were given, by its first line.
func (s *sacctReader) startWithoutHeader(number int, line []byte) error {
	if _, _, err := columnsOf(line); err == nil {
		return fmt.Errorf("%s:%d: is a header of its own, want a log without one, or no columns given",
			s.tally.name, number)
	}
	want := s.columns.Len() - 1
	for _, delimiter := range []string{"|", "\t", ";", ",", "\x1f"} {
		switch n := bytes.Count(line, []byte(delimiter)); {
		case n == want:
			s.delimiter = []byte(delimiter)
			return nil
		case n == want+1 && bytes.HasSuffix(line, []byte(delimiter)): // as sacct --parsable prints it
			s.delimiter = []byte(delimiter)
			var err error
			s.columns, err = newColumns(append(s.columns.Names(), ""))
			return err
		}
	}
	return fmt.Errorf("%s:%d: want the %d columns given, separated by |, as sacct --parsable2 prints them",
		s.tally.name, number, want+1)
}

// columnsOf returns a header's columns, and what separates them.
func columnsOf(line []byte) (delimiter []byte, c slurm.AccountingHeader, err error) {
	word := bytes.IndexFunc(line, isNotLetter)
	if word < 0 {
		word = len(line)
	}
	width := bytes.IndexFunc(line[word:], unicode.IsLetter)
	if word == 0 || width <= 0 {
		return nil, c, fmt.Errorf("want a header such as JobID|User|State|Submit|Start|End, or its columns by "+
			"epplan import sacct --columns, got %s", printable(string(line)))
	}
	delimiter = slices.Clone(line[word : word+width])
	if len(bytes.TrimSpace(delimiter)) == 0 && !bytes.Equal(delimiter, []byte{'\t'}) {
		return nil, c, errors.New("columns are separated by space, want what sacct --parsable2 prints")
	}
	if c, err = newColumns(strings.Split(string(line), string(delimiter))); err == nil {
		return delimiter, c, nil
	}
	const widest = 64
	for _, first := range []string{"JobIDRaw", "JobID"} { // behind it a delimiter with letters
		rest, ok := bytes.CutPrefix(line, []byte(first))
		for width := min(widest, len(rest)); ok && width > 0; width-- {
			if c, err := newColumns(strings.Split(string(line), string(rest[:width]))); err == nil {
				return slices.Clone(rest[:width]), c, nil
			}
		}
	}
	return nil, c, err
}

// newColumns takes a header whose columns tell when a job ran and how it ended.
func newColumns(names []string) (slurm.AccountingHeader, error) {
	h, err := slurm.NewAccountingHeader(names)
	times := 0
	for _, has := range []bool{h.Has("Start"), h.Has("End"), h.Has("Elapsed", "ElapsedRaw")} {
		if has {
			times++
		}
	}
	switch {
	case err != nil:
		return h, err
	case !h.Has("State"):
		return h, errors.New("no column State")
	case times < 2:
		return h, errors.New("no columns Start and End, nor one of them and ElapsedRaw")
	}
	return h, nil
}

// CheckColumns checks the names of the columns of a log without a header.
func CheckColumns(names []string) error {
	h, err := newColumns(names)
	if err != nil {
		return err
	}
	if foreign := h.Foreign(); len(foreign) > 0 {
		return fmt.Errorf("%s: not one of sacct's columns (sacct --helpformat)", strings.Join(foreign, ", "))
	}
	return nil
}

// endsInText reports whether the last column is one that users write.
func (s *sacctReader) endsInText() bool { return s.columns.IsFreeText(s.columns.Len() - 1) }

func isNotLetter(r rune) bool { return !unicode.IsLetter(r) }

// skipLine leaves a line out, and the steps that may follow it.
func (s *sacctReader) skipLine(number int, id, kind string, err error) error {
	if err := s.flush(); err != nil {
		return err
	}
	s.id, s.afterWhole = id, false
	return s.tally.skipLine(number, kind, err)
}

// addRow takes a job or a step that was read from a line.
func (s *sacctReader) addRow(number int, r *slurm.AccountingRow, err error) error {
	id := refText(&r.Ref)
	kind := kindID
	if wrong, ok := errors.AsType[*slurm.CellError](err); ok {
		kind = string(wrong.Kind)
	}
	switch {
	case err != nil && r.Ref.Step == "":
		return s.skipLine(number, id, kind, err)
	case err != nil:
		return s.tally.skipLine(number, kind, err)
	case r.Ref.Step == "":
		if err := s.flush(); err != nil {
			return err
		}
		s.id = id
		if state := r.State.Base; !isOver(state) {
			settled := r.Record()
			return s.sink.addUnfinished(&settled, number)
		}
		s.job, s.jobLine = r, number
		return nil
	case id != s.id:
		return s.tally.skipLine(number, kindOrphanStep,
			fmt.Errorf("step %s of job %s, which isn't before it", r.Ref.Step, id))
	}
	s.tally.Steps++
	if s.job != nil {
		s.job.AddStep(r)
	}
	return nil
}

// flush hands the job over whose steps have come.
func (s *sacctReader) flush() error {
	r := s.job
	s.job, s.id = nil, ""
	if r == nil {
		return nil
	}
	settled := r.Record()
	return s.sink.add(s.tally.pastOf(s.jobLine, &settled, s.columns.Has("Timelimit", "TimelimitRaw")), s.jobLine)
}
