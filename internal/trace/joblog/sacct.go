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
// and Start or ElapsedRaw at least. The delimiter is what stands behind the
// header's first word. Steps are folded into the job before them.
//
// Neither form of text marks a delimiter or a newline in a job's name. A line
// with too many columns is taken if there is one way only to read it, and a name
// over several lines if its record goes on within [maxTorn] bytes; what lies
// between is never taken for jobs, since the name's owner may have made it up.
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

	job *record.Past // whose steps may follow
	at  int          // its line
	id  string       // under which they come; of a job that was left out, too
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
	if long {
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
	case bytes.HasPrefix(line, []byte("JobID")) && s.begin(number, line) == nil: // of another export
		return nil
	}
	more, want := bytes.Count(line, s.delimiter), len(s.columns)-1
	switch {
	case more == want:
		return s.take(number, s.row(strings.Split(string(line), string(s.delimiter))))
	case more > want:
		return s.excess(number, line, more-want)
	}
	return s.torn(number, line, want-more)
}

// begin reads a header.
func (s *sacctReader) begin(number int, line []byte) error {
	word := bytes.IndexFunc(line, notLetter)
	if word < 0 {
		word = len(line)
	}
	width := bytes.IndexFunc(line[word:], unicode.IsLetter)
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s", s.tally.name, number, fmt.Sprintf(format, args...))
	}
	if word == 0 || width <= 0 {
		return fail("want a header such as JobID|User|State|Submit|Start|End, got %s", printable(string(line)))
	}
	delimiter := slices.Clone(line[word : word+width])
	if len(bytes.TrimSpace(delimiter)) == 0 && !bytes.Equal(delimiter, []byte{'\t'}) {
		return fail("columns are separated by space, want what sacct --parsable2 prints")
	}
	c, err := newColumns(strings.Split(string(line), string(delimiter)))
	if err != nil {
		return fail("%v", err)
	}
	s.columns, s.delimiter, s.header = c, delimiter, slices.Clone(line)
	return nil
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

// excess reads a line with delimiters in a free text, if there is one way only.
func (s *sacctReader) excess(number int, line []byte, more int) error {
	cells := strings.Split(string(line), string(s.delimiter))
	var found *row
	ways := 0
	for i, c := range s.columns {
		if !c.free() {
			continue
		}
		joined := strings.Join(cells[i:i+more+1], string(s.delimiter))
		if r := s.row(slices.Concat(cells[:i], []string{joined}, cells[i+more+1:])); r.err == nil {
			found = r
			ways++
		}
	}
	if ways != 1 {
		return s.leave(number, "", excess, fmt.Errorf("%d columns, want %d, and %d ways to read it", len(cells), len(s.columns), ways))
	}
	s.tally.note(number, mendedText, fmt.Errorf("job %s", refText(&found.ref)))
	return s.take(number, found)
}

// How far on a record may go whose text has newlines. Slurm takes names and
// comments of up to 1,024 bytes.
const (
	maxTorn      = 4096 // bytes
	maxTornLines = 1100
	maxTries     = 64 // of ways to go on
)

// torn reads a record that goes on in further lines, or leaves its line out.
func (s *sacctReader) torn(number int, line []byte, missing int) error {
	cells := strings.Split(string(line), string(s.delimiter))
	tries := maxTries
	if r, lines := s.mend(cells, missing, 0, &tries); r != nil {
		return s.mended(number, lines, r)
	}
	return s.leave(number, "", truncated, fmt.Errorf("%d columns, want %d", len(cells), len(s.columns)))
}

// mend looks in the lines from the n-th after the one in hand for the rest of a
// record of which there are some cells, the last one perhaps in part. It is nil
// if the record doesn't go on; else it ends after so many lines.
func (s *sacctReader) mend(cells []string, missing, n int, tries *int) (r *row, lines int) {
	at := len(cells) - 1
	if !s.columns[at].free() {
		return nil, 0
	}
	var name strings.Builder
	name.WriteString(cells[at])
	for ; n < maxTornLines; n++ {
		rest, ok := s.peek(n)
		if !ok || name.Len()+len(rest) > maxTorn {
			return nil, 0
		}
		if more := bytes.Count(rest, s.delimiter); more == missing || more > 0 && more < missing && s.columns[at+more].free() {
			if *tries--; *tries < 0 {
				return nil, 0
			}
			tail := strings.Split(string(rest), string(s.delimiter))
			joined := slices.Concat(cells[:at], []string{name.String() + "\n" + tail[0]}, tail[1:])
			if more < missing {
				if r, lines = s.mend(joined, missing-more, n+1, tries); r != nil {
					return r, lines
				}
			} else if r = s.row(joined); r.err == nil {
				return r, n + 1
			}
		}
		name.WriteByte('\n')
		name.Write(rest)
	}
	return nil, 0
}

// mended takes a record of several lines.
func (s *sacctReader) mended(number, lines int, r *row) error {
	s.ahead = s.ahead[lines:]
	s.number += lines
	s.tally.Lines += int64(lines)
	s.tally.note(number, mendedText, fmt.Errorf("job %s, on %d lines", refText(&r.ref), lines+1))
	return s.take(number, r)
}

// peek is the n-th line after the one in hand, from 0, if it is text.
func (s *sacctReader) peek(n int) ([]byte, bool) {
	for len(s.ahead) <= n {
		line, long, err := s.in.next()
		if err != nil {
			return nil, false
		}
		s.ahead = append(s.ahead, read{slices.Clone(line), long})
	}
	next := s.ahead[n]
	return next.line, !next.long && text(next.line) == nil
}

// leave leaves a line out, and the steps that may follow it.
func (s *sacctReader) leave(number int, id, kind string, err error) error {
	if err := s.flush(); err != nil {
		return err
	}
	s.id = id
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
