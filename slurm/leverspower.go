package slurm

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/epplan/epplan/live"
)

// PowerSaving is what slurmctld is set to do about nodes that sleep. Partitions
// may have timeouts of their own, which are not looked at. A timeout that can't
// be read is [NoTimeout].
type PowerSaving struct {
	Enabled bool          // it can suspend and resume nodes
	Suspend time.Duration // SuspendTimeout: for so long a node can't be woken after it was told to sleep
	Resume  time.Duration // ResumeTimeout: a node that isn't back by then is given up
	// What the site keeps from sleeping. Slurm itself heeds it only when it sends
	// nodes to sleep of its own accord, not when it is told to. Answers share these
	// lists: nobody changes them.
	Awake        []AwakeNodes // SuspendExcNodes
	AwakeParts   []string     // SuspendExcParts: all nodes of these partitions
	AwakeFlags   []string     // SuspendExcStates, from 23.02 on: nodes with these flags
	UnreadReason string       // why SuspendExcNodes can't be read: any node may be named there
}

// AwakeNodes are nodes that don't sleep.
type AwakeNodes struct {
	Nodes []string
	Idle  int // so many of them that are idle and awake; 0: none sleeps
}

// NoTimeout stands for a timeout of which nothing is known but that it ends: it
// is longer than any that Slurm takes.
const NoTimeout = 1 << 30 * time.Second

// PowerSaving asks slurmctld for it.
func (l *Levers) PowerSaving(ctx context.Context) (PowerSaving, error) {
	s, err := l.client.Settings(ctx)
	if err != nil {
		return PowerSaving{}, err
	}
	// SuspendTime may be set per partition; INFINITE alone does not tell.
	saving := PowerSaving{
		Enabled: s["SuspendProgram"] != "" && s["ResumeProgram"] != "",
		Suspend: settingSeconds(s["SuspendTimeout"]), Resume: settingSeconds(s["ResumeTimeout"]),
	}
	l.awake.update(&saving, [...]string{s["SuspendExcNodes"], s["SuspendExcParts"], s["SuspendExcStates"]})
	return saving, nil
}

// awakeCache is what the site keeps from sleeping as it was read last: that may be a
// long list, hardly ever changes and is asked for each minute.
type awakeCache struct {
	mu   sync.Mutex
	text [3]string // SuspendExcNodes, SuspendExcParts, SuspendExcStates
	read PowerSaving
}

// update reads the lists where their texts changed.
func (a *awakeCache) update(saving *PowerSaving, text [3]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.text != text {
		a.text, a.read = text, PowerSaving{AwakeParts: settingList(text[1]), AwakeFlags: settingList(text[2])}
		var err error
		if a.read.Awake, err = parseAwake(text[0]); err != nil {
			a.read.UnreadReason = err.Error()
		}
	}
	saving.Awake, saving.AwakeParts, saving.AwakeFlags, saving.UnreadReason = a.read.Awake, a.read.AwakeParts,
		a.read.AwakeFlags, a.read.UnreadReason
}

// settingList reads "a,b".
func settingList(text string) []string {
	if isUnset(text) {
		return nil
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// parseAwake reads SuspendExcNodes, "n[1-9]:2,login": two of nine, and one.
func parseAwake(text string) ([]AwakeNodes, error) {
	if text = strings.TrimSpace(text); isUnset(text) {
		return nil, nil
	}
	var all []AwakeNodes
	for start := 0; start <= len(text); {
		part, next, err := hostPart(text, start)
		if err != nil {
			return nil, fmt.Errorf("SuspendExcNodes: %w", err)
		}
		hosts, number, counted := strings.Cut(part, ":")
		var a AwakeNodes
		if counted {
			if a.Idle, err = strconv.Atoi(number); err != nil || a.Idle < 1 {
				return nil, fmt.Errorf("SuspendExcNodes: %q: want a number of nodes after the colon",
					Printable(part, 80))
			}
		}
		if a.Nodes, err = ExpandHostlist(hosts); err != nil {
			return nil, fmt.Errorf("SuspendExcNodes: %w", err)
		}
		all = append(all, a)
		start = next
	}
	return all, nil
}

// settingSeconds reads "60 sec"; [NoTimeout] where it says something else.
func settingSeconds(text string) time.Duration {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, err := strconv.ParseUint(number, 10, 30)
	if err != nil || (unit != "sec" && unit != "") {
		return NoTimeout
	}
	return time.Duration(n) * time.Second
}

// PowerDown lets Slurm switch a node off once its jobs have ended. A node with
// jobs is refused. Without power saving it is ErrNoPowerSaving.
func (l *Levers) PowerDown(ctx context.Context, node string) (Undo, error) {
	n, err := l.powerNode(ctx, node)
	if err != nil {
		return Undo{}, err
	}
	if n.State.Base != "IDLE" {
		return Undo{}, fmt.Errorf("node %s is %s, want IDLE: %w", node, n.State.Base, ErrInvalid)
	}
	if n.State.IsPoweredDown() || n.State.Is("POWERING_DOWN") || n.State.Is("POWER_DOWN") {
		return Undo{Lever: LeverPower, Node: node, Before: "power_down", After: "power_down"}, nil
	}
	u := Undo{Lever: LeverPower, Node: node, Before: "power_up", After: "power_down"}
	return u, l.setPower(ctx, node, "power_down")
}

// PowerUp wakes a sleeping node; a node that is up is left alone.
func (l *Levers) PowerUp(ctx context.Context, node string) (Undo, error) {
	n, err := l.powerNode(ctx, node)
	if err != nil {
		return Undo{}, err
	}
	if !n.State.IsPoweredDown() {
		return Undo{Lever: LeverPower, Node: node, Before: "power_up", After: "power_up"}, nil
	}
	u := Undo{Lever: LeverPower, Node: node, Before: "power_down", After: "power_up"}
	return u, l.setPower(ctx, node, "power_up")
}

func (l *Levers) powerNode(ctx context.Context, node string) (Node, error) {
	if err := ValidNode(node); err != nil {
		return Node{}, err
	}
	saving, err := l.PowerSaving(ctx)
	if err != nil {
		return Node{}, err
	}
	if !saving.Enabled {
		return Node{}, fmt.Errorf("node %s: %w", node, ErrNoPowerSaving)
	}
	return l.client.Node(ctx, node)
}

func (l *Levers) setPower(ctx context.Context, node, state string) error {
	err := l.updateNode(ctx, node, "State", state)
	if err != nil && strings.Contains(err.Error(), "Invalid node state") {
		return fmt.Errorf("%w: %w", ErrNoPowerSaving, err)
	}
	return err
}

// Undo takes a change back. It does so only while the value is still the one
// that was set: ErrChanged means that someone else moved it since, and it was
// left alone. A job that has started or ended needs none of its levers back
// but the token.
func (l *Levers) Undo(ctx context.Context, u Undo) error {
	if u.Before == u.After {
		return nil
	}
	switch u.Lever {
	case LeverNice, LeverPrefer:
		return l.undoJob(ctx, u)
	case LeverToken:
		return l.undoToken(ctx, u)
	case LeverWeight:
		n, err := l.client.Node(ctx, u.Node)
		if err != nil {
			return err
		}
		if formatWeight(n.Weight) != u.After {
			return errIfChanged("weight", u, formatWeight(n.Weight))
		}
		w, err := strconv.ParseUint(u.Before, 10, 32)
		if err != nil || w > maxWeight {
			return fmt.Errorf("weight %q: %w", Printable(u.Before, 40), ErrInvalid)
		}
		return l.updateNode(ctx, u.Node, "Weight", formatWeight(uint32(w)))
	case LeverPower:
		if u.Before == "power_up" {
			_, err := l.PowerUp(ctx, u.Node)
			return err
		}
		_, err := l.PowerDown(ctx, u.Node)
		return err
	default:
		return fmt.Errorf("lever %q: %w", Printable(string(u.Lever), 40), ErrInvalid)
	}
}

func errIfChanged(what string, u Undo, now string) error {
	return fmt.Errorf("%s is %q, was set to %q: %w", what, Printable(now, 80),
		Printable(u.After, 80), ErrChanged)
}

func (l *Levers) undoJob(ctx context.Context, u Undo) error {
	job, err := l.pendingJob(ctx, u.Job)
	if err != nil {
		return err
	}
	if u.Lever == LeverPrefer {
		if job.Prefer != u.After {
			return errIfChanged("prefer", u, job.Prefer)
		}
		if strings.ContainsFunc(u.Before, func(r rune) bool { return r <= ' ' || r > '~' }) ||
			len(u.Before) > maxComment {
			return fmt.Errorf("prefer %q: %w", Printable(u.Before, 80), ErrInvalid)
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
		return fmt.Errorf("nice %q: %w", Printable(u.Before, 40), ErrInvalid)
	}
	return l.updatePending(ctx, &job, "Nice", strconv.FormatInt(own, 10))
}

func (l *Levers) undoToken(ctx context.Context, u Undo) error {
	job, err := l.client.Job(ctx, u.Job)
	if err != nil {
		return err
	}
	if now, _, _ := ParseToken(job.AdminComment); now != u.After {
		return errIfChanged("token", u, now)
	}
	merged, err := MergeToken(job.AdminComment, u.Before)
	if err != nil {
		return err
	}
	return l.updateJob(ctx, u.Job, "AdminComment", merged)
}

// LimitAdvice is a time limit that would do, for the user to take or leave.
type LimitAdvice struct {
	Limit time.Duration // whole minutes
	Text  string        // one sentence for the user
}

// AdviseLimit says which shorter limit would hold a job whose run is expected to
// last at most upper, with margin on top (0.25 is a quarter more). There is none
// when the job's own limit is unknown or already within twice of that: only
// the user changes a limit, and only a large difference is worth the word.
func AdviseLimit(asked live.Limit, upper time.Duration, margin float64) (LimitAdvice, bool) {
	if !asked.IsSet() || upper <= 0 || !(margin >= 0 && margin <= 10) {
		return LimitAdvice{}, false
	}
	minutes := math.Ceil(upper.Minutes() * (1 + margin))
	if minutes < 1 || minutes > maxDays*1440 {
		return LimitAdvice{}, false
	}
	limit := time.Duration(minutes) * time.Minute
	if d, ok := asked.Duration(); ok && d < 2*limit {
		return LimitAdvice{}, false
	}
	return LimitAdvice{
		Limit: limit,
		Text: fmt.Sprintf("--time=%s would probably do, and may start sooner: by its last runs it takes "+
			"hardly more than %s", FormatLimit(limit), FormatLimit(upper)),
	}, true
}
