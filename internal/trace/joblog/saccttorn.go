package joblog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// readExcess reads a line with delimiters in a free text, if there is one way only.
func (s *sacctReader) readExcess(number int, line []byte, more int) error {
	cells := strings.Split(string(line), string(s.delimiter))
	found, ways := s.absorbExcess(cells, more)
	if ways != 1 {
		return s.skipTornLines(number, cells, kindExcess,
			fmt.Errorf("%d columns, want %d, and %d ways to read it", len(cells), len(s.columns), ways))
	}
	s.afterWhole = true
	s.tally.noteLine(number, kindMended, fmt.Errorf("job %s", refText(&found.ref)))
	return s.addRow(number, found)
}

// absorbExcess reads cells of which so many are too many, all in one free text; it
// tells in how many ways that makes sense, and the last of them.
func (s *sacctReader) absorbExcess(cells []string, more int) (found *sacctRow, ways int) {
	for i, c := range s.columns {
		if !c.isFreeText() {
			continue
		}
		joined := strings.Join(cells[i:i+more+1], string(s.delimiter))
		if r := s.parseRow(slices.Concat(cells[:i], []string{joined}, cells[i+more+1:])); r.err == nil {
			found = r
			ways++
		}
	}
	return found, ways
}

// joinLines reads a record of which some columns are missing where no text can have
// the delimiter: each of its lines ends in a text until they are there.
func (s *sacctReader) joinLines(number int, line []byte, missing int) error {
	record, cells := slices.Clone(line), bytes.Count(line, s.delimiter)+1
	for n := 0; missing > 0 && n < maxJoinedLines && s.columns[len(s.columns)-1-missing].isFreeText(); n++ {
		rest, ok := s.peek(n)
		more := bytes.Count(rest, s.delimiter)
		if !ok || more > missing || len(record)+len(rest) > maxLine {
			break
		}
		record = append(append(record, '\n'), rest...)
		if missing -= more; missing == 0 {
			s.afterWhole = !s.columns[len(s.columns)-1].isFreeText()
			return s.addMended(number, n+1, s.parseRow(strings.Split(string(record), string(s.delimiter))))
		}
	}
	kind := kindTruncated
	if missing < 0 {
		kind = kindExcess
	}
	return s.skipLine(number, "", kind, fmt.Errorf("%d columns, want %d", cells, len(s.columns)))
}

// skipTornLines leaves a line out that isn't a record, and with it what may
// belong to it: where the job is named before and behind the texts that users
// write, all lines up to the last one with which it would be a record.
func (s *sacctReader) skipTornLines(number int, cells []string, kind string, err error) error {
	rest := 0
	if s.columns.isFramed() {
		rest = s.lastTornLine(cells)
	}
	if err := s.skipLine(number, "", kind, err); err != nil {
		return err
	}
	s.lookahead = s.lookahead[rest:]
	s.number += rest
	s.tally.Lines += int64(rest)
	for i := range rest {
		if err := s.skipLine(number+1+i, "", kindTorn,
			fmt.Errorf("the text may begin on line %d", number)); err != nil {
			return err
		}
	}
	return nil
}

// lastTornLine is how many lines behind a line with some cells there are up to the last
// with which it would be a record.
func (s *sacctReader) lastTornLine(cells []string) (last int) {
	for n, between := 0, 0; between <= maxName; n++ {
		next, ok := s.peek(n)
		if !ok {
			break
		}
		tail := strings.Split(string(next), string(s.delimiter))
		cells[len(cells)-1] += "\n" + tail[0]
		cells = append(cells, tail[1:]...)
		if more := len(cells) - len(s.columns); more >= 0 {
			if _, ways := s.absorbExcess(cells, more); ways > 0 {
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

// readTorn reads a record that goes on in further lines, or leaves its line out.
func (s *sacctReader) readTorn(number int, line []byte, missing int) error {
	cells := strings.Split(string(line), string(s.delimiter))
	tries := maxTries
	if r, lines := s.mendTorn(cells, missing, 0, &tries); r != nil {
		s.afterWhole = true
		return s.addMended(number, lines, r)
	}
	return s.skipTornLines(number, cells, kindTruncated,
		fmt.Errorf("%d columns, want %d", len(cells), len(s.columns)))
}

// mendTorn looks in the lines from the n-th after the one in hand for the rest of a
// record of which there are some cells, the last one perhaps in part. It is nil
// if the record doesn't go on; else it ends after so many lines.
func (s *sacctReader) mendTorn(cells []string, missing, n int, tries *int) (r *sacctRow, lines int) {
	at := len(cells) - 1
	if !s.columns[at].isFreeText() {
		return nil, 0
	}
	var name strings.Builder
	name.WriteString(cells[at])
	for ; n < maxTornLines; n++ {
		rest, ok := s.peek(n)
		if !ok || name.Len()+len(rest) > maxTorn {
			return nil, 0
		}
		if more := bytes.Count(rest, s.delimiter); more == missing ||
			more > 0 && more < missing && s.columns[at+more].isFreeText() {
			if *tries--; *tries < 0 {
				return nil, 0
			}
			tail := strings.Split(string(rest), string(s.delimiter))
			joined := slices.Concat(cells[:at], []string{name.String() + "\n" + tail[0]}, tail[1:])
			if more < missing {
				if r, lines = s.mendTorn(joined, missing-more, n+1, tries); r != nil {
					return r, lines
				}
			} else if r = s.parseRow(joined); r.err == nil {
				return r, n + 1
			}
		}
		name.WriteByte('\n')
		name.Write(rest)
	}
	return nil, 0
}

// addMended takes a record of several lines.
func (s *sacctReader) addMended(number, lines int, r *sacctRow) error {
	s.lookahead = s.lookahead[lines:]
	s.number += lines
	s.tally.Lines += int64(lines)
	s.tally.noteLine(number, kindMended, fmt.Errorf("job %s, on %d lines", refText(&r.ref), lines+1))
	return s.addRow(number, r)
}

// peek is the n-th line after the one in hand, from 0, if it is text.
func (s *sacctReader) peek(n int) ([]byte, bool) {
	for len(s.lookahead) <= n {
		line, long, err := s.in.next()
		if err != nil {
			return nil, false
		}
		s.lookahead = append(s.lookahead, readLine{slices.Clone(line), long})
	}
	next := s.lookahead[n]
	return next.line, !next.long && checkText(next.line) == nil
}
