package joblog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// The fields of the Standard Workload Format (parallelworkloads, "The Standard
// Workload Format", version 2.2), in order; -1 is not known.
const (
	swfJob = iota
	swfSubmit
	swfWait
	swfRunTime
	swfAllocated
	swfCPUTime
	swfMemory
	swfRequested
	swfLimit
	swfLimitMemory
	swfStatus
	swfUser
	swfGroup
	swfProgram
	swfQueue
	swfPartition
	swfBefore
	swfThink
	swfFields
)

// swfStates are the words for a status; 2 to 4 are parts of a job, which has a
// line as a whole, too.
var swfStates = map[float64]string{-1: "UNKNOWN", 0: "FAILED", 1: "COMPLETED", 5: "CANCELLED"}

// ReadSWF reads a log in the Standard Workload Format. Times count from its
// UnixStartTime, or from 1970 where it states none. Users, programs and queues
// are the log's numbers; processors are CPUs, and of GPUs nothing is known.
func ReadSWF(r io.Reader, name string, o *Options, visit Visit) (*Tally, error) {
	t := newTally(name, o)
	t.FromDayZero = true
	s := &swfReader{tally: t, sink: newJobSink(t, o, visit)}
	in := newLineReader(r)
	for {
		line, long, err := in.next()
		if err == nil {
			t.Lines++
			err = s.line(in.number, line, long)
		} else if !errors.Is(err, io.EOF) {
			err = readError(name, in.number, err)
		}
		switch {
		case errors.Is(err, io.EOF) && !s.found && t.SkippedLines() == 0:
			return t, fmt.Errorf("%s: is empty, want lines with %d numbers", name, swfFields)
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return t, err
		}
	}
}

type swfReader struct {
	tally *Tally
	sink  *jobSink
	start int64 // Unix seconds
	found bool
}

func (s *swfReader) line(number int, line []byte, long bool) error {
	if long {
		return s.tally.skipLine(number, kindTooLong, fmt.Errorf("more than %d bytes", maxLine))
	}
	if err := checkText(line); err != nil {
		return s.tally.skipLine(number, kindNotText, err)
	}
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0:
		return nil
	case line[0] == ';':
		return s.comment(number, string(line[1:]))
	}
	s.found = true
	words := strings.Fields(string(line))
	if len(words) != swfFields {
		kind := kindTruncated
		if len(words) > swfFields {
			kind = kindExcess
		}
		return s.tally.skipLine(number, kind, wrongFields(line, len(words)))
	}
	var f [swfFields]float64
	for i, word := range words {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || math.IsNaN(v) || math.Abs(v) > maxUnix {
			return s.tally.skipLine(number, kindNumber,
				fmt.Errorf("field %d is %s, want a number", i+1, printable(word)))
		}
		f[i] = v
	}
	return s.job(number, &f)
}

// wrongFields says what is wrong with a line that has so many words.
func wrongFields(line []byte, words int) error {
	for _, other := range []struct{ mark, name string }{{";", "semicolons"}, {",", "commas"}, {"|", "bars"}} {
		if bytes.Count(line, []byte(other.mark)) >= swfFields-1 {
			return fmt.Errorf("separated by %s, want %d numbers separated by spaces, as the Standard Workload "+
				"Format has them", other.name, swfFields)
		}
	}
	return fmt.Errorf("%d numbers, want %d", words, swfFields)
}

// maxUnix is the year 9999, in seconds.
const maxUnix = 253402300799

// comment reads the header that says when the log began.
func (s *swfReader) comment(number int, text string) error {
	key, value, ok := strings.Cut(text, ":")
	if !ok || !strings.EqualFold(strings.TrimSpace(key), "UnixStartTime") {
		return nil
	}
	start, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil || start < 0 || start > maxUnix {
		return s.tally.skipLine(number, kindTime,
			fmt.Errorf("UnixStartTime is %s, want seconds", printable(value)))
	}
	s.start = start
	s.tally.FromDayZero = start == 0
	return nil
}

func (s *swfReader) job(number int, f *[swfFields]float64) error {
	state, whole := swfStates[f[swfStatus]]
	id := swfText(f[swfJob])
	switch {
	case id == "" || f[swfJob] != math.Trunc(f[swfJob]):
		return s.tally.skipLine(number, kindID, fmt.Errorf("%v, want a number of 0 or more", f[swfJob]))
	case f[swfStatus] >= 2 && f[swfStatus] <= 4:
		s.tally.noteLine(number, kindPartOfJob, fmt.Errorf("status %v of job %s", f[swfStatus], id))
		return nil
	case !whole:
		return s.tally.skipLine(number, kindState, fmt.Errorf("status %v, want -1 to 5", f[swfStatus]))
	case f[swfSubmit] < 0:
		return s.tally.skipLine(number, kindNegative,
			fmt.Errorf("job %s is submitted at %v s", id, f[swfSubmit]))
	}
	for _, field := range []int{swfWait, swfRunTime, swfLimit} {
		if v := f[field]; v < 0 && v != -1 {
			return s.tally.skipLine(number, kindNegative,
				fmt.Errorf("job %s: field %d is %v, want -1, or 0 or more", id, field+1, v))
		}
	}
	r := slurm.AccountingRecord{
		Submit: time.UnixMicro(s.start*1e6 + int64(math.Round(f[swfSubmit]*1e6))).UTC(),
		User:   swfText(f[swfUser]), Account: swfText(f[swfGroup]), Partition: swfText(f[swfPartition]),
		QOS: swfText(f[swfQueue]), Name: swfText(f[swfProgram]), State: slurm.ParseJobState(state),
		CPUs:      measuredOrUnknown(cmp.Or(max(0, f[swfAllocated]), f[swfRequested])),
		TimeLimit: limitOf(f[swfLimit]),
	}
	if f[swfRunTime] >= 0 {
		if f[swfWait] < 0 {
			s.tally.noteLine(number, kindNoWait, fmt.Errorf("job %s: taken as none", id))
		}
		r.Start, r.Elapsed = r.Submit.Add(secondsOf(max(0, f[swfWait]))), secondsOf(f[swfRunTime])
		r.End = r.Start.Add(r.Elapsed)
	}
	p := s.tally.pastOf(number, &r, false)
	p.JobID, p.State = id, state
	return s.sink.add(p, number)
}

// swfText returns a number as a name; "" if it isn't known.
func swfText(v float64) string {
	if v < 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// maxSeconds keeps a duration within time.Duration.
const maxSeconds = 100_000 * 86400

// secondsOf returns a duration of at most 100,000 days, to the microsecond.
func secondsOf(seconds float64) time.Duration {
	return time.Duration(math.Round(min(seconds, maxSeconds)*1e6)) * time.Microsecond
}

// limitOf returns a time limit of so many seconds; 0 or less is none.
func limitOf(seconds float64) live.Limit {
	if !(seconds > 0) {
		return live.Limit{}
	}
	return live.LimitOf(secondsOf(seconds))
}
