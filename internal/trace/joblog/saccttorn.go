package joblog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/epplan/epplan/slurm"
)

// readExcess reads a line with delimiters in a free text, if there is one way only.
func (s *sacctReader) readExcess(number int, line []byte, more int) error {
	cells := strings.Split(string(line), string(s.delimiter))
	found, ways := s.absorbExcess(cells, more)
	if ways != 1 {
		return s.skipTornLines(number, cells, kindExcess,
			fmt.Errorf("%d columns, want %d, and %d ways to read it: %s", len(cells), s.columns.Len(), ways,
				s.delimiterAdvice()))
	}
	s.afterWhole = true
	s.tally.noteLine(number, kindMended, fmt.Errorf("job %s", refText(&found.Ref)))
	return s.addRow(number, found, nil)
}

// delimiterAdvice says how a log is made in which no text has the delimiter.
func (s *sacctReader) delimiterAdvice() string {
	return fmt.Sprintf("a text has the delimiter %q; ask sacct without %s, or with a --delimiter drawn at "+
		"random (docs/history.md)", s.delimiter, strings.Join(s.columns.FreeText(), ", "))
}

// absorbExcess reads cells of which so many are too many, all in one free text; it
// tells in how many ways that makes sense, and the last of them.
func (s *sacctReader) absorbExcess(cells []string, more int) (found *slurm.AccountingRow, ways int) {
	for i := range s.columns.Len() {
		if !s.columns.IsFreeText(i) {
			continue
		}
		joined := strings.Join(cells[i:i+more+1], string(s.delimiter))
		r, err := s.columns.Row(slices.Concat(cells[:i], []string{joined}, cells[i+more+1:]), s.zone)
		if err == nil {
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
	for n := 0; missing > 0 && n < maxJoinedLines && s.columns.IsFreeText(s.columns.Len()-1-missing); n++ {
		rest, ok := s.peek(n)
		more := bytes.Count(rest, s.delimiter)
		if !ok || more > missing || len(record)+len(rest) > maxLine {
			break
		}
		record = append(append(record, '\n'), rest...)
		if missing -= more; missing == 0 {
			s.afterWhole = !s.endsInText()
			r, err := s.columns.Row(strings.Split(string(record), string(s.delimiter)), s.zone)
			return s.addMended(number, n+1, r, err)
		}
	}
	kind := kindTruncated
	if missing < 0 {
		kind = kindExcess
	}
	return s.skipLine(number, "", kind, fmt.Errorf("%d columns, want %d", cells, s.columns.Len()))
}

// skipTornLines leaves a line out that isn't a record, and with it what may
// belong to it: where the job is named before and behind the texts that users
// write, all lines up to the last one with which it would be a record.
func (s *sacctReader) skipTornLines(number int, cells []string, kind string, err error) error {
	rest := 0
	if s.columns.IsFramed() {
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

// lastTornLine returns how many lines behind a line with some cells there are up to the last
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
		if more := len(cells) - s.columns.Len(); more >= 0 {
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
		return s.addMended(number, lines, r, nil)
	}
	return s.skipTornLines(number, cells, kindTruncated,
		fmt.Errorf("%d columns, want %d", len(cells), s.columns.Len()))
}

// mendTorn looks in the lines from the n-th after the one in hand for the rest of a
// record of which there are some cells, the last one perhaps in part. It is nil
// if the record doesn't go on; else it ends after so many lines.
func (s *sacctReader) mendTorn(
	cells []string, missing, n int, tries *int,
) (r *slurm.AccountingRow, lines int) {
	at := len(cells) - 1
	if !s.columns.IsFreeText(at) {
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
			more > 0 && more < missing && s.columns.IsFreeText(at+more) {
			if *tries--; *tries < 0 {
				return nil, 0
			}
			tail := strings.Split(string(rest), string(s.delimiter))
			joined := slices.Concat(cells[:at], []string{name.String() + "\n" + tail[0]}, tail[1:])
			if more < missing {
				if r, lines = s.mendTorn(joined, missing-more, n+1, tries); r != nil {
					return r, lines
				}
			} else if r, err := s.columns.Row(joined, s.zone); err == nil {
				return r, n + 1
			}
		}
		name.WriteByte('\n')
		name.Write(rest)
	}
	return nil, 0
}

// addMended takes a record of several lines.
func (s *sacctReader) addMended(number, lines int, r *slurm.AccountingRow, err error) error {
	s.lookahead = s.lookahead[lines:]
	s.number += lines
	s.tally.Lines += int64(lines)
	s.tally.noteLine(number, kindMended, fmt.Errorf("job %s, on %d lines", refText(&r.Ref), lines+1))
	return s.addRow(number, r, err)
}

// peek returns the n-th line after the one in hand, from 0, if it is text.
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
