package lever

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/epplan/epplan/slurm"
)

// Undo takes a change back. It does so only while the value is still the one
// that was set: ErrChanged means that someone else moved it since, and it was
// left alone. A job that has started or ended needs none of its levers back
// but the token.
func (l *Levers) Undo(ctx context.Context, u Undo) error {
	if u.Before == u.After {
		return nil
	}
	switch u.Lever {
	case Nice, Prefer:
		return l.undoJob(ctx, u)
	case Token:
		return l.undoToken(ctx, u)
	case Weight:
		n, err := l.client.Node(ctx, u.Node)
		if err != nil {
			return err
		}
		if formatWeight(n.Weight) != u.After {
			return errIfChanged("weight", u, formatWeight(n.Weight))
		}
		w, err := strconv.ParseUint(u.Before, 10, 32)
		if err != nil || w > maxWeight {
			return fmt.Errorf("weight %q: %w", slurm.Printable(u.Before, 40), slurm.ErrInvalid)
		}
		return l.updateNode(ctx, u.Node, "Weight", formatWeight(uint32(w)))
	case Power:
		if u.Before == "power_up" {
			_, err := l.PowerUp(ctx, u.Node)
			return err
		}
		_, err := l.PowerDown(ctx, u.Node)
		return err
	default:
		return fmt.Errorf("lever %q: %w", slurm.Printable(string(u.Lever), 40), slurm.ErrInvalid)
	}
}

func errIfChanged(what string, u Undo, now string) error {
	return fmt.Errorf("%s is %q, was set to %q: %w", what, slurm.Printable(now, 80),
		slurm.Printable(u.After, 80), ErrChanged)
}

func (l *Levers) undoJob(ctx context.Context, u Undo) error {
	job, err := l.pendingJob(ctx, u.Job)
	if err != nil {
		return err
	}
	if u.Lever == Prefer {
		if job.Prefer != u.After {
			return errIfChanged("prefer", u, job.Prefer)
		}
		if strings.ContainsFunc(u.Before, func(r rune) bool { return r <= ' ' || r > '~' }) ||
			len(u.Before) > maxPrefer {
			return fmt.Errorf("prefer %q: %w", slurm.Printable(u.Before, 80), slurm.ErrInvalid)
		}
		return l.updatePending(ctx, &job, "Prefer", u.Before)
	}
	if now := strconv.FormatInt(job.Nice, 10); now != u.After {
		return errIfChanged("nice", u, now)
	}
	if job.Held() {
		return fmt.Errorf("job %s: %w", u.Job, ErrHeld)
	}
	own, err := strconv.ParseInt(u.Before, 10, 32)
	if err != nil {
		return fmt.Errorf("nice %q: %w", slurm.Printable(u.Before, 40), slurm.ErrInvalid)
	}
	return l.updatePending(ctx, &job, "Nice", strconv.FormatInt(own, 10))
}

func (l *Levers) undoToken(ctx context.Context, u Undo) error {
	job, err := l.client.Job(ctx, u.Job)
	if err != nil {
		return err
	}
	if now, _, _ := slurm.ParseToken(job.AdminComment); now != u.After {
		return errIfChanged("token", u, now)
	}
	merged, err := slurm.MergeToken(job.AdminComment, u.Before)
	if err != nil {
		return err
	}
	return l.updateJob(ctx, u.Job, "AdminComment", merged)
}
