package slurm

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
)

// Client asks and tells Slurm through a Runner. Look-ups for the same thing that overlap
// share one command. A Client is safe for concurrent use.
type Client struct {
	run     Runner
	timeout time.Duration
	flights singleflight.Group

	version atomic.Pointer[Version] // of the commands; nil: not asked for yet
	awake   awakeCache
}

// NewClient reads through run; timeout bounds a look-up that several callers
// share (0 means 15 s).
func NewClient(run Runner, timeout time.Duration) *Client {
	if timeout <= 0 {
		timeout = 15 * time.Second
	}
	return &Client{run: run, timeout: timeout}
}

// coalesce runs work once for all callers that overlap under key. The work does
// not end when the first of its callers gives up.
func coalesce[T any](
	ctx context.Context, c *Client, key string, work func(context.Context) (T, error),
) (T, error) {
	var zero T
	ch := c.flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
		return work(ctx)
	})
	select {
	case <-ctx.Done():
		return zero, fmt.Errorf("%s: %w", key, ctx.Err())
	case r := <-ch:
		if r.Err != nil {
			return zero, r.Err
		}
		out, _ := r.Val.(T)
		return out, nil
	}
}

// command runs one of Slurm's commands and names the common failures.
func (c *Client) command(ctx context.Context, name string, args ...string) ([]byte, error) {
	out, err := c.run.Run(ctx, name, args...)
	if err == nil {
		return out, nil
	}
	return out, classifyError(err, name)
}

// Update sets one field of a job or node, such as "jobid=5" or "nodename=n1", by
// scontrol update. The caller has checked what goes into it. It needs to run as
// SlurmUser or root.
func (c *Client) Update(ctx context.Context, target, field, value string) error {
	_, err := c.command(ctx, "scontrol", "update", target, field+"="+value)
	return err
}

func classifyError(err error, name string) error {
	var failed *CommandError
	if !errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, c := range []struct {
		words string
		kind  error
	}{
		{"Invalid job id specified", ErrNotFound},
		{" not found", ErrNotFound},
		{"Unable to contact slurm", ErrUnreachable},
		{"Connection refused", ErrUnreachable},
		{"Socket timed out", ErrUnreachable},
		{"accounting storage is disabled", ErrNoAccounting},
		{"Job/step already completing or completed", ErrNotPending},
		{"Job is no longer pending execution", ErrNotPending},
	} {
		if strings.Contains(failed.Stderr, c.words) {
			return fmt.Errorf("%w: %w", c.kind, err)
		}
	}
	return err
}

// squeueAllJobs is the question for every job that slurmctld remembers, ended ones
// too while MinJobAge lasts, and those of partitions that are hidden from whom
// epd runs as.
var squeueAllJobs = []string{"--json", "--all", "--states=all"}

// EachJob gives every job that slurmctld remembers, ended ones too while
// MinJobAge lasts, one after the other while squeue prints them: ScanJobs says
// what each may keep. Nothing may be concluded from the jobs before EachJob
// returned nil, nor of jobs that [Unread.MayList] names. Callers share nothing.
func (c *Client) EachJob(ctx context.Context, each func(*Job) error) (Unread, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.scanJobs(ctx, each, squeueAllJobs...)
}

// scanJobs reads the jobs that squeue prints.
func (c *Client) scanJobs(ctx context.Context, each func(*Job) error, args ...string) (Unread, error) {
	var meta Meta
	jobs := 0
	err := c.stream(ctx, func(r io.Reader) (err error) {
		meta, err = ScanJobs("squeue --json", r, func(j *Job) error {
			jobs++
			return each(j)
		})
		return err
	}, "squeue", args...)
	if err == nil && jobs == 0 && len(meta.Errors) > 0 {
		err = fmt.Errorf("squeue --json: %s", strings.Join(meta.Errors, "; "))
	}
	return meta.Unread, err
}

// stream runs one of Slurm's commands, reads what it prints as it comes where
// the runner can do that, and names the common failures.
func (c *Client) stream(ctx context.Context, read func(io.Reader) error, name string, args ...string) error {
	streamer, ok := c.run.(Streamer)
	if !ok {
		out, err := c.command(ctx, name, args...)
		if err != nil {
			return err
		}
		return read(bytes.NewReader(out))
	}
	err := streamer.Stream(ctx, read, name, args...)
	if _, failed := errors.AsType[*CommandError](err); failed {
		return classifyError(err, name)
	}
	return err //nolint:wrapcheck // the reader's own
}

// Job gives one job by its plain number: a small question whatever the length of
// the queue. From 23.02 on squeue --json answers it, and before by what it prints
// column by column.
func (c *Client) Job(ctx context.Context, id JobID) (Job, error) {
	if err := ValidJob(id); err != nil {
		return Job{}, err
	}
	job, err := coalesce(ctx, c, "squeue "+id.String(), func(ctx context.Context) (Job, error) {
		if c.canFilterJobs(ctx) {
			return c.jobByFilter(ctx, id)
		}
		return c.jobByColumns(ctx, id)
	})
	if err != nil {
		return Job{}, fmt.Errorf("job %s: %w", id, err)
	}
	return job, nil
}

// canFilterJobs reports whether squeue --json heeds --jobs, as it does from 23.02 on:
// before it prints the whole queue. A release that can't be told may be an old one.
func (c *Client) canFilterJobs(ctx context.Context) bool {
	known := c.version.Load()
	if known == nil {
		v, err := c.Version(ctx)
		if err != nil {
			return false
		}
		known = &v
		c.version.Store(known)
	}
	return known.AtLeast(23, 2)
}

// jobByFilter reads a job where squeue --json answers for that job.
func (c *Client) jobByFilter(ctx context.Context, id JobID) (Job, error) {
	var job Job
	unread, err := c.scanJobs(ctx, func(j *Job) error {
		if j.ID == id { // of an array there may be others
			job = *j
		}
		return nil
	}, append(slices.Clone(squeueAllJobs), "--jobs="+id.String())...)
	switch {
	case err != nil || job.ID == id:
	case unread.MayList(id.String()):
		err = errors.New(unread.Reason)
	default:
		err = ErrNotFound
	}
	return job, err
}

// jobByColumns reads a job of any release: from squeue what it prints in columns, and
// the rest from scontrol. That has no user's text, and is left out where one is
// made up to look like it.
func (c *Client) jobByColumns(ctx context.Context, id JobID) (Job, error) {
	var job, rest Job
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		// Nobody's text holds a delimiter that is drawn at random.
		delimiter := "\x1f" + rand.Text()
		// Else it adds held tasks to the others.
		out, err := c.command(ctx, "squeue", "--noheader", "--states=all", "--array-unique",
			"--jobs="+id.String(), "--Format="+jobFormat(delimiter))
		if err != nil {
			return err
		}
		job, err = parseJobColumns("squeue --Format", out, delimiter, id)
		return err
	})
	both.Go(func() (err error) {
		if rest, err = c.JobText(ctx, id); errors.Is(err, ErrAmbiguous) {
			return nil
		}
		return err
	})
	if err := both.Wait(); err != nil {
		return Job{}, err
	}
	if rest.Submit.Equal(job.Submit) { // else it was queued anew in between
		job.Gres, job.Suspended, job.Exit = rest.Gres, rest.Suspended, rest.Exit
	}
	return job, nil
}

// JobText gives one job from scontrol show job -d: one small answer from any
// version, without comments. A job whose text could forge it is ErrAmbiguous;
// Job reads it.
func (c *Client) JobText(ctx context.Context, id JobID) (Job, error) {
	if err := ValidJob(id); err != nil {
		return Job{}, err
	}
	return coalesce(ctx, c, "scontrol show job "+id.String(), func(ctx context.Context) (Job, error) {
		out, err := c.command(ctx, "scontrol", "show", "job", "-d", id.String())
		if err != nil {
			return Job{}, fmt.Errorf("job %s: %w", id, err)
		}
		return ParseJobText("scontrol show job", out, id, time.UTC)
	})
}

// Script gives a batch job's script, up to so many bytes, as slurmctld keeps it. It needs
// to run as SlurmUser or root. A job without one is an error.
func (c *Client) Script(ctx context.Context, id JobID, most int) (string, error) {
	if err := ValidJob(id); err != nil {
		return "", err
	}
	out, err := c.command(ctx, "scontrol", "write", "batch_script", id.String(), "-")
	return string(out[:min(len(out), most)]), err
}

// Nodes gives every node with its state, weight, features and devices.
func (c *Client) Nodes(ctx context.Context) ([]Node, Unread, error) {
	type answer struct {
		nodes  []Node
		unread Unread
	}
	all, err := coalesce(ctx, c, "scontrol show node", func(ctx context.Context) (a answer, err error) {
		out, err := c.command(ctx, "scontrol", "show", "node", "-d")
		if err != nil {
			return a, err
		}
		a.nodes, a.unread, err = ParseNodeText("scontrol show node", out, time.UTC)
		return a, err
	})
	return all.nodes, all.unread, err
}

// Node gives one node.
func (c *Client) Node(ctx context.Context, name string) (Node, error) {
	if err := ValidNode(name); err != nil {
		return Node{}, err
	}
	return coalesce(ctx, c, "scontrol show node "+name, func(ctx context.Context) (Node, error) {
		out, err := c.command(ctx, "scontrol", "show", "node", "-d", name)
		if err != nil {
			return Node{}, err
		}
		nodes, unread, err := ParseNodeText("scontrol show node", out, time.UTC)
		switch {
		case err != nil:
			return Node{}, err
		case len(nodes) == 1 && nodes[0].Name == name:
			return nodes[0], nil
		case unread.MayList(name):
			return Node{}, errors.New(unread.Reason)
		}
		return Node{}, fmt.Errorf("node %s: %w", name, ErrNotFound)
	})
}

// Settings gives slurm.conf as slurmctld holds it, by name.
func (c *Client) Settings(ctx context.Context) (map[string]string, error) {
	return coalesce(ctx, c, "scontrol show config", func(ctx context.Context) (map[string]string, error) {
		out, err := c.command(ctx, "scontrol", "show", "config")
		if err != nil {
			return nil, err
		}
		return ParseConfigText(out), nil
	})
}

// Booted returns when slurmctld began to run.
func (c *Client) Booted(ctx context.Context) (time.Time, error) {
	s, err := c.Settings(ctx)
	if err != nil {
		return time.Time{}, err
	}
	at, err := ParseTime(s["BOOT_TIME"], time.UTC)
	if err == nil && at.IsZero() {
		err = fmt.Errorf("BOOT_TIME of scontrol show config: %w", ErrInvalid)
	}
	return at, err
}

// Version gives the release of the client commands.
func (c *Client) Version(ctx context.Context) (Version, error) {
	out, err := c.command(ctx, "scontrol", "--version")
	if err != nil {
		return Version{}, err
	}
	return ParseVersion(string(out))
}

// Ping says whether a slurmctld answers; without one it is ErrUnreachable.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.ping(ctx, func(line string) bool { return strings.Contains(line, " is UP") })
	return err
}

// ping returns the first line of scontrol's answer that says what is wanted; without one it is
// ErrUnreachable. The command fails when any slurmctld is down.
func (c *Client) ping(ctx context.Context, wanted func(line string) bool) (string, error) {
	out, err := c.command(ctx, "scontrol", "ping")
	for line := range strings.Lines(string(out)) {
		if wanted(line) {
			return line, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return "", fmt.Errorf("%w: %s", ErrUnreachable, Printable(strings.TrimSpace(string(out)), 200))
}

// InCharge returns the machine, as SlurmctldHost names it, whose slurmctld is in charge: the first one that
// answers, in the order in which Slurm has them take over. Without one it is ErrUnreachable.
func (c *Client) InCharge(ctx context.Context) (string, error) {
	line, err := c.ping(ctx, func(line string) bool { return upHost(line) != "" })
	return upHost(line), err
}

// upHost returns the machine that a line such as "Slurmctld(primary) at head1 is UP" names; "": it says
// something else.
func upHost(line string) string {
	words := strings.Fields(line)
	at := slices.Index(words, "at")
	if at < 0 || at+3 >= len(words) || !strings.HasPrefix(words[0], "Slurmctld(") ||
		words[at+2] != "is" || words[at+3] != "UP" {
		return ""
	}
	return words[at+1]
}

// ArrayJob is a job array that was submitted, on a cluster if it was named.
type ArrayJob struct {
	ID      JobID
	Cluster string // as sbatch says it; empty: the usual one
}

// ArrayTask is a task of a job array as squeue shows it.
type ArrayTask struct {
	Job   JobID // the array's
	Task  int
	State JobState
}

// SubmitArray submits a script as a job array with the tasks 0 to tasks-1. The
// options are sbatch's; name, tasks and output come after them, so that they count.
// What the tasks print goes to output, in which Slurm fills in %a (sbatch(1), filename pattern).
func (c *Client) SubmitArray(
	ctx context.Context, script, name, output string, tasks int, options ...string,
) (ArrayJob, error) {
	if tasks < 1 || tasks > maxArrayTask {
		return ArrayJob{}, fmt.Errorf("%d tasks: %w", tasks, ErrInvalid)
	}
	out, err := c.command(ctx, sbatch, SubmitArrayArgs(script, name, output, tasks, options...)...)
	if err != nil {
		return ArrayJob{}, err
	}
	id, cluster, _ := strings.Cut(strings.TrimSpace(string(out)), ";")
	job, err := ParseJobID(id)
	if err != nil {
		return ArrayJob{}, &ParseError{Source: sbatch, Line: 1, Msg: err.Error()}
	}
	return ArrayJob{ID: job, Cluster: cluster}, nil
}

// ArrayTasks gives the tasks of a user's job arrays of a name, those that ended among
// them while slurmctld remembers them (MinJobAge). The name has no comma in it.
func (c *Client) ArrayTasks(
	ctx context.Context, uid int, name, cluster string,
) ([]ArrayTask, Unread, error) {
	args := []string{
		"--noheader", "--array", "--states=all", "--user=" + strconv.Itoa(uid), "--name=" + name,
		"--format=%i %T",
	}
	if cluster != "" {
		args = append(args, "--clusters="+cluster)
	}
	out, err := c.command(ctx, "squeue", args...)
	if err != nil {
		return nil, Unread{}, err
	}
	var tasks []ArrayTask
	var unread Unread
	line := 0
	for text := range strings.Lines(string(out)) {
		line++
		words := strings.Fields(text)
		if len(words) == 0 || words[0] == "CLUSTER:" {
			continue
		}
		ref, err := ParseJobRef(words[0])
		if err == nil && (len(words) != 2 || ref.Task < 0) {
			err = errors.New("want a task of an array and its state")
		}
		if err != nil {
			unread.add("", (&ParseError{Source: "squeue --array", Line: line, Msg: err.Error()}).Error())
			continue
		}
		tasks = append(tasks, ArrayTask{Job: ref.Job, Task: ref.Task, State: ParseJobState(words[1])})
	}
	return tasks, unread, nil
}

// Cancel cancels a job, or an array with all of its tasks. One that has ended is no error.
func (c *Client) Cancel(ctx context.Context, job ArrayJob) error {
	args := []string{"--quiet", job.ID.String()}
	if job.Cluster != "" {
		args = append(args, "--clusters="+job.Cluster)
	}
	_, err := c.command(ctx, "scancel", args...)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrNotPending) {
		return nil
	}
	return err
}

// MaxArrayTasks returns how many tasks an array may have (MaxArraySize).
func (c *Client) MaxArrayTasks(ctx context.Context) (int, error) {
	settings, err := c.Settings(ctx)
	if err != nil {
		return 0, err
	}
	most, err := strconv.Atoi(settings["MaxArraySize"])
	if err != nil {
		return 0, fmt.Errorf("MaxArraySize is %q, want a number", Printable(settings["MaxArraySize"], 40))
	}
	return most, nil
}

// SubmitArrayArgs are sbatch's arguments for SubmitArray.
func SubmitArrayArgs(script, name, output string, tasks int, options ...string) []string {
	args := append([]string{"--parsable"}, options...)
	return append(args, "--job-name="+name, "--array=0-"+strconv.Itoa(tasks-1), "--output="+output, script)
}
