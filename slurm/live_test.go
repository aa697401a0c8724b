package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// patience is for what a real Slurm does by and by: only a hang takes so long.
const patience = 3 * time.Minute

// lab is a real Slurm on this machine, for the length of a test.
type lab struct {
	dir, conf string
	client    *slurm.Client
	levers    *lever.Levers
}

func startLab(t *testing.T, options ...string) *lab {
	t.Helper()
	dir := slurmlab.Start(t, options...)
	conf := filepath.Join(dir, "etc", "slurm.conf")
	client := slurm.NewClient(slurm.ExecRunner{Conf: conf, Timeout: patience}, patience)
	return &lab{dir: dir, conf: conf, client: client, levers: lever.New(client)}
}

func (l *lab) command(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+l.conf)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s%s", args, err, out, &complaint)
	}
	return strings.TrimSpace(string(out))
}

// submit gives the id of a job of a plain user that never starts by itself.
func (l *lab) submit(t *testing.T, options ...string) slurm.JobID {
	t.Helper()
	args := append([]string{
		"runuser", "-u", "nobody", "--", "sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null",
	}, options...)
	id, err := slurm.ParseJobID(l.command(t, append(args, "--wrap", "true")...))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (l *lab) job(t *testing.T, id slurm.JobID) slurm.Job {
	t.Helper()
	j, err := l.client.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestLeversOnARealSlurm(t *testing.T) {
	l := startLab(t)
	t.Run("answers are read", func(t *testing.T) { liveReads(t, l) })
	t.Run("nice lowers the priority by as much and goes back", func(t *testing.T) { liveNice(t, l) })
	t.Run("all tasks of an array with holes are told, and moved at once", func(t *testing.T) {
		liveArray(t, l)
	})
	t.Run("a held job stays held", func(t *testing.T) { liveHold(t, l, true) })
	t.Run("prefer is set and taken back", func(t *testing.T) { livePrefer(t, l) })
	t.Run("a weight is lost at reconfigure and set again", func(t *testing.T) { liveWeight(t, l) })
	t.Run("power saving is not configured", func(t *testing.T) {
		if err := l.levers.Change(t.Context(), "", powerDown("n1")); !errors.Is(err, slurm.ErrNoPowerSaving) {
			t.Error(err)
		}
		err := l.rawPowerDown(t)
		var failed *slurm.CommandError
		if !errors.As(err, &failed) || !strings.Contains(failed.Stderr, "Invalid node state specified") &&
			!strings.Contains(failed.Stderr, "Invalid power action") {
			t.Errorf("slurm itself: %v", err)
		}
	})
}

func powerDown(node string) lever.Undo {
	return lever.Undo{Lever: lever.Power, Node: node, Before: "power_up", After: "power_down"}
}

func nice(job slurm.JobID, before, after string) lever.Undo {
	return lever.Undo{Lever: lever.Nice, Job: job, Before: before, After: after}
}

func (l *lab) rawPowerDown(t *testing.T) error {
	t.Helper()
	_, err := (slurm.ExecRunner{Conf: l.conf}).Run(t.Context(), "scontrol", "update", "nodename=n1",
		"state=power_down")
	return err
}

func liveReads(t *testing.T, l *lab) {
	t.Helper()
	ctx := t.Context()
	if err := l.client.Ping(ctx); err != nil {
		t.Error(err)
	}
	v, err := l.client.Version(ctx)
	if err != nil || !v.AtLeast(22, 5) {
		t.Error(v, err)
	}
	hostile := "x\n   UserId=root(0)\n\nJobId=999 JobName=\"|\x1f"
	id := l.submit(t, "--begin=now+1day", "-t", "2-03:04:05", "--gres=gpu:2", "-J", hostile,
		"--comment", hostile)
	j := l.job(t, id)
	if j.Name != hostile || j.Comment != hostile || j.User != "nobody" ||
		j.TimeLimit != live.LimitOf(51*time.Hour+5*time.Minute) || j.GPUCount() != 2 {
		t.Errorf("%+v", j)
	}
	if text, err := l.client.JobText(ctx, id); !errors.Is(err, slurm.ErrAmbiguous) {
		t.Errorf("%+v, %v", text, err)
	}
	account := l.submit(t, "--begin=now+1day", "-A", "a Nice=-5")
	if text, err := l.client.JobText(ctx, account); err == nil && text.Nice != 0 {
		t.Errorf("an account forged the nice: %+v", text)
	}
	plain := l.submit(t, "--begin=now+1day", "--gres=gpu:1", "-J", "plain")
	want := l.job(t, plain)
	eventually(t, "slurm has looked at the job", func() bool { // its reason is another one then
		before := want.Reason
		want = l.job(t, plain)
		return want.Reason == before && before == "BeginTime"
	})
	text, err := l.client.JobText(ctx, plain)
	if err != nil || text.Priority != want.Priority || text.UID != want.UID || text.Reason != want.Reason ||
		!text.Submit.Equal(want.Submit) {
		t.Errorf("%+v, %v", text, err)
	}
	if _, err := l.client.Job(ctx, 4_000_000); !errors.Is(err, slurm.ErrNotFound) {
		t.Error(err)
	}
	if _, err := l.client.JobText(ctx, 4_000_000); !errors.Is(err, slurm.ErrNotFound) {
		t.Error(err)
	}
	nodes, _, err := l.client.Nodes(ctx)
	if err != nil || len(nodes) != 2 || nodes[0].Gres[0].Count != 4 || !nodes[0].State.Usable() {
		t.Error(nodes, err)
	}
	if _, err := l.client.Accounting(ctx, time.Now().Add(-time.Hour)); !errors.Is(err,
		slurm.ErrNoAccounting) {
		t.Error(err)
	}
}

func liveNice(t *testing.T, l *lab) {
	t.Helper()
	id := l.submit(t, "--begin=now+1day", "--nice=50")
	before := l.job(t, id)
	u := nice(id, "50", "150")
	err := l.levers.Change(t.Context(), "50", u)
	after := l.job(t, id)
	if err != nil || before.Nice != 50 || after.Nice != 150 || before.Priority-after.Priority != 100 {
		t.Errorf("nice %d → %d, priority %d → %d, %v", before.Nice, after.Nice, before.Priority,
			after.Priority, err)
	}
	t.Logf("nice %d → %d: priority %d → %d", before.Nice, after.Nice, before.Priority, after.Priority)
	if err := l.levers.Undo(t.Context(), u); err != nil {
		t.Error(err)
	}
	if back := l.job(t, id); back.Nice != 50 || back.Priority != before.Priority {
		t.Errorf("undone: nice %d priority %d, want 50 and %d", back.Nice, back.Priority, before.Priority)
	}
}

// liveArray looks at an array as long as Slurm takes one by default, with a hole
// after every two tasks: no list of its tasks is longer.
func liveArray(t *testing.T, l *lab) {
	t.Helper()
	var tasks []string
	for first := 0; first+1 <= 1000; first += 3 {
		tasks = append(tasks, fmt.Sprintf("%d-%d", first, first+1))
	}
	id := l.submit(t, "--begin=now+1day", "--array="+strings.Join(tasks, ",")+"%2")
	before := l.job(t, id)
	if n, ok := slurm.CountArrayTasks(before.ArrayTasks); !ok || n != 2*len(tasks) {
		t.Errorf("%d tasks are told, want %d: %s", n, 2*len(tasks), before.ArrayTasks)
	}
	if err := l.levers.Change(t.Context(), "0", nice(id, "0", "100")); err != nil {
		t.Fatal(err)
	}
	if after := l.job(t, id); after.Nice != 100 || after.ArrayTasks != before.ArrayTasks {
		t.Errorf("nice %d of tasks %s", after.Nice, after.ArrayTasks)
	}
}

func liveHold(t *testing.T, l *lab, releases bool) {
	t.Helper()
	id := l.submit(t, "-H", "--begin=now+1day")
	if err := l.levers.Change(t.Context(), "0", nice(id, "0", "10")); !errors.Is(err, lever.ErrHeld) {
		t.Error(err)
	}
	if j := l.job(t, id); !j.Held() {
		t.Errorf("released: %+v", j)
	}
	// What the refusal guards against: under priority/basic Slurm itself releases the hold.
	l.command(t, "scontrol", "update", "jobid="+id.String(), "Nice=10")
	j := l.job(t, id)
	t.Logf("scontrol update Nice=10 of a held job: priority 0 → %d", j.Priority)
	if j.Held() == releases {
		t.Errorf("held %v, measured before: %v", j.Held(), !releases)
	}
}

func livePrefer(t *testing.T, l *lab) {
	t.Helper()
	id := l.submit(t, "--begin=now+1day")
	u := lever.Undo{Lever: lever.Prefer, Job: id, After: "h200&lab"}
	err := l.levers.Change(t.Context(), "", u)
	if got := l.job(t, id); err != nil || got.Prefer != "h200&lab" {
		t.Errorf("%q %v", got.Prefer, err)
	}
	if err := l.levers.Undo(t.Context(), u); err != nil {
		t.Error(err)
	}
	if got := l.job(t, id); got.Prefer != "" {
		t.Errorf("%q", got.Prefer)
	}
}

func liveWeight(t *testing.T, l *lab) {
	t.Helper()
	ctx := t.Context()
	weight := func() uint32 {
		n, err := l.client.Node(ctx, "n1")
		if err != nil {
			t.Fatal(err)
		}
		return n.Weight
	}
	u := lever.Undo{Lever: lever.Weight, Node: "n1", Before: "1", After: "77"}
	if err := l.levers.Change(ctx, "1", u); err != nil || weight() != 77 {
		t.Fatal(weight(), err)
	}
	l.command(t, "scontrol", "reconfigure")
	eventually(t, "the weight is lost", func() bool { return weight() == 1 })
	t.Logf("weight 77, after scontrol reconfigure %d", weight())
	if err := l.levers.Change(ctx, "1", u); err != nil || weight() != 77 {
		t.Error(weight(), err)
	}
	if err := l.levers.Undo(ctx, u); err != nil || weight() != 1 {
		t.Error(weight(), err)
	}
}

func TestNiceUnderMultifactorPriority(t *testing.T) {
	l := startLab(t, "--conf", "PriorityType=priority/multifactor", "--conf", "PriorityWeightPartition=10000",
		"--conf", "PriorityCalcPeriod=1")
	t.Run("nice", func(t *testing.T) { liveNice(t, l) })
	t.Run("hold", func(t *testing.T) { liveHold(t, l, false) })
	id := l.submit(t, "--begin=now+1day")
	before := l.job(t, id)
	err := l.levers.Change(t.Context(), "0", nice(id, "0", "50000"))
	after := l.job(t, id)
	t.Logf("nice 0 → 50000 with priority %d: priority %d, %v", before.Priority, after.Priority, err)
	if err != nil || after.Held() || after.Priority == 0 {
		t.Errorf("a large nice must not hold the job: %+v, %v", after, err)
	}
}
