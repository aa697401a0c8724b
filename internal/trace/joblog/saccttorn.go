package joblog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// excess reads a line with delimiters in a free text, if there is one way only.
func (s *sacctReader) excess(number int, line []byte, more int) error {
	cells := strings.Split(string(line), string(s.delimiter))
	found, ways := s.absorb(cells, more)
	if ways != 1 {
		return s.leaveWithRest(number, cells, excess, fmt.Errorf("%d columns, want %d, and %d ways to read it", len(cells), len(s.columns), ways))
	}
	s.whole = true
	s.tally.note(number, mendedText, fmt.Errorf("job %s", refText(&found.ref)))
	return s.take(number, found)
}

// absorb reads cells of which so many are too many, all in one free text; it
// tells in how many ways that makes sense, and the last of them.
func (s *sacctReader) absorb(cells []string, more int) (found *row, ways int) {
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
	return found, ways
}

// join reads a record of which some columns are missing where no text can have
// the delimiter: each of its lines ends in a text until they are there.
func (s *sacctReader) join(number int, line []byte, missing int) error {
	record, cells := slices.Clone(line), bytes.Count(line, s.delimiter)+1
	for n := 0; missing > 0 && n < maxJoinedLines && s.columns[len(s.columns)-1-missing].free(); n++ {
		rest, ok := s.peek(n)
		more := bytes.Count(rest, s.delimiter)
		if !ok || more > missing || len(record)+len(rest) > maxLine {
			break
		}
		record = append(append(record, '\n'), rest...)
		if missing -= more; missing == 0 {
			s.whole = !s.columns[len(s.columns)-1].free()
			return s.mended(number, n+1, s.row(strings.Split(string(record), string(s.delimiter))))
		}
	}
	kind := truncated
	if missing < 0 {
		kind = excess
	}
	return s.leave(number, "", kind, fmt.Errorf("%d columns, want %d", cells, len(s.columns)))
}

// leaveWithRest leaves a line out that isn't a record, and with it what may
// belong to it: where the job is named before and behind the texts that users
// write, all lines up to the last one with which it would be a record.
func (s *sacctReader) leaveWithRest(number int, cells []string, kind string, err error) error {
	rest := 0
	if s.columns.framed() {
		rest = s.rest(cells)
	}
	if err := s.leave(number, "", kind, err); err != nil {
		return err
	}
	s.ahead = s.ahead[rest:]
	s.number += rest
	s.tally.Lines += int64(rest)
	for i := range rest {
		if err := s.leave(number+1+i, "", torn, fmt.Errorf("the text may begin on line %d", number)); err != nil {
			return err
		}
	}
	return nil
}

// rest is how many lines behind a line with some cells there are up to the last
// with which it would be a record.
func (s *sacctReader) rest(cells []string) (last int) {
	for n, between := 0, 0; between <= maxName; n++ {
		next, ok := s.peek(n)
		if !ok {
			break
		}
		tail := strings.Split(string(next), string(s.delimiter))
		cells[len(cells)-1] += "\n" + tail[0]
		cells = append(cells, tail[1:]...)
		if more := len(cells) - len(s.columns); more >= 0 {
			if _, ways := s.absorb(cells, more); ways > 0 {
				last = n + 1
			}
		}
		between += len(next) + 1
	}
	return last
}

// How far on a record may go whose text has newlines. Slurm takes names and
// comments of up to 1,024 bytes.
const (
	maxTorn      = 4096 // bytes
	maxTornLines = 1100
	maxTries     = 64 // of ways to go on

	maxJoinedLines = 1 << 16 // of a record whose delimiter nobody knows
)

// torn reads a record that goes on in further lines, or leaves its line out.
func (s *sacctReader) torn(number int, line []byte, missing int) error {
	cells := strings.Split(string(line), string(s.delimiter))
	tries := maxTries
	if r, lines := s.mend(cells, missing, 0, &tries); r != nil {
		s.whole = true
		return s.mended(number, lines, r)
	}
	return s.leaveWithRest(number, cells, truncated, fmt.Errorf("%d columns, want %d", len(cells), len(s.columns)))
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
