package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AccountingColumns is what Client.Accounting asks sacct for. None of them can
// be written by a user, so that no name or comment can forge a line (an account
// can be any text where accounts are not enforced); the one free text,
// AdminComment, is an operator's and stands last.
var AccountingColumns = []string{
	"JobIDRaw", "JobID", "User", "Partition", "State", "ExitCode", "Submit", "Eligible", "Start", "End",
	"ElapsedRaw", "Suspended", "TimelimitRaw", "NodeList", "AllocTRES", "ReqTRES", "ConsumedEnergyRaw",
	"AdminComment",
}

// Accounting is the answer to Client.Accounting.
type Accounting struct {
	Jobs     []AccountingRecord // jobs only, no steps
	Rejected []RejectedLine
}

// Accounting gives the jobs that were in any state since a time, or of them only some. A job that was
// requeued has a line per run. Ask again from the start of the last answer
// minus a minute or so: slurmdbd learns of ends with a delay.
func (c *Client) Accounting(ctx context.Context, since time.Time, only ...JobID) (Accounting, error) {
	start := since.UTC().Format("2006-01-02T15:04:05")
	which := []string{"--starttime=" + start}
	if len(only) > 0 {
		ids := make([]string, len(only))
		for i, id := range only {
			ids[i] = id.String()
		}
		which = append(which, "--jobs="+strings.Join(ids, ","))
	}
	return coalesce(ctx, c, "sacct "+strings.Join(which, " "), func(ctx context.Context) (Accounting, error) {
		out, err := c.command(ctx, "sacct", append([]string{
			"--parsable2", "--allusers", "--duplicates", "--delimiter=\x1f",
			"--format=" + strings.Join(AccountingColumns, ","),
		}, which...)...)
		if err != nil {
			return Accounting{}, err
		}
		rows, rejected, err := ParseAccounting("sacct", out, "\x1f", time.UTC)
		if err != nil {
			return Accounting{}, err
		}
		answer := Accounting{Rejected: rejected}
		for _, r := range rows {
			if r.Step == "" {
				answer.Jobs = append(answer.Jobs, r)
			}
		}
		return answer, nil
	})
}

// maxSplitLines bounds how many lines one torn record may span.
const maxSplitLines = 64

// ParseAccounting reads sacct -P with its header line, whose columns may come
// in any order. A line counts only when it has exactly the header's columns.
// If a free text was torn by a newline, everything between the torn ends is
// left out too, since it may be forged; with the columns of [AccountingColumns] nothing but the last one can
// be torn, and each line counts for itself. What was left out is named.
func ParseAccounting(
	source string, data []byte, delimiter string, zone *time.Location,
) ([]AccountingRecord, []RejectedLine, error) {
	lines := strings.Split(strings.TrimSuffix(string(escapeInvalid(data, false)), "\n"), "\n")
	if len(lines) == 0 || lines[0] == "" {
		return nil, nil, nil
	}
	if delimiter == "" {
		return nil, nil, fmt.Errorf("%s: no delimiter: %w", source, ErrInvalid)
	}
	header, err := NewAccountingHeader(strings.Split(strings.TrimSuffix(lines[0], delimiter), delimiter))
	if err != nil {
		return nil, nil, &ParseError{Source: source, Line: 1, Msg: err.Error()}
	}
	a := accountingReader{header: header, delimiter: delimiter, zone: zone}
	a.mayTear = slices.ContainsFunc(header.columns[:header.Len()-1],
		func(c accountingColumn) bool { return c <= freeTextColumn || c.isFreeText() })
	for i, line := range lines[1:] {
		a.line(i+2, line)
	}
	return a.out, a.rejected, nil
}

type accountingReader struct {
	header    AccountingHeader
	delimiter string
	zone      *time.Location
	mayTear   bool // a column but the last has free text
	missing   int  // delimiters a torn record still lacks; 0 outside one
	spanned   int
	out       []AccountingRecord
	rejected  []RejectedLine
}

func (a *accountingReader) reject(line int, reason string) {
	a.rejected = append(a.rejected, RejectedLine{Line: line, Reason: reason})
}

func (a *accountingReader) line(number int, line string) {
	cells := strings.Split(line, a.delimiter)
	more, want := len(cells)-1, a.header.Len()-1 // delimiters
	if a.missing > 0 && a.spanned < maxSplitLines {
		a.spanned++
		if more <= a.missing {
			a.missing -= more
		}
		a.reject(number, "inside a record torn by a newline")
		return
	}
	a.missing = 0
	switch {
	case more == 0:
		a.reject(number, "rest of a text with a newline")
		return
	case more < want:
		if a.mayTear {
			a.missing, a.spanned = want-more, 0
		}
		a.reject(number, fmt.Sprintf("%d columns, want %d: torn by a newline", more+1, want+1))
		return
	case more > want:
		a.reject(number, fmt.Sprintf("%d columns, want %d", more+1, want+1))
		return
	}
	row, err := a.header.Row(cells, a.zone)
	if err != nil {
		a.reject(number, err.Error())
		return
	}
	a.out = append(a.out, row.Record())
}
