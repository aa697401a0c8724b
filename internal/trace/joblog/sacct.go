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
// delimiter of [secret] bytes or more is taken for one that was drawn at random
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
	s := &sacctReader{tally: t, sink: newSink(t, o, visit), in: in, zone: o.Zone}
	if s.zone == nil {
		s.zone = time.UTC
	}
	for {
		line, long, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			if s.columns == nil {
				return t, fmt.Errorf("%s: is empty, want what sacct --parsable2 prints, with its header", name)
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
	sink  *sink
	in    *lineReader
	zone  *time.Location

	number int    // of the line in hand
	ahead  []read // lines that were looked at already

	columns   columns
	delimiter []byte
	header    []byte
	whole     bool // the line before was a whole one: this one begins a record

	job *record.HistoryJob // whose steps may follow
	at  int                // its line
	id  string             // under which they come; of a job that was left out, too
	use slurm.StepUse
}

// read is a line that was read.
type read struct {
	line []byte
	long bool
}

// next is the next line, until io.EOF; it holds until the one after it is read.
func (s *sacctReader) next() ([]byte, bool, error) {
	s.number++
	if len(s.ahead) > 0 {
		first := s.ahead[0]
		s.ahead = s.ahead[1:]
		return first.line, first.long, nil
	}
	line, long, err := s.in.next()
	s.number = s.in.number
	return line, long, err
}

func (s *sacctReader) line(number int, line []byte, long bool) error {
	switch {
	case long && s.columns == nil:
		return fmt.Errorf("%s:%d: a line of more than %d bytes, want a header with JobID or JobIDRaw", s.tally.name, number, maxLine)
	case long:
		return s.tally.skip(number, tooLong, fmt.Errorf("more than %d bytes", maxLine))
	}
	if err := text(line); err != nil {
		if s.columns == nil {
			return fmt.Errorf("%s:%d: %w that sacct printed", s.tally.name, number, err)
		}
		return s.tally.skip(number, notText, err)
	}
	switch {
	case s.columns == nil:
		return s.begin(number, line)
	case len(line) == 0, bytes.Equal(line, s.header):
		return nil
	case s.whole && bytes.HasPrefix(line, []byte("JobID")) && s.begin(number, line) == nil: // of another export
		return nil
	}
	more, want := bytes.Count(line, s.delimiter), len(s.columns)-1
	switch {
	case more == want:
		return s.complete(number, line)
	case s.drawn():
		return s.join(number, line, want-more)
	case more > want:
		return s.excess(number, line, more-want)
	}
	return s.torn(number, line, want-more)
}

// drawn tells whether the delimiter is one that no name can have.
func (s *sacctReader) drawn() bool { return len(s.delimiter) >= secret }

// secret is the length from which on a delimiter is one that was drawn at
// random, bytes.
const secret = 8

// complete reads a line with all columns.
func (s *sacctReader) complete(number int, line []byte) error {
	cells := strings.Split(string(line), string(s.delimiter))
	r := s.row(cells)
	if r.err != nil && r.kind == badID && !s.drawn() {
		return s.leaveWithRest(number, cells, r.kind, r.err)
	}
	s.whole = !s.drawn() || !s.columns[len(s.columns)-1].free()
	return s.take(number, r)
}

// begin reads a header.
func (s *sacctReader) begin(number int, line []byte) error {
	delimiter, c, err := columnsOf(line)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", s.tally.name, number, err)
	}
	s.columns, s.delimiter, s.header = c, delimiter, slices.Clone(line)
	return nil
}

// columnsOf are a header's columns, and what separates them.
func columnsOf(line []byte) (delimiter []byte, c columns, err error) {
	word := bytes.IndexFunc(line, notLetter)
	if word < 0 {
		word = len(line)
	}
	width := bytes.IndexFunc(line[word:], unicode.IsLetter)
	if word == 0 || width <= 0 {
		return nil, nil, fmt.Errorf("want a header such as JobID|User|State|Submit|Start|End, got %s", printable(string(line)))
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

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

// leave leaves a line out, and the steps that may follow it.
func (s *sacctReader) leave(number int, id, kind string, err error) error {
	if err := s.flush(); err != nil {
		return err
	}
	s.id, s.whole = id, false
	return s.tally.skip(number, kind, err)
}

// take takes a job or a step that was read from a line.
func (s *sacctReader) take(number int, r *row) error {
	id := refText(&r.ref)
	switch {
	case r.err != nil && r.ref.Step == "":
		return s.leave(number, id, r.kind, r.err)
	case r.err != nil:
		return s.tally.skip(number, r.kind, r.err)
	case r.ref.Step == "":
		if err := s.flush(); err != nil {
			return err
		}
		s.id = id
		return s.began(number, r)
	case id != s.id:
		return s.tally.skip(number, orphan, fmt.Errorf("step %s of job %s, which isn't before it", r.ref.Step, id))
	}
	s.tally.Steps++
	s.use.Add(r.ref.Step, r.past.EnergyJ.Or(0), r.elapsed.Seconds(), r.usage)
	return nil
}

// began holds a job until its steps have come.
func (s *sacctReader) began(number int, r *row) error {
	p := &r.past
	if state := slurm.State(p.State); !over(state) {
		return s.tally.unfinished(number, state)
	}
	if slices.Contains(s.columns, limitColumn) || slices.Contains(s.columns, rawLimitColumn) {
		p.Limit = s.tally.limit(number, p.JobID, r.limit)
	}
	if p.Submitted.IsZero() {
		s.tally.noSubmit(number, p, r.eligible)
	}
	s.job, s.at = p, number
	return nil
}

// flush hands the job over whose steps have come.
func (s *sacctReader) flush() error {
	p := s.job
	use := s.use
	s.job, s.id, s.use = nil, "", slurm.StepUse{}
	if p == nil {
		return nil
	}
	if _, known := p.EnergyJ.Get(); !known {
		p.EnergyJ = measured(use.Energy())
	}
	p.Utilisation = share(use.Utilisation())
	return s.sink.add(p, s.at)
}
