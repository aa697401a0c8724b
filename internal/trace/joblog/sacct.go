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

	"github.com/epplan/epplan/internal/store/record"
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
	for {
		line, long, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			if s.columns == nil {
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

	columns    sacctColumns
	delimiter  []byte
	header     []byte
	afterWhole bool // the line before was a whole one: this one begins a record

	job     *record.HistoryJob // whose steps may follow
	jobLine int                // its line
	id      string             // under which they come; of a job that was left out, too
	use     slurm.StepUsage
}

type readLine struct {
	line []byte
	long bool
}

// next is the next line, until io.EOF; it holds until the one after it is read.
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
	case long && s.columns == nil:
		return fmt.Errorf("%s:%d: a line of more than %d bytes, want a header with JobID or JobIDRaw",
			s.tally.name, number, maxLine)
	case long:
		return s.tally.skipLine(number, kindTooLong, fmt.Errorf("more than %d bytes", maxLine))
	}
	if err := checkText(line); err != nil {
		if s.columns == nil {
			return fmt.Errorf("%s:%d: %w that sacct printed", s.tally.name, number, err)
		}
		return s.tally.skipLine(number, kindNotText, err)
	}
	switch {
	case s.columns == nil:
		return s.readHeader(number, line)
	case len(line) == 0, bytes.Equal(line, s.header):
		return nil
	// Of another export.
	case s.afterWhole && bytes.HasPrefix(line, []byte("JobID")) && s.readHeader(number, line) == nil:
		return nil
	}
	more, want := bytes.Count(line, s.delimiter), len(s.columns)-1
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
	r := s.parseRow(cells)
	if r.err != nil && r.kind == kindID && !s.isRandomDelimiter() {
		return s.skipTornLines(number, cells, r.kind, r.err)
	}
	s.afterWhole = !s.isRandomDelimiter() || !s.columns[len(s.columns)-1].isFreeText()
	return s.addRow(number, r)
}

func (s *sacctReader) readHeader(number int, line []byte) error {
	delimiter, c, err := columnsOf(line)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", s.tally.name, number, err)
	}
	s.columns, s.delimiter, s.header = c, delimiter, slices.Clone(line)
	return nil
}

// columnsOf are a header's columns, and what separates them.
func columnsOf(line []byte) (delimiter []byte, c sacctColumns, err error) {
	word := bytes.IndexFunc(line, isNotLetter)
	if word < 0 {
		word = len(line)
	}
	width := bytes.IndexFunc(line[word:], unicode.IsLetter)
	if word == 0 || width <= 0 {
		return nil, nil, fmt.Errorf("want a header such as JobID|User|State|Submit|Start|End, got %s",
			printable(string(line)))
	}
	delimiter = slices.Clone(line[word : word+width])
	if len(bytes.TrimSpace(delimiter)) == 0 && !bytes.Equal(delimiter, []byte{'\t'}) {
		return nil, nil, errors.New("columns are separated by space, want what sacct --parsable2 prints")
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
	return nil, nil, err
}

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
func (s *sacctReader) addRow(number int, r *sacctRow) error {
	id := refText(&r.ref)
	switch {
	case r.err != nil && r.ref.Step == "":
		return s.skipLine(number, id, r.kind, r.err)
	case r.err != nil:
		return s.tally.skipLine(number, r.kind, r.err)
	case r.ref.Step == "":
		if err := s.flush(); err != nil {
			return err
		}
		s.id = id
		return s.holdJob(number, r)
	case id != s.id:
		return s.tally.skipLine(number, kindOrphanStep,
			fmt.Errorf("step %s of job %s, which isn't before it", r.ref.Step, id))
	}
	s.tally.Steps++
	s.use.Add(r.ref.Step, r.past.EnergyJ.Or(0), r.elapsed.Seconds(), r.usage)
	return nil
}

// holdJob holds a job until its steps have come.
func (s *sacctReader) holdJob(number int, r *sacctRow) error {
	p := &r.past
	if state := slurm.State(p.State); !isOver(state) {
		return s.tally.countUnfinished(number, state)
	}
	if slices.Contains(s.columns, limitColumn) || slices.Contains(s.columns, rawLimitColumn) {
		p.Limit = s.tally.limitOrNote(number, p.JobID, r.limit)
	}
	if p.Submitted.IsZero() {
		s.tally.fillSubmit(number, p, r.eligible)
	}
	s.job, s.jobLine = p, number
	return nil
}

// flush hands the job over whose steps have come.
func (s *sacctReader) flush() error {
	p := s.job
	use := s.use
	s.job, s.id, s.use = nil, "", slurm.StepUsage{}
	if p == nil {
		return nil
	}
	if _, known := p.EnergyJ.Get(); !known {
		p.EnergyJ = measuredOrUnknown(use.Energy())
	}
	p.Utilisation = roundedShare(use.Utilisation())
	return s.sink.add(p, s.jobLine)
}
