// Package lever moves the few things of Slurm that a planner may move, and takes them back: a job's nice, its word
// in AdminComment and what it prefers, a node's weight and power. LEVERS.md says how Slurm was measured to answer.
package lever

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/slurm"
)

// Kind names what was moved.
type Kind string

// The kinds of levers.
const (
	Nice   Kind = "nice"
	Token  Kind = "admin_comment"
	Prefer Kind = "prefer"
	Weight Kind = "weight"
	Power  Kind = "power"
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
// it gets there, every change gives an Undo. It needs to run as SlurmUser or root.
type Levers struct {
	client *slurm.Client
}

// New changes what client reads.
func New(client *slurm.Client) *Levers { return &Levers{client: client} }

const (
	maxNice   = 1 << 20 // the offset on top of the user's own nice
	maxPrefer = 1024    // bytes of a job's Prefer
)

func (l *Levers) updateJob(ctx context.Context, id slurm.JobID, field, value string) error {
	if err := l.client.Update(ctx, "jobid="+id.String(), field, value); err != nil {
		return fmt.Errorf("set %s of job %s: %w", field, id, err)
	}
	return nil
}

func (l *Levers) updateNode(ctx context.Context, node, field, value string) error {
	if err := slurm.ValidNode(node); err != nil {
		return err
	}
	if err := l.client.Update(ctx, "nodename="+node, field, value); err != nil {
		return fmt.Errorf("set %s of node %s: %w", field, node, err)
	}
	return nil
}

// pendingJob gives a job that waits and is not held: a change of a held job's
// Nice would release it (measured on 22.05).
func (l *Levers) pendingJob(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	job, err := l.client.Job(ctx, id)
	if err != nil {
		return slurm.Job{}, err
	}
	if job.State.Base != slurm.Pending {
		return slurm.Job{}, fmt.Errorf("job %s is %s: %w", id, job.State.Base, slurm.ErrNotPending)
	}
	return job, nil
}

// SetNice puts offset (0 or more) on top of the user's own nice. prior is the
// Undo of the last call for this job, or nil: it tells our part from the
// user's. A value changed by someone else since is taken as the user's own. A
// held job is refused with ErrHeld.
func (l *Levers) SetNice(ctx context.Context, id slurm.JobID, offset int, prior *Undo) (Undo, error) {
	if offset < 0 || offset > maxNice {
		return Undo{}, fmt.Errorf("nice offset %d: want 0 to %d: %w", offset, maxNice, slurm.ErrInvalid)
	}
	if prior != nil && (prior.Lever != Nice || prior.Job != id) {
		return Undo{}, fmt.Errorf("prior change is not the nice of job %s: %w", id, slurm.ErrInvalid)
	}
	job, err := l.pendingJob(ctx, id)
	if err != nil {
		return Undo{}, err
	}
	if job.Held() {
		return Undo{}, fmt.Errorf("job %s: %w", id, ErrHeld)
	}
	own := job.Nice
	if prior != nil && prior.After == strconv.FormatInt(job.Nice, 10) {
		if own, err = strconv.ParseInt(prior.Before, 10, 32); err != nil {
			return Undo{}, fmt.Errorf("prior nice %q: %w", prior.Before, slurm.ErrInvalid)
		}
	}
	u := Undo{
		Lever: Nice, Job: id, Before: strconv.FormatInt(own, 10),
		After: strconv.FormatInt(own+int64(offset), 10),
	}
	if job.Nice == own+int64(offset) {
		return u, nil
	}
	return u, l.updatePending(ctx, &job, "Nice", u.After)
}

// SetToken puts epplan:id into the job's AdminComment and keeps what others
// wrote there; an empty id takes it away.
func (l *Levers) SetToken(ctx context.Context, id slurm.JobID, token string) (Undo, error) {
	job, err := l.client.Job(ctx, id)
	if err != nil {
		return Undo{}, err
	}
	before, _, _ := slurm.ParseToken(job.AdminComment)
	merged, err := slurm.MergeToken(job.AdminComment, token)
	if err != nil {
		return Undo{}, err
	}
	u := Undo{Lever: Token, Job: id, Before: before, After: token}
	if merged == job.AdminComment {
		return u, nil
	}
	return u, l.updateJob(ctx, id, "AdminComment", merged)
}

// SetPrefer makes a pending job prefer nodes with all the features, each of
// which must be one that Slurm knows: an unknown one would refuse the change.
func (l *Levers) SetPrefer(ctx context.Context, id slurm.JobID, features []string) (Undo, error) {
	if err := l.knownFeatures(ctx, features); err != nil {
		return Undo{}, err
	}
	job, err := l.pendingJob(ctx, id)
	if err != nil {
		return Undo{}, err
	}
	u := Undo{Lever: Prefer, Job: id, Before: job.Prefer, After: strings.Join(features, "&")}
	return u, l.updatePending(ctx, &job, "Prefer", u.After)
}

// knownFeatures accepts 1 to 16 features that nodes have.
func (l *Levers) knownFeatures(ctx context.Context, features []string) error {
	if len(features) == 0 || len(features) > 16 {
		return fmt.Errorf("%d features: want 1 to 16: %w", len(features), slurm.ErrInvalid)
	}
	nodes, err := l.client.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, f := range features {
		if err := slurm.ValidFeature(f); err != nil {
			return err
		}
		if !slices.ContainsFunc(nodes, func(n slurm.Node) bool { return slices.Contains(n.Features, f) }) {
			return fmt.Errorf("feature %q is on no node: %w", f, slurm.ErrInvalid)
		}
	}
	return nil
}

// maxWeight bounds a node's scheduling weight; Slurm itself takes 32 bits.
const maxWeight = 0xfffffff0

// SetWeight sets a node's scheduling weight; nodes with lower ones are filled first.
// scontrol reconfigure puts it back to slurm.conf's: see AssertWeights.
func (l *Levers) SetWeight(ctx context.Context, node string, weight uint32) (Undo, error) {
	if weight > maxWeight {
		return Undo{}, fmt.Errorf("weight %d: want at most %d: %w", weight, uint32(maxWeight), slurm.ErrInvalid)
	}
	n, err := l.client.Node(ctx, node)
	if err != nil {
		return Undo{}, err
	}
	u := Undo{Lever: Weight, Node: node, Before: formatWeight(n.Weight), After: formatWeight(weight)}
	if n.Weight == weight {
		return u, nil
	}
	return u, l.updateNode(ctx, node, "Weight", u.After)
}

func formatWeight(w uint32) string { return strconv.FormatUint(uint64(w), 10) }

// AssertWeights sets again each weight that a reconfigure has put back, and
// names the nodes it touched. A weight that is neither ours nor the one before
// us was set by someone else and is left alone.
func (l *Levers) AssertWeights(ctx context.Context, ours []Undo) ([]string, error) {
	nodes, err := l.client.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	now := make(map[string]string, len(nodes))
	for _, n := range nodes {
		now[n.Name] = formatWeight(n.Weight)
	}
	var set []string
	var failed []error
	for _, u := range ours {
		if u.Lever != Weight || now[u.Node] == u.After || now[u.Node] != u.Before {
			continue
		}
		if err := l.updateNode(ctx, u.Node, "Weight", u.After); err != nil {
			failed = append(failed, err)
			continue
		}
		set = append(set, u.Node)
	}
	return set, errors.Join(failed...)
}
