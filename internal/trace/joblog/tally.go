package joblog

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Options say how a log is read; the zero value reads it leniently, with times
// in UTC.
type Options struct {
	// Cluster is that of all jobs, whatever the log says; "" takes the log's.
	Cluster string
	// Zone is that of sacct's times; nil is UTC.
	Zone *time.Location
	// Strict refuses the log at the first line that makes no sense.
	Strict bool
	// Columns names those of sacct's text that has no header; nil: it has one.
	Columns []string
	// Waiting is handed each job that waits; nil: they are counted only.
	Waiting Visit
	// Profiles knows how much power GPU models draw at most; nil: the built-in ones.
	Profiles *config.Profiles
}

// Visit is handed each job of a log. It may keep the job; its error ends the
// reading and comes back.
type Visit func(*record.HistoryJob) error

// Tally is what was found in a log.
type Tally struct {
	Lines int64 `json:"lines"` // 0 in JSON, which has none
	Jobs  int64 `json:"jobs"`  // that were handed over
	Steps int64 `json:"steps"` // that were folded into their jobs

	NotEnded int64 `json:"not_ended"` // jobs that wait or run
	NeverRan int64 `json:"never_ran"` // jobs that ended before they started
	Repeated int64 `json:"repeated"`  // jobs that had come shortly before

	From  time.Time `json:"from,omitzero"`  // the first submission
	Until time.Time `json:"until,omitzero"` // the last end
	// FromDayZero tells that the log doesn't say when it began: its first day is that of 1970 here.
	FromDayZero bool `json:"from_day_zero,omitempty"`

	// Skipped are lines that were left out, Noted those whose job was taken with
	// something unknown.
	Skipped []LineProblem `json:"skipped"`
	Noted   []LineProblem `json:"noted"`

	name   string
	strict bool
}

// LineProblem is what is wrong with lines of one kind.
type LineProblem struct {
	Kind  string   `json:"kind"`
	Count int64    `json:"count"`
	First []string `json:"first"` // file:line: what was found
}

// maxNamedJobs is how many lines of a kind are named.
const maxNamedJobs = 5

// The kinds of what is wrong with a line.
const (
	kindTruncated  = "truncated line"
	kindExcess     = "more columns than the header"
	kindTorn       = "inside a text with a newline"
	kindNotText    = "not text"
	kindTooLong    = "line too long"
	kindID         = "job id"
	kindState      = "unknown state"
	kindTime       = "time"
	kindNegative   = "negative time"
	kindOrder      = "ends before it starts, or starts before it is submitted"
	kindNumber     = "number"
	kindRecord     = "record"
	kindOrphanStep = "step without its job"
)

// The kinds of what isn't known of a job that was taken.
const (
	kindUnlimited = "no time limit"
	kindNoLimit   = "time limit not stated"
	kindNoSubmit  = "submit time not stated"
	kindNoWait    = "wait not stated"
	kindPartOfJob = "part of a job that is there as a whole"
	kindMended    = "text with the delimiter or a newline in it"
	kindForeign   = "column that isn't one of sacct's, passed over"
	kindTooMuch   = "energy beyond what GPUs and nodes can draw, left out"
	kindOfNode    = "energy beyond the GPUs' limit, taken as that of whole nodes"
)

func newTally(name string, o *Options) *Tally {
	return &Tally{Skipped: []LineProblem{}, Noted: []LineProblem{}, name: name, strict: o.Strict}
}

// SkippedLines returns how many lines were left out because they make no sense.
func (t *Tally) SkippedLines() int64 {
	var n int64
	for i := range t.Skipped {
		n += t.Skipped[i].Count
	}
	return n
}

// MaxBad is the part of a log's lines that may make no sense where nobody says another one: some are torn
// or cut off in logs of real clusters, one in thousands; more than one in twenty is rather another format,
// or another delimiter.
const MaxBad = 0.05

// BadLogError tells that too many lines of a log make no sense.
type BadLogError struct {
	Name           string
	Skipped, Lines int64
	Most           float64 // part of them that may be
}

// Error says how many, and how many there may be.
func (e *BadLogError) Error() string {
	return fmt.Sprintf("%s: %d of %d lines make no sense (%.3g %%), want %.3g %% at most (--max-bad)", e.Name,
		e.Skipped, e.Lines, 100*float64(e.Skipped)/float64(e.Lines), 100*e.Most)
}

// CheckBad is a [BadLogError] where more than a part of the lines, or of the records of JSON, that say
// something of a job make no sense.
func (t *Tally) CheckBad(most float64) error {
	skipped := t.SkippedLines()
	lines := t.Jobs + t.Steps + t.NotEnded + t.NeverRan + t.Repeated + skipped
	if float64(skipped) > most*float64(lines) {
		return &BadLogError{t.name, skipped, lines, most}
	}
	return nil
}

// LineError is what is wrong with a line of a log.
type LineError struct {
	Name string
	Line int
	Kind string
	Err  error
}

// Error is file:line: what is wrong.
func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %s: %v", e.Name, e.Line, e.Kind, e.Err)
}

// Unwrap is what is wrong, without the place.
func (e *LineError) Unwrap() error { return e.Err }

// skipLine leaves a line out; its error refuses the log.
func (t *Tally) skipLine(line int, kind string, err error) error {
	if t.strict {
		return &LineError{Name: t.name, Line: line, Kind: kind, Err: err}
	}
	t.Skipped = t.count(t.Skipped, line, kind, err)
	return nil
}

// noteLine notes what isn't known of a job. The kinds that change energies and run times come first.
func (t *Tally) noteLine(line int, kind string, err error) {
	kinds := len(t.Noted)
	if t.Noted = t.count(t.Noted, line, kind, err); len(t.Noted) > kinds {
		slices.SortStableFunc(t.Noted, func(a, b LineProblem) int { return rankOf(a.Kind) - rankOf(b.Kind) })
	}
}

// gravest lists the kinds of notes that change what a job took, the worst first.
var gravest = []string{
	kindTooMuch, string(slurm.DoubtEnergySum), string(slurm.DoubtRunTime), string(slurm.DoubtClockHour),
	string(slurm.DoubtGPUs), string(slurm.DoubtRequested), string(slurm.DoubtEnergy), kindOfNode,
	string(slurm.DoubtEnergyText), string(slurm.DoubtPartOfGPU), string(slurm.DoubtGPUModels),
	string(slurm.DoubtNoEnd), kindForeign,
}

func rankOf(kind string) int {
	if at := slices.Index(gravest, kind); at >= 0 {
		return at
	}
	return len(gravest)
}

// IsGrave reports whether notes of the kind are about what a job took, and not about its limit or wait.
func (p *LineProblem) IsGrave() bool { return slices.Contains(gravest, p.Kind) }

func (t *Tally) count(kinds []LineProblem, line int, kind string, err error) []LineProblem {
	at := -1
	for i := range kinds {
		if kinds[i].Kind == kind {
			at = i
		}
	}
	if at < 0 {
		at, kinds = len(kinds), append(kinds, LineProblem{Kind: kind})
	}
	k := &kinds[at]
	if k.Count++; k.Count <= maxNamedJobs {
		k.First = append(k.First, fmt.Sprintf("%s:%d: %v", t.name, line, err))
	}
	return kinds
}

// maxText bounds texts of a job, bytes.
const maxText = 256

// jobSink hands jobs over, each once.
type jobSink struct {
	tally   *Tally
	seen    recentJobs
	visit   Visit
	waiting Visit  // nil: nobody asks for jobs that wait
	cluster string // of all jobs; "": as the log says
	limits  *PowerLimits
}

func newJobSink(t *Tally, o *Options, visit Visit) *jobSink {
	return &jobSink{
		tally: t, visit: visit, waiting: o.Waiting, cluster: o.Cluster, limits: NewPowerLimits(o.Profiles),
		seen: recentJobs{at: make(map[jobKey]struct{}), seed: maphash.MakeSeed()},
	}
}

// add hands a job over that came from a line.
func (s *jobSink) add(p *record.HistoryJob, line int) error {
	if s.cluster != "" {
		p.Cluster = s.cluster
	}
	for _, text := range []*string{
		&p.Cluster, &p.JobID, &p.User, &p.Account, &p.Partition, &p.QOS,
		&p.GPUModel, &p.State,
	} {
		*text = strings.ToValidUTF8((*text)[:min(len(*text), maxText)], "\uFFFD")
	}
	switch {
	case p.Started.IsZero():
		s.tally.NeverRan++
		return nil
	case p.Ended.IsZero():
		return s.tally.skipLine(line, kindTime,
			fmt.Errorf("job %s is %s, and has no end", p.JobID, printable(p.State)))
	case p.Submitted.Unix() < 0:
		return s.tally.skipLine(line, kindTime,
			fmt.Errorf("job %s is submitted at %s, want 1970 or later", p.JobID, timeText(p.Submitted)))
	case p.Ended.Before(p.Started):
		return s.tally.skipLine(line, kindOrder, fmt.Errorf("job %s ends at %s, and starts at %s", p.JobID,
			timeText(p.Ended), timeText(p.Started)))
	case p.Started.Before(p.Submitted):
		return s.tally.skipLine(line, kindOrder, fmt.Errorf("job %s starts at %s, and is submitted at %s",
			p.JobID, timeText(p.Started), timeText(p.Submitted)))
	case !s.seen.addIfNew(p):
		s.tally.Repeated++
		return nil
	}
	s.checkEnergy(p, line)
	t := s.tally
	t.Jobs++
	if t.From.IsZero() || p.Submitted.Before(t.From) {
		t.From = p.Submitted
	}
	if p.Ended.After(t.Until) {
		t.Until = p.Ended
	}
	return s.visit(p)
}

func timeText(t time.Time) string { return t.Format("2006-01-02T15:04:05") }

type jobKey struct {
	hash   uint64
	submit int64
}

// recentWindow is how many jobs back one is known that comes again: logs of months in
// a row both have the jobs that ran when one ended.
const recentWindow = 1 << 18

// recentJobs are the latest jobs of a log.
type recentJobs struct {
	seed maphash.Seed
	at   map[jobKey]struct{}
	ring []jobKey
	next int
}

func (r *recentJobs) addIfNew(p *record.HistoryJob) bool {
	key := jobKey{maphash.Comparable(r.seed, [2]string{p.Cluster, p.JobID}), p.Submitted.UnixMicro()}
	if _, again := r.at[key]; again {
		return false
	}
	if len(r.ring) < recentWindow {
		r.ring = append(r.ring, key)
	} else {
		delete(r.at, r.ring[r.next])
		r.ring[r.next] = key
		r.next = (r.next + 1) % recentWindow
	}
	r.at[key] = struct{}{}
	return true
}
