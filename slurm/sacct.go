package slurm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/live"
)

// AccountingRecord is one line of accounting: a job or one of its steps.
type AccountingRecord struct {
	Ref          JobRef // as printed: 12_4, 13+1, 12.batch
	ID           JobID  // the plain job number, also of a task
	Step         string // "" for the job itself
	Cluster      string // "" where it isn't said
	Name         string // hostile text
	User         string
	Account      string
	Partition    string
	QOS          string
	State        JobState
	Exit         ExitStatus
	Submit       time.Time
	Eligible     time.Time
	Start        time.Time // zero when it never ran
	End          time.Time // zero while it runs
	Elapsed      time.Duration
	Suspended    time.Duration // for how long it was suspended meanwhile
	TimeLimit    live.Limit
	NodeList     string
	Nodes        []string
	Allocated    TRES
	Requested    TRES
	Energy       float64 // joules; 0 when Slurm does not measure
	Utilisation  float64 // of the GPUs, mean, 0..1; 0 when Slurm does not measure
	Restarts     int
	Comment      string // hostile text
	AdminComment string
}

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
	columns := strings.Split(strings.TrimSuffix(lines[0], delimiter), delimiter)
	if len(columns) < 2 || !hasColumn(columns, "jobid") && !hasColumn(columns, "jobidraw") {
		return nil, nil, &ParseError{Source: source, Line: 1, Msg: "want a header with JobID or JobIDRaw"}
	}
	a := accountingReader{columns: columns, delimiter: delimiter, zone: zone}
	a.mayTear = slices.ContainsFunc(columns[:len(columns)-1], func(name string) bool {
		return strings.EqualFold(name, "AdminComment") ||
			!slices.ContainsFunc(AccountingColumns, func(safe string) bool { return strings.EqualFold(safe, name) })
	})
	for i, line := range lines[1:] {
		a.line(i+2, line)
	}
	return a.out, a.rejected, nil
}

func hasColumn(columns []string, name string) bool {
	for _, c := range columns {
		if strings.EqualFold(c, name) {
			return true
		}
	}
	return false
}

type accountingReader struct {
	columns   []string
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
	more, want := len(cells)-1, len(a.columns)-1 // delimiters
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
	o, err := a.record(cells)
	if err != nil {
		a.reject(number, err.Error())
		return
	}
	a.out = append(a.out, o)
}

func (a *accountingReader) record(cells []string) (AccountingRecord, error) {
	v := make(map[string]string, len(cells))
	for i, c := range cells {
		v[strings.ToLower(a.columns[i])] = c
	}
	t := textFields{values: v, zone: a.zone}
	o := AccountingRecord{
		Cluster: t.known("cluster"), Name: v["jobname"], User: v["user"], Account: t.known("account"),
		QOS: t.known("qos"), Partition: v["partition"], State: ParseJobState(v["state"]),
		Exit: t.exit("exitcode"), Submit: t.time("submit"), Eligible: t.time("eligible"),
		Start: t.time("start"), End: t.time("end"),
		Elapsed: t.seconds("elapsedraw"), Suspended: t.duration("suspended"),
		TimeLimit: t.limit("timelimitraw"), NodeList: t.known("nodelist"),
		Allocated: t.tres("alloctres", ""), Requested: t.tres("reqtres", ""),
		Energy:   t.float("consumedenergyraw"),
		Restarts: t.integer("restarts"), Comment: v["comment"], AdminComment: v["admincomment"],
	}
	printed, raw := v["jobid"], v["jobidraw"]
	if printed == "" {
		printed = raw
	}
	var err error
	o.Ref, err = ParseJobRef(printed)
	t.fail(err)
	o.ID, o.Step = o.Ref.Job, o.Ref.Step
	if raw != "" {
		ref, err := ParseJobRef(raw)
		t.fail(err)
		o.ID = ref.Job
		if ref.Step != o.Step {
			t.fail(fmt.Errorf("JobID %q and JobIDRaw %q name different steps", Printable(printed, 40),
				Printable(raw, 40)))
		}
	}
	o.Nodes, err = ExpandHostlist(o.NodeList)
	t.fail(err)
	if o.NodeList == "" {
		o.Start = time.Time{} // "None assigned": sacct prints the end as the start of a job that never ran
	}
	return o, t.err
}

func (t *textFields) seconds(key string) time.Duration {
	return time.Duration(min(t.count(key), maxDays*86400)) * time.Second
}

func (t *textFields) count(key string) int64 {
	s := t.known(key)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		t.fail(fmt.Errorf("%s: %q is not a count", key, Printable(s, 40)))
		return 0
	}
	return n
}

func (t *textFields) float(key string) float64 {
	s := t.known(key)
	if s == "" {
		return 0
	}
	f, err := tresCount(s, false)
	if err != nil {
		t.fail(fmt.Errorf("%s: %w", key, err))
	}
	if f >= NoVal64 {
		return 0
	}
	return f
}
