package lever

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/epplan/epplan/slurm"
)

// updateTarget names exactly the pending tasks of a job's record for scontrol. The
// number of an array alone would mean all of its tasks, and would release those
// that are held (measured on 22.05).
func updateTarget(j *slurm.Job) (string, error) {
	if j.ArrayJob != j.ID {
		return j.ID.String(), nil // not of an array, or one task with a number of its own
	}
	if j.ArrayTasks == "" {
		if j.ArrayTask < 0 {
			return "", fmt.Errorf("job %s: its tasks aren't stated: %w", j.ID, slurm.ErrInvalid)
		}
		return j.ID.String() + "_" + strconv.Itoa(j.ArrayTask), nil
	}
	if _, _, err := slurm.ParseArrayTasks(j.ArrayTasks); err != nil {
		return "", fmt.Errorf("job %s: %w: %w", j.ID, slurm.ErrInvalid, err)
	}
	tasks, _, _ := strings.Cut(j.ArrayTasks, "%")
	return j.ID.String() + "_[" + tasks + "]", nil
}

// updatePending changes the pending tasks of a job's record.
func (l *Levers) updatePending(ctx context.Context, job *slurm.Job, field, value string) error {
	target, err := updateTarget(job)
	if err != nil {
		return err
	}
	if err := l.client.Update(ctx, "jobid="+target, field, value); err != nil {
		return fmt.Errorf("set %s of job %s: %w", field, target, err)
	}
	return nil
}

// Change sets what u says, knowing what is there: nothing is done, and the error
// is ErrChanged, unless the value still is from. So u can be written down before.
// u.Before is what [Levers.Undo] goes back to, which may differ from from. Nice
// is never set below u.Before.
func (l *Levers) Change(ctx context.Context, from string, u Undo) error {
	switch u.Lever {
	case Nice:
		return l.changeNice(ctx, from, u)
	case Weight:
		return l.changeWeight(ctx, from, u)
	case Power:
		if u.After != "power_down" {
			return fmt.Errorf("power state %q: %w", slurm.Printable(u.After, 40), slurm.ErrInvalid)
		}
		_, err := l.PowerDown(ctx, u.Node)
		return err
	case Prefer:
		return l.changePrefer(ctx, from, u)
	case Token:
	}
	return fmt.Errorf("lever %q: %w", slurm.Printable(string(u.Lever), 40), slurm.ErrInvalid)
}

func (l *Levers) changeNice(ctx context.Context, from string, u Undo) error {
	before, err1 := strconv.ParseInt(u.Before, 10, 32)
	after, err2 := strconv.ParseInt(u.After, 10, 32)
	if err1 != nil || err2 != nil || after < before || after-before > maxNice {
		return fmt.Errorf("nice %q to %q: %w", slurm.Printable(u.Before, 40),
			slurm.Printable(u.After, 40), slurm.ErrInvalid)
	}
	job, err := l.pendingJob(ctx, u.Job)
	switch {
	case err != nil:
		return err
	case job.Held():
		return fmt.Errorf("job %s: %w", u.Job, ErrHeld)
	case job.Nice == after:
		return nil
	case strconv.FormatInt(job.Nice, 10) != from:
		return errIfChanged("nice", Undo{After: from}, strconv.FormatInt(job.Nice, 10))
	}
	return l.updatePending(ctx, &job, "Nice", strconv.FormatInt(after, 10))
}

func (l *Levers) changeWeight(ctx context.Context, from string, u Undo) error {
	after, err := strconv.ParseUint(u.After, 10, 32)
	if err != nil || after > maxWeight {
		return fmt.Errorf("weight %q: %w", slurm.Printable(u.After, 40), slurm.ErrInvalid)
	}
	n, err := l.client.Node(ctx, u.Node)
	switch now := formatWeight(n.Weight); {
	case err != nil:
		return err
	case uint64(n.Weight) == after:
		return nil
	case now != from:
		return errIfChanged("weight", Undo{After: from}, now)
	}
	return l.updateNode(ctx, u.Node, "Weight", formatWeight(uint32(after)))
}

func (l *Levers) changePrefer(ctx context.Context, from string, u Undo) error {
	if err := l.knownFeatures(ctx, strings.Split(u.After, "&")); err != nil {
		return err
	}
	job, err := l.pendingJob(ctx, u.Job)
	switch {
	case err != nil:
		return err
	case job.Prefer == u.After:
		return nil
	case job.Prefer != from:
		return errIfChanged("prefer", Undo{After: from}, job.Prefer)
	}
	return l.updatePending(ctx, &job, "Prefer", u.After)
}
