package slurm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// JobID is a plain job number, never 0.
type JobID uint32

// String gives the number in decimal.
func (id JobID) String() string { return strconv.FormatUint(uint64(id), 10) }

// maxJobID is the largest job id Slurm gives out (26 bits).
const maxJobID = 0x03ffffff

// ParseJobID reads a plain job number.
func ParseJobID(text string) (JobID, error) {
	if text == "" || len(text) > 10 || strings.IndexFunc(text, notDigit) >= 0 {
		return 0, fmt.Errorf("%q is not a job id: want a number", Printable(text, 40))
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 || n > maxJobID {
		return 0, fmt.Errorf("%q is not a job id: want 1 to %d", text, maxJobID)
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
		if ref.HetOffset, err = smallNumber(offset); err != nil {
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
	return s != "" && len(s) <= 40 && strings.IndexFunc(s, badHostRune) < 0
}

func (r *JobRef) readTasks(text string) error {
	inside, isList := strings.CutPrefix(text, "[")
	if !isList {
		var err error
		r.Task, err = smallNumber(text)
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

// ParseArrayTasks reads "0-3,7%2" or "0-9:3": the task numbers and the throttle (0 when none).
func ParseArrayTasks(text string) ([]int, int, error) {
	list, limit, hasLimit := strings.Cut(text, "%")
	throttle := 0
	if hasLimit {
		var err error
		if throttle, err = smallNumber(limit); err != nil {
			return nil, 0, err
		}
	}
	if strings.HasSuffix(list, "...") { // squeue cuts long lists (SLURM_BITSTR_LEN)
		list = strings.TrimRight(list, ".,-")
		return nil, throttle, fmt.Errorf("task list %q was cut by slurm", Printable(list, 40))
	}
	var out []int
	for part := range strings.SplitSeq(list, ",") {
		rng, stepText, hasStep := strings.Cut(part, ":")
		step := 1
		if hasStep {
			var err error
			if step, err = smallNumber(stepText); err != nil || step == 0 {
				return nil, 0, fmt.Errorf("bad step in %q", part)
			}
		}
		numbers, err := parseIndices(rng)
		if err != nil {
			return nil, 0, err
		}
		for i := 0; i < len(numbers) && len(out) <= maxHosts; i += step {
			out = append(out, numbers[i])
		}
	}
	if len(out) > maxHosts {
		return nil, 0, fmt.Errorf("more than %d tasks", maxHosts)
	}
	return out, throttle, nil
}
