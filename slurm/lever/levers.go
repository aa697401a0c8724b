// Package lever moves the few things of Slurm that a planner may move, and takes them back: a job's nice, what it
// prefers and when it begins, a node's weight and power. LEVERS.md says how Slurm was measured to answer.
package lever

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Kind names what was moved.
type Kind string

// The kinds of levers.
const (
	Nice   Kind = "nice"
	Prefer Kind = "prefer"
	Weight Kind = "weight"
	Power  Kind = "power"
	// Begin is a job's begin time, in Unix seconds, which it was submitted with. It is only taken back.
	Begin Kind = "begin"
)

// Undo is what it takes to take a lever back: written down before the change is
// relied on, handed to Levers.Undo later. It survives as JSON.
type Undo struct {
	Lever  Kind        `json:"lever"`
	Job    slurm.JobID `json:"job,omitempty"`
	Node   string      `json:"node,omitempty"`
	Before string      `json:"before"`
	After  string      `json:"after"`
}

// Errors that callers tell apart with errors.Is.
var (
	// ErrHeld means that the job is held; a change of its Nice would release it.
	ErrHeld = errors.New("job is held")
	// ErrChanged means that somebody else changed the value since; it is left alone.
	ErrChanged = errors.New("value was changed by someone else")
)

// Levers changes jobs and nodes with scontrol. Every argument is checked before
// it gets there. It needs to run as SlurmUser or root.
type Levers struct {
	client *slurm.Client
}

// New changes what client reads.
func New(client *slurm.Client) *Levers { return &Levers{client: client} }

const (
	maxNice   = 1 << 20    // the offset on top of the user's own nice
	maxPrefer = 1024       // bytes of a job's Prefer
	maxWeight = 0xfffffff0 // of a node; Slurm itself takes 32 bits
)

// Change sets what u says, knowing what is there: nothing is done, and the error
// is ErrChanged, unless the value still is from. So u can be written down before.
// u.Before is what [Levers.Undo] goes back to, which may differ from from. Nice
// is never set below u.Before.
func (l *Levers) Change(ctx context.Context, from string, u Undo) error {
	if u.Lever == Power {
		if u.After != "power_down" {
			return invalidError("power state", u.After)
		}
		return l.powerDown(ctx, u.Node)
	}
	if u.Lever == Prefer {
		if err := l.knownFeatures(ctx, strings.Split(u.After, "&")); err != nil {
			return err
		}
	} else if err := u.checkNumbers(u.After); err != nil {
		return err
	}
	return l.set(ctx, &u, from, u.After)
}

// Undo takes a change back. It does so only while the value is still the one
// that was set: ErrChanged means that someone else moved it since, and it was
// left alone. A job that has started or ended needs none of its levers back.
func (l *Levers) Undo(ctx context.Context, u Undo) error {
	if u.Before == u.After {
		return nil
	}
	switch u.Lever {
	case Power:
		if u.Before != "power_up" {
			return invalidError("power state", u.Before)
		}
		return l.powerUp(ctx, u.Node)
	case Prefer:
		if len(u.Before) > maxPrefer ||
			strings.ContainsFunc(u.Before, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return invalidError("prefer", u.Before)
		}
	case Begin:
		if u.Before != "" {
			return invalidError("begin", u.Before)
		}
	default:
		if err := u.checkNumbers(u.Before); err != nil {
			return err
		}
	}
	return l.set(ctx, &u, u.After, u.Before)
}

func invalidError(what, value string) error {
	return fmt.Errorf("%s %q: %w", what, slurm.Printable(value, 80), slurm.ErrInvalid)
}

// checkNumbers checks a value that is to be set of a lever that is a number.
func (u *Undo) checkNumbers(value string) error {
	switch u.Lever {
	case Nice:
		before, err1 := strconv.ParseInt(u.Before, 10, 32)
		after, err2 := strconv.ParseInt(u.After, 10, 32)
		if err1 != nil || err2 != nil || after < before || after-before > maxNice {
			return invalidError("nice", u.Before+" to "+u.After)
		}
	case Weight:
		if w, err := strconv.ParseUint(value, 10, 32); err != nil || w > maxWeight {
			return invalidError("weight", value)
		}
	default:
		return invalidError("lever", string(u.Lever))
	}
	return nil
}

// set sets a lever of a job or a node to a value, from another one.
func (l *Levers) set(ctx context.Context, u *Undo, from, to string) error {
	var now, id string
	var job slurm.Job
	var err error
	noun, key, field := "job", "jobid=", "Nice"
	switch u.Lever {
	case Weight:
		noun, key, field, id = "node", "nodename=", "Weight", u.Node
		var n slurm.Node
		n, err = l.client.Node(ctx, u.Node)
		now = strconv.FormatUint(uint64(n.Weight), 10)
	case Begin:
		field = "StartTime"
		job, err = l.pendingJob(ctx, u.Job)
		now = BeginOf(&job, time.Now())
	case Prefer:
		field = "Prefer"
		job, err = l.pendingJob(ctx, u.Job)
		now = job.Prefer
	default:
		job, err = l.pendingJob(ctx, u.Job)
		if now = strconv.FormatInt(job.Nice, 10); err == nil && job.Held() {
			err = fmt.Errorf("job %s: %w", u.Job, ErrHeld) // a change would release it (measured on 22.05)
		}
	}
	switch {
	case err != nil:
		return err
	case now == to:
		return nil
	case now != from:
		return fmt.Errorf("%s is %q, was set to %q: %w", u.Lever, slurm.Printable(now, 80),
			slurm.Printable(from, 80), ErrChanged)
	}
	if u.Lever != Weight {
		if id, err = pendingTasks(&job); err != nil {
			return err
		}
	}
	if u.Lever == Begin {
		to = "now"
	}
	if err := l.client.Update(ctx, key+id, field, to); err != nil {
		return fmt.Errorf("set %s of %s %s: %w", field, noun, id, err)
	}
	return nil
}

// BeginOf returns when a job may begin, if that is later than a time: the value of its [Begin]. Else it is
// empty.
func BeginOf(j *slurm.Job, at time.Time) string {
	if !j.Eligible.After(at) {
		return ""
	}
	return strconv.FormatInt(j.Eligible.Unix(), 10)
}

func (l *Levers) pendingJob(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	job, err := l.client.Job(ctx, id)
	if err == nil && job.State.Base != slurm.Pending {
		err = fmt.Errorf("job %s is %s: %w", id, job.State.Base, slurm.ErrNotPending)
	}
	return job, err
}

// pendingTasks names exactly the pending tasks of a job's record for scontrol. The
// number of an array alone would mean all of its tasks, and would release those
// that are held (measured on 22.05).
func pendingTasks(j *slurm.Job) (string, error) {
	id := j.ID.String()
	if j.ArrayJob != j.ID {
		return id, nil // not of an array, or one task with a number of its own
	}
	if j.ArrayTasks == "" {
		if j.ArrayTask < 0 {
			return "", fmt.Errorf("job %s: its tasks aren't stated: %w", j.ID, slurm.ErrInvalid)
		}
		return id + "_" + strconv.Itoa(j.ArrayTask), nil
	}
	if _, _, err := slurm.ParseArrayTasks(j.ArrayTasks); err != nil {
		return "", fmt.Errorf("job %s: %w: %w", j.ID, slurm.ErrInvalid, err)
	}
	tasks, _, _ := strings.Cut(j.ArrayTasks, "%")
	return id + "_[" + tasks + "]", nil
}

// knownFeatures accepts 1 to 16 features that nodes have: an unknown one would refuse the change.
func (l *Levers) knownFeatures(ctx context.Context, features []string) error {
	if len(features) == 0 || len(features) > 16 {
		return fmt.Errorf("%d features: want 1 to 16: %w", len(features), slurm.ErrInvalid)
	}
	nodes, _, err := l.client.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, f := range features {
		if err := slurm.CheckFeature(f); err != nil {
			return err
		}
		if !slices.ContainsFunc(nodes, func(n slurm.Node) bool { return slices.Contains(n.Features, f) }) {
			return fmt.Errorf("feature %q is on no node: %w", f, slurm.ErrInvalid)
		}
	}
	return nil
}
