package slurm

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JobID is a plain job number, never 0.
type JobID uint32

// String gives the number in decimal.
func (id JobID) String() string { return strconv.FormatUint(uint64(id), 10) }

// MaxJobID is the largest job id: in a federation the upper 6 of its 32 bits name the cluster.
const MaxJobID = math.MaxUint32

// ParseJobID reads a plain job number.
func ParseJobID(text string) (JobID, error) {
	if text == "" || len(text) > 10 || strings.IndexFunc(text, isNotDigit) >= 0 {
		return 0, fmt.Errorf("%q is not a job id: want a number", Printable(text, 40))
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 || n > MaxJobID {
		return 0, fmt.Errorf("%q is not a job id: want 1 to %d", text, MaxJobID)
	}
	return JobID(n), nil
}

// JobRef is a job as Slurm prints it: 12, 12_4, 12_[0-3%2], 13+1, each with an
// optional step (12.batch, 12_4.0).
type JobRef struct {
	Job       JobID
	Array     bool   // 12_…
	Task      int    // of one array task, else -1
	Tasks     []int  // of 12_[…]
	Throttle  int    // the number after %, or 0
	Het       bool   // 13+…
	HetOffset int    // component
	Step      string // "batch", "extern", "0", or empty
}

// ParseJobRef reads a job id in any of the forms that JobRef names.
func ParseJobRef(text string) (JobRef, error) {
	ref := JobRef{Task: -1}
	id, step, hasStep := strings.Cut(text, ".")
	if hasStep && !isStep(step) {
		return JobRef{}, fmt.Errorf("%q is not a job id: bad step", Printable(text, 60))
	}
	ref.Step = step
	base, task, isArray := strings.Cut(id, "_")
	base, offset, isHet := strings.Cut(base, "+")
	var err error
	if ref.Job, err = ParseJobID(base); err != nil {
		return JobRef{}, err
	}
	ref.Array, ref.Het = isArray, isHet
	if isHet {
		if ref.HetOffset, err = parseSmallNumber(offset); err != nil {
			return JobRef{}, fmt.Errorf("%q is not a job id: %w", Printable(text, 60), err)
		}
	}
	if isArray {
		if err := ref.readTasks(task); err != nil {
			return JobRef{}, fmt.Errorf("%q is not a job id: %w", Printable(text, 60), err)
		}
	}
	return ref, nil
}

func isStep(s string) bool {
	return s != "" && len(s) <= 40 && strings.IndexFunc(s, isBadHostRune) < 0
}

func (r *JobRef) readTasks(text string) error {
	inside, isList := strings.CutPrefix(text, "[")
	if !isList {
		var err error
		r.Task, err = parseSmallNumber(text)
		return err
	}
	inside, closed := strings.CutSuffix(inside, "]")
	if !closed {
		return errors.New("[ without ]")
	}
	var err error
	r.Tasks, r.Throttle, err = ParseArrayTasks(inside)
	return err
}

// maxArrayTask is the largest number of a task that Slurm gives out (MaxArraySize
// is 4000001 at most).
const maxArrayTask = 4_000_000

// ParseArrayTasks reads "0-3,7%2" or "0-9:3": the task numbers and the throttle (0 when none).
func ParseArrayTasks(text string) ([]int, int, error) {
	list, throttle, err := splitThrottle(text)
	if err != nil {
		return nil, 0, err
	}
	if _, isCut := trimCutTasks(list); isCut {
		return nil, throttle, fmt.Errorf("task list %q was cut by slurm", Printable(list, 40))
	}
	var out []int
	for part := range strings.SplitSeq(list, ",") {
		r, err := parseTaskRange(part)
		if err != nil {
			return nil, 0, err
		}
		if len(out)+r.len() > maxHosts {
			return nil, 0, fmt.Errorf("more than %d tasks", maxHosts)
		}
		for n := r.low; n <= r.high; n += r.step {
			out = append(out, n)
		}
	}
	return out, throttle, nil
}

// CountArrayTasks returns how many tasks a list names that [ParseArrayTasks] would read,
// without listing them: it takes no memory, whatever is asked for. Of a list that
// Slurm cut it is those that are whole. It is false for what can't be a list.
func CountArrayTasks(text string) (int, bool) {
	list, _, err := splitThrottle(text)
	if err != nil {
		return 0, false
	}
	list, _ = trimCutTasks(list)
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		r, err := parseTaskRange(part)
		if err != nil || n+r.len() > maxArrayTask+1 {
			return 0, false
		}
		n += r.len()
	}
	return n, true
}

// splitThrottle takes the number after % off a list of tasks; 0 where there is none.
func splitThrottle(text string) (list string, throttle int, err error) {
	list, limit, found := strings.Cut(text, "%")
	if found {
		throttle, err = parseSmallNumber(limit)
	}
	return list, throttle, err
}

// trimCutTasks returns what is whole of a list that squeue cut (SLURM_BITSTR_LEN), and
// whether it did: it cuts numbers, too.
func trimCutTasks(list string) (whole string, isCut bool) {
	left, isCut := strings.CutSuffix(list, "...")
	if !isCut {
		return list, false
	}
	return left[:max(0, strings.LastIndexByte(left, ','))], true
}

// taskRange is the tasks from low to high, step apart.
type taskRange struct{ low, high, step int }

func (r taskRange) len() int { return (r.high-r.low)/r.step + 1 }

// parseTaskRange reads "4", "0-3" or "0-9:3".
func parseTaskRange(text string) (taskRange, error) {
	r := taskRange{step: 1}
	ends, stepText, hasStep := strings.Cut(text, ":")
	low, high, isRange := strings.Cut(ends, "-")
	if !isRange {
		high = low
	}
	var err error
	if r.low, err = parseSmallNumber(low); err != nil {
		return r, err
	}
	if r.high, err = parseSmallNumber(high); err != nil {
		return r, err
	}
	if hasStep {
		if r.step, err = parseSmallNumber(stepText); err != nil || r.step == 0 {
			return r, fmt.Errorf("bad step in %q", text)
		}
	}
	if r.high < r.low || r.high > maxArrayTask {
		return r, fmt.Errorf("tasks %q: want low-high up to %d", Printable(text, 40), maxArrayTask)
	}
	return r, nil
}

// ValidNode accepts one node's name: letters, digits, dot, dash, underscore; at
// most 64 bytes; no list, no option.
func ValidNode(name string) error {
	if name == "" || len(name) > 64 || strings.IndexFunc(name, isBadHostRune) >= 0 || name[0] == '-' ||
		name[0] == '.' {
		return fmt.Errorf("node name %q: %w", Printable(name, 80), ErrInvalid)
	}
	return nil
}

// CheckFeature accepts one feature's name.
func CheckFeature(name string) error {
	bad := func(r rune) bool { return isBadHostRune(r) && r != ':' && r != '/' }
	if name == "" || len(name) > 64 || strings.IndexFunc(name, bad) >= 0 || name[0] == '-' {
		return fmt.Errorf("feature %q: %w", Printable(name, 80), ErrInvalid)
	}
	return nil
}

// maxComment bounds what is written to AdminComment.
const maxComment = 1024

// validComment accepts text that Slurm gives back as it was.
func validComment(text string) error {
	if len(text) > maxComment || strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return fmt.Errorf("comment of %d bytes: want UTF-8 of at most %d: %w", len(text),
			maxComment, ErrInvalid)
	}
	return nil
}

// isReserved reports whether Slurm takes the number for no job, or for all jobs.
func (id JobID) isReserved() bool { return id == NoVal || id == Infinite }

// ValidJob accepts a job that Slurm may be asked about.
func ValidJob(id JobID) error {
	if id == 0 || id.isReserved() {
		return fmt.Errorf("job id %d: %w", id, ErrInvalid)
	}
	return nil
}
