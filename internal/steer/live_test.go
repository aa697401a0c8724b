package steer_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// lab is a real Slurm on this machine, for the length of a test.
type lab struct {
	*testing.T
	dir      string
	run      slurm.ExecRunner
	client   *slurm.Client
	settings steer.Settings
	last     *steer.Steerer // the one that was made last
}

// patience is for what Slurm does by and by: only a hang takes so long.
const patience = 3 * time.Minute

func startLab(t *testing.T, options ...string) *lab {
	t.Helper()
	dir := slurmlab.Start(t, options...)
	l := &lab{
		T: t, dir: dir, run: slurm.ExecRunner{
			Conf: filepath.Join(dir, "etc", "slurm.conf"), Timeout: patience,
		},
	}
	l.client = slurm.NewClient(l.run, patience)
	l.settings = steer.Settings{Version: "1", Live: config.Default().Live, Profiles: config.BuiltinProfiles()}
	l.settings.Live.Mode = live.Enforce
	return l
}

func (l *lab) steerer(state string) *steer.Steerer {
	l.Helper()
	s, err := steer.Open(&steer.Options{
		Source: steer.SnapshotFromSlurm(slurm.NewClient(l.run, patience), time.Now),
		Levers: lever.New(l.client), PowerSaving: l.client.PowerSaving, Booted: l.client.Booted,
		Settings: func() *steer.Settings { return &l.settings }, Dir: state,
	})
	if err != nil {
		l.Fatal(err)
	}
	l.last = s
	return s
}

// step has a steerer step once. A Slurm that doesn't answer for a moment is asked
// again; what was done until then is in the report.
func (l *lab) step(s *steer.Steerer) steer.StepReport {
	l.Helper()
	var all steer.StepReport
	l.eventually("slurm answers a step", func() bool {
		r, err := s.Step(l.Context())
		all.Set, all.Undone, all.Failed, all.Waiting = all.Set+r.Set, all.Undone+r.Undone,
			all.Failed+r.Failed, r.Waiting
		if err != nil {
			l.Log(err)
		}
		return err == nil
	})
	return all
}

// settle steps until there is nothing more to be done: Slurm looks by and by at
// what was submitted. It returns what all steps did.
func (l *lab) settle(s *steer.Steerer, done func(*steer.Status) bool) steer.StepReport {
	l.Helper()
	var all steer.StepReport
	l.eventually("nothing more is to be done", func() bool {
		r := l.step(s)
		all.Set, all.Undone, all.Failed = all.Set+r.Set, all.Undone+r.Undone, all.Failed+r.Failed
		st := s.Status()
		return r.Set+r.Undone == 0 && done(&st)
	})
	return all
}

func (l *lab) command(args ...string) string {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+l.run.Conf)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		l.Fatalf("%v: %v: %s%s", args, err, out, &complaint)
	}
	return strings.TrimSpace(string(out))
}

// submit submits a job of a user that takes a whole node until it's cancelled.
func (l *lab) submit(user string, options ...string) slurm.JobID {
	l.Helper()
	args := append([]string{
		"runuser", "-u", user, "--", "sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null",
		"--gres=gpu:4", "-N1",
	}, options...)
	id, err := slurm.ParseJobID(l.command(append(args, "--wrap", "sleep 600")...))
	if err != nil {
		l.Fatal(err)
	}
	return id
}

func (l *lab) jobs() map[slurm.JobID]slurm.Job {
	l.Helper()
	var all map[slurm.JobID]slurm.Job
	l.eventually("slurm tells its jobs", func() (ok bool) {
		all = make(map[slurm.JobID]slurm.Job)
		_, err := l.client.EachJob(l.Context(), func(j *slurm.Job) error {
			all[j.ID] = *j
			return nil
		})
		if err != nil {
			l.Log(err)
		}
		return err == nil
	})
	return all
}

func (l *lab) nice(id slurm.JobID) int64 { return l.jobs()[id].Nice }

func (l *lab) eventually(what string, yes func() bool) {
	l.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !yes(); <-tick.C {
		if !time.Now().After(end) {
			continue
		}
		if l.last != nil {
			l.Logf("the steerer: %+v", l.last.Status())
		}
		l.Fatalf("not in %v: %s", patience, what)
	}
}

// started gives the jobs in the order in which they started when the cluster's
// two running jobs are cancelled, one after the other.
func (l *lab) started(ids []slurm.JobID, running ...slurm.JobID) []slurm.JobID {
	l.Helper()
	var order []slurm.JobID
	for len(order) < len(ids) {
		next := running[0]
		running = running[1:]
		l.command("scancel", next.String())
		l.eventually("a job starts after "+next.String(), func() bool {
			for _, id := range ids {
				if j := l.jobs()[id]; j.State.Base == slurm.Running && !slices.Contains(order, id) {
					order, running = append(order, id), append(running, id)
					return true
				}
			}
			return false
		})
	}
	return order
}

// priorities are Slurm's two ways of giving jobs a priority.
func priorities() map[string][]string {
	return map[string][]string{
		"priority/basic": nil,
		"priority/multifactor": {
			"--conf", "PriorityType=priority/multifactor", "--conf", "PriorityWeightPartition=10000",
			"--conf", "PriorityWeightAge=1000",
		},
	}
}

func TestDeadlinesOnARealSlurm(t *testing.T) {
	t.Parallel()
	for name, options := range priorities() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLab(t, options...)
			liveOrder(l)
			liveDeadlines(l)
		})
	}
}

// liveOrder puts a queue in a policy's order, the other way round than it was
// submitted, and takes that back. Arrays move as a whole but for held tasks.
func liveOrder(l *lab) {
	const ann, bob = "nobody", "daemon"
	full := []slurm.JobID{l.submit(bob), l.submit(bob)}
	l.eventually("the cluster is full", func() bool {
		jobs := l.jobs()
		return jobs[full[0]].State.Base == slurm.Running && jobs[full[1]].State.Base == slurm.Running
	})
	plain, array, nice := l.submit("nobody"), l.submit(bob, "--array=0-3"), l.submit(ann, "--nice=3")
	held := l.submit(bob, "-H")
	l.command("scontrol", "hold", array.String()+"_3")
	before := l.jobs()
	l.settings.Live.Reorder = config.ReorderAll
	l.settings.Ranking = &steer.Ranking{
		Policy: "value", Until: time.Now().Add(time.Hour),
		Place: map[slurm.JobID]int{held: 0, nice: 1, array: 2, plain: 3},
	}
	s := l.steerer(filepath.Join(l.dir, "order"))
	l.settle(s, func(st *steer.Status) bool { return st.Nice == 2 })
	now := l.jobs()
	for _, id := range []slurm.JobID{plain, array, nice, held} {
		l.Logf("job %s: nice %d → %d, priority %d → %d", id, before[id].Nice, now[id].Nice,
			before[id].Priority, now[id].Priority)
	}
	if now[nice].Nice != 3 || now[array].Nice <= 0 || now[plain].Nice <= 0 ||
		now[nice].Priority <= now[array].Priority || now[array].Priority <= now[plain].Priority ||
		s.Status().Failed > 0 {
		l.Errorf("%+v", s.Status())
	}
	third := slices.IndexFunc(taskOf(now, array), func(j slurm.Job) bool { return j.Held() && j.Nice == 0 })
	if h := now[held]; !h.Held() || third < 0 {
		l.Errorf("held jobs: %+v, %+v", h, taskOf(now, array))
	}
	if r := l.step(s); r.Set+r.Undone+r.Failed != 0 {
		l.Errorf("a second step does something: %+v", r)
	}
	if r, err := s.UndoAll(l.Context()); err != nil || r.Failed+r.Waiting > 0 {
		l.Errorf("%+v, %v", r, err)
	}
	for id, j := range l.jobs() {
		if was, ok := before[id]; ok && (j.Nice != was.Nice || j.Held() != was.Held()) {
			l.Errorf("job %s: nice %d, was %d; held %t, was %t", id, j.Nice, was.Nice, j.Held(), was.Held())
		}
	}
	for id := range l.jobs() {
		l.command("scancel", id.String())
	}
	l.eventually("the cluster is free", func() bool {
		for _, j := range l.jobs() {
			if !j.State.Base.Ended() || j.State.Is(slurm.Completing) {
				return false
			}
		}
		return true
	})
	l.settings.Ranking, l.settings.Live.Reorder = nil, config.ReorderOwn
}

func liveDeadlines(l *lab) {
	const ann, bob = "nobody", "daemon"
	full := []slurm.JobID{l.submit(bob), l.submit(bob)}
	l.eventually("the cluster is full", func() bool {
		jobs := l.jobs()
		return jobs[full[0]].State.Base == slurm.Running && jobs[full[1]].State.Base == slurm.Running
	})
	plain := l.submit(ann, "--nice=5")
	array := l.submit(ann, "--array=0-3%2")
	other := l.submit(bob)
	held := l.submit(ann, "-H")
	undone := l.submit("nobody")
	late := l.submit(ann, "--comment=epplan:deadline=+5h")
	early := l.submit(ann, "--comment=site epplan:deadline=+2h")
	l.command("scontrol", "hold", array.String()+"_3")
	all := []slurm.JobID{plain, array, other, held, undone, late, early}
	before := l.jobs()
	state := filepath.Join(l.dir, "levers")
	s := l.steerer(state)
	r := l.settle(s, func(st *steer.Status) bool { return st.Nice > 0 })
	jobs := l.jobs()
	for _, id := range all {
		l.Logf("job %s of %s: nice %d → %d, priority %d → %d", id, jobs[id].User, before[id].Nice,
			jobs[id].Nice, before[id].Priority, jobs[id].Priority)
	}
	if r.Failed > 0 || r.Set == 0 || jobs[other].Nice != 0 || jobs[early].Nice != 0 || jobs[plain].Nice < 5 ||
		jobs[array].Nice == 0 {
		l.Errorf("%+v", r)
	}
	third := slices.IndexFunc(taskOf(jobs, array), func(j slurm.Job) bool { return j.Held() && j.Nice == 0 })
	if h := jobs[held]; !h.Held() || h.Nice != 0 || third < 0 {
		l.Errorf("held jobs: %+v, %+v", h, taskOf(jobs, array))
	}
	if r := l.step(s); r.Set+r.Undone+r.Failed != 0 {
		l.Errorf("a second step does something: %+v", r)
	}
	l.command("runuser", "-u", ann, "--", "scontrol", "update", "jobid="+undone.String(), "nice=0")
	s = l.steerer(state) // epd starts anew
	if r := l.step(s); r.Set+r.Undone+r.Failed != 0 || l.nice(undone) != 0 ||
		!slices.Equal(s.Status().Left, []slurm.JobID{undone}) {
		l.Errorf("%+v, %+v", r, s.Status())
	}
	l.command("scancel", undone.String())
	if r, err := s.UndoAll(l.Context()); err != nil || r.Failed+r.Waiting > 0 {
		l.Errorf("%+v, %v", r, err)
	}
	for id, j := range l.jobs() {
		if was, ok := before[id]; ok && id != undone && j.State.Base == slurm.Pending &&
			(j.Nice != was.Nice || j.Held() != was.Held()) {
			l.Errorf("job %s: nice %d, was %d; held %t, was %t", id, j.Nice, was.Nice, j.Held(), was.Held())
		}
	}
	l.settings.Version = "2"
	l.settle(s, func(st *steer.Status) bool { return st.Nice > 0 })
	l.command("scancel", array.String())
	// Of Ann's jobs those with deadlines start first; Bob's waits no longer for
	// them than it did.
	order := l.started([]slurm.JobID{early, late, plain, other}, full...)
	l.Logf("started %v: early %s, late %s, plain %s, other %s", order, early, late, plain, other)
	place := func(id slurm.JobID) int { return slices.Index(order, id) }
	if place(early) > place(late) || place(late) > place(plain) || place(other) > place(plain) {
		l.Errorf("started %v", order)
	}
	if h := l.jobs()[held]; !h.Held() {
		l.Errorf("released: %+v", h)
	}
}

// taskOf returns the records that have the last task of an array alone.
func taskOf(jobs map[slurm.JobID]slurm.Job, array slurm.JobID) []slurm.Job {
	var list []slurm.Job
	for _, j := range jobs {
		if j.ArrayJob == array && j.ArrayTask == 3 {
			list = append(list, j)
		}
	}
	return list
}

func TestNodesOnARealSlurmSleepAndWake(t *testing.T) {
	t.Parallel()
	hooks := t.TempDir()
	for _, name := range []string{"suspend.sh", "resume.sh"} {
		text, err := os.ReadFile(shareddata.Path(t, "../slurm-lab/hooks/"+name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(hooks, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l := startLab(t, "--hooks", hooks, "--power", "3600", "--conf", "ResumeTimeout=120") // of a busy machine
	// The lab's timeouts would be a minute of idling.
	l.settings.Live.SleepAfter, l.settings.Live.SleepLearn = 1, false
	l.settings.Live.WakeWait = 160
	s := l.steerer(filepath.Join(l.dir, "levers"))
	asked := time.Now()
	l.eventually("a node is told to sleep", func() bool {
		r := l.step(s)
		if r.Set > 1 || r.Undone+r.Failed > 0 {
			l.Fatalf("%+v, %+v", r, s.Status())
		}
		return r.Set == 1
	})
	sleeper, spare := l.fallAsleep(s, true)
	l.Logf("%s is asleep after %.1f s; %s, the spare one: %+v", sleeper, time.Since(asked).Seconds(), spare,
		l.node(spare).State)
	l.wake(s, sleeper)
	l.command("scancel", "--partition=main") // from 26.05 on nobody is no user to cancel jobs of
	asked = time.Now()
	sleeper, _ = l.fallAsleep(s, false) // the one or the other, as their jobs end
	undone, troubled := 0, false
	l.eventually("everything is taken back", func() bool {
		r, err := s.UndoAll(l.Context())
		undone, troubled = undone+r.Undone, troubled || err != nil || r.Failed > 0
		return err == nil && s.Status().Asleep == 0
	})
	if undone != 1 && !troubled {
		l.Errorf("%d nodes were woken, want %s alone", undone, sleeper)
	}
	l.eventually(sleeper+" is up", func() bool {
		n := l.node(sleeper).State
		return n.Base == "IDLE" && len(n.Flags) == 0
	})
	l.Logf("up again after %.1f s", time.Since(asked).Seconds())
}

// node returns one of Slurm's.
func (l *lab) node(name string) slurm.Node {
	l.Helper()
	var n slurm.Node
	l.eventually("slurm tells of "+name, func() bool {
		var err error
		if n, err = l.client.Node(l.Context(), name); err != nil {
			l.Log(err)
		}
		return err == nil
	})
	return n
}

// fallAsleep waits until one node sleeps by the steerer's doing, whichever was idle
// first, and says which one does, and which one is awake. Unless others were told
// to do something before, the steps that are made meanwhile do nothing.
func (l *lab) fallAsleep(s *steer.Steerer, told bool) (sleeper, spare string) {
	l.Helper()
	asleep := func(n *slurm.Node) bool { return n.State.IsPoweredDown() && !n.State.Is("POWERING_DOWN") }
	l.eventually("one node sleeps", func() bool {
		if r := l.step(s); told && (r.Set+r.Undone+r.Failed > 0 || s.Status().Asleep != 1) {
			l.Fatalf("%+v, %+v", r, s.Status())
		}
		one, other := l.node("n1"), l.node("n2")
		if asleep(&other) {
			one, other = other, one
		}
		sleeper, spare = one.Name, other.Name
		return asleep(&one) && s.Status().Asleep == 1
	})
	l.eventually("the other one is awake", func() bool {
		n := l.node(spare)
		if n.State.IsPoweredDown() || n.State.Is("POWERING_DOWN") || n.State.Is("POWER_DOWN") {
			l.Fatalf("%s, the last node of the partition, is %+v", spare, n.State)
		}
		return len(n.State.Flags) == 0
	})
	return sleeper, spare
}

// wake submits jobs for both nodes, of which one sleeps: the second one waits for
// it, and no longer than the bound allows.
func (l *lab) wake(s *steer.Steerer, sleeper string) {
	l.Helper()
	l.submit("nobody")
	asked := time.Now()
	second := l.submit("nobody")
	waited := 0.0
	l.eventually("a job wakes "+sleeper, func() bool {
		if r := l.step(s); r.Set+r.Failed > 0 {
			l.Fatalf("%+v, %+v", r, s.Status())
		}
		j, n := l.jobs()[second], l.node(sleeper)
		if waited == 0 && j.State.Base == slurm.Running && !j.State.Is("CONFIGURING") &&
			!n.State.IsPoweredDown() && !n.State.Is("POWERING_UP") {
			waited = time.Since(asked).Seconds()
		}
		// A node that doesn't respond at first counts a little later.
		return waited > 0 && s.Status().Wakes > 0
	})
	st, took := s.Status(), time.Since(asked).Seconds()
	l.Logf("the job waited %.1f s; %d wakes, the longest %.1f s", waited, st.Wakes, st.WakeS)
	if waited > l.settings.Live.WakeWait || st.Wakes != 1 || st.WakeS <= 0 || st.WakeS > took+5 ||
		st.Asleep != 0 {
		l.Errorf("the job waited %.1f s, the bound is %v s; %.1f s until the wake was seen; %+v", waited,
			l.settings.Live.WakeWait, took, st)
	}
}
