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
	"github.com/epplan/epplan/internal/shareddata"
	"github.com/epplan/epplan/internal/slurmlab"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/slurm"
)

// lab is a real Slurm on this machine, for the length of a test.
type lab struct {
	*testing.T
	dir      string
	run      slurm.ExecRunner
	client   *slurm.Client
	settings steer.Settings
}

func startLab(t *testing.T, options ...string) *lab {
	t.Helper()
	dir := slurmlab.Start(t, options...)
	l := &lab{T: t, dir: dir, run: slurm.ExecRunner{Conf: filepath.Join(dir, "etc", "slurm.conf")}}
	l.client = slurm.NewClient(l.run, 0)
	l.settings = steer.Settings{Version: "1", Live: config.Default().Live, Profiles: config.BuiltinProfiles()}
	l.settings.Live.Mode = config.Enforce
	return l
}

func (l *lab) steerer(state string) *steer.Steerer {
	l.Helper()
	s, err := steer.Open(&steer.Options{
		Source: steer.FromSlurm(l.run, time.Now), Levers: slurm.NewLevers(slurm.NewClient(l.run, 0)),
		Settings: func() *steer.Settings { return &l.settings }, Dir: state,
	})
	if err != nil {
		l.Fatal(err)
	}
	return s
}

func (l *lab) command(args ...string) string {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the test's own words
	cmd.Env = append(os.Environ(), "SLURM_CONF="+l.run.Conf)
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("%v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// submit submits a job of a user that takes a whole node until it's cancelled.
func (l *lab) submit(user string, options ...string) slurm.JobID {
	l.Helper()
	args := append([]string{"runuser", "-u", user, "--", "sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "--gres=gpu:4", "-N1"}, options...)
	id, err := slurm.ParseJobID(l.command(append(args, "--wrap", "sleep 600")...))
	if err != nil {
		l.Fatal(err)
	}
	return id
}

func (l *lab) jobs() map[slurm.JobID]slurm.Job {
	l.Helper()
	answer, err := l.client.Jobs(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	all := make(map[slurm.JobID]slurm.Job, len(answer.List))
	for _, j := range answer.List {
		all[j.ID] = j
	}
	return all
}

func (l *lab) nice(id slurm.JobID) int64 { return l.jobs()[id].Nice }

func (l *lab) eventually(what string, yes func() bool) {
	l.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(40 * time.Second); !yes(); <-tick.C {
		if time.Now().After(end) {
			l.Fatalf("not in 40 s: %s\n%s", what, l.command("squeue", "--states=all"))
		}
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
		"priority/basic":       nil,
		"priority/multifactor": {"--conf", "PriorityType=priority/multifactor", "--conf", "PriorityWeightPartition=10000", "--conf", "PriorityWeightAge=1000"},
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
		Policy: "value", Until: time.Now().Add(time.Hour), Place: map[slurm.JobID]int{held: 0, nice: 1, array: 2, plain: 3},
	}
	s := l.steerer(filepath.Join(l.dir, "order"))
	l.eventually("nothing more is to be done", func() bool { // Slurm looks at what was submitted first
		r := step(l, s)
		return r.Set == 0 && s.Status().Nice == 2
	})
	now := l.jobs()
	for _, id := range []slurm.JobID{plain, array, nice, held} {
		l.Logf("job %s: nice %d → %d, priority %d → %d", id, before[id].Nice, now[id].Nice, before[id].Priority, now[id].Priority)
	}
	if now[nice].Nice != 3 || now[array].Nice <= 0 || now[plain].Nice <= 0 ||
		now[nice].Priority <= now[array].Priority || now[array].Priority <= now[plain].Priority || s.Status().Failed > 0 {
		l.Errorf("%+v", s.Status())
	}
	third := slices.IndexFunc(taskOf(now, array), func(j slurm.Job) bool { return j.Held() && j.Nice == 0 })
	if h := now[held]; !h.Held() || third < 0 {
		l.Errorf("held jobs: %+v, %+v", h, taskOf(now, array))
	}
	if r := step(l, s); r.Set+r.Undone+r.Failed != 0 {
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
	r := step(l, s)
	jobs := l.jobs()
	for _, id := range all {
		l.Logf("job %s of %s: nice %d → %d, priority %d → %d", id, jobs[id].User, before[id].Nice, jobs[id].Nice, before[id].Priority, jobs[id].Priority)
	}
	if r.Failed > 0 || r.Set == 0 || jobs[other].Nice != 0 || jobs[early].Nice != 0 || jobs[plain].Nice < 5 || jobs[array].Nice == 0 {
		l.Errorf("%+v", r)
	}
	third := slices.IndexFunc(taskOf(jobs, array), func(j slurm.Job) bool { return j.Held() && j.Nice == 0 })
	if h := jobs[held]; !h.Held() || h.Nice != 0 || third < 0 {
		l.Errorf("held jobs: %+v, %+v", h, taskOf(jobs, array))
	}
	if r := step(l, s); r.Set+r.Undone+r.Failed != 0 {
		l.Errorf("a second step does something: %+v", r)
	}
	l.command("runuser", "-u", ann, "--", "scontrol", "update", "jobid="+undone.String(), "nice=0")
	s = l.steerer(state) // epd starts anew
	if r := step(l, s); r.Set+r.Undone+r.Failed != 0 || l.nice(undone) != 0 || !slices.Equal(s.Status().Left, []slurm.JobID{undone}) {
		l.Errorf("%+v, %+v", r, s.Status())
	}
	l.command("scancel", undone.String())
	if r, err := s.UndoAll(l.Context()); err != nil || r.Failed+r.Waiting > 0 {
		l.Errorf("%+v, %v", r, err)
	}
	for id, j := range l.jobs() {
		if was, ok := before[id]; ok && id != undone && j.State.Base == slurm.Pending && (j.Nice != was.Nice || j.Held() != was.Held()) {
			l.Errorf("job %s: nice %d, was %d; held %t, was %t", id, j.Nice, was.Nice, j.Held(), was.Held())
		}
	}
	s.Resume()
	step(l, s)
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

// taskOf are the records that have the last task of an array alone.
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
		if err := os.WriteFile(filepath.Join(hooks, name), text, 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	l := startLab(t, "--hooks", hooks, "--power", "3600")
	l.settings.Live.SleepAfter, l.settings.Live.SleepLearn = 1, false // the lab's timeouts would be a minute of idling
	l.settings.Live.WakeWait = 70
	s := l.steerer(filepath.Join(l.dir, "levers"))
	step(l, s)
	tick := time.NewTicker(1100 * time.Millisecond)
	<-tick.C
	tick.Stop()
	asked := time.Now()
	if r := step(l, s); r.Set != 1 {
		l.Fatalf("%+v, %+v", r, s.Status())
	}
	state := func(name string) slurm.NodeState {
		n, err := l.client.Node(l.Context(), name)
		if err != nil {
			l.Fatal(err)
		}
		return n.State
	}
	l.Logf("right after power_down: %+v", state("n1"))
	l.eventually("n1 sleeps", func() bool {
		if r := step(l, s); r.Set+r.Undone+r.Failed > 0 || s.Status().Asleep != 1 {
			l.Fatalf("%+v, %+v", r, s.Status())
		}
		return state("n1").PoweredDown() && !state("n1").Is("POWERING_DOWN")
	})
	l.Logf("asleep after %.1f s; n2, the spare one: %+v", time.Since(asked).Seconds(), state("n2"))
	if down := state("n2"); len(down.Flags) > 0 {
		l.Errorf("the last node of the partition: %+v", down)
	}
	l.wake(s, state)
	l.command("scancel", "-u", "nobody")
	asked = time.Now()
	l.eventually("n1 sleeps again", func() bool {
		step(l, s)
		return state("n1").PoweredDown() && !state("n1").Is("POWERING_DOWN")
	})
	l.eventually("everything is taken back", func() bool {
		r, err := s.UndoAll(l.Context())
		return err == nil && r.Undone == 1
	})
	l.eventually("n1 is up", func() bool { n := state("n1"); return n.Base == "IDLE" && len(n.Flags) == 0 })
	l.Logf("up again after %.1f s", time.Since(asked).Seconds())
}

// wake submits jobs for both nodes, of which n1 sleeps: the second one waits for
// it, and no longer than the bound allows.
func (l *lab) wake(s *steer.Steerer, state func(string) slurm.NodeState) {
	l.Helper()
	l.submit("nobody")
	asked := time.Now()
	second := l.submit("nobody")
	l.eventually("a job wakes n1", func() bool {
		if r := step(l, s); r.Set+r.Failed > 0 {
			l.Fatalf("%+v, %+v", r, s.Status())
		}
		n := state("n1")
		return l.jobs()[second].State.Base == slurm.Running && !l.jobs()[second].State.Is("CONFIGURING") && !n.PoweredDown() && !n.Is("POWERING_UP")
	})
	waited := time.Since(asked).Seconds()
	step(l, s)
	st := s.Status()
	l.Logf("the job waited %.1f s; %d wakes, the longest %.1f s", waited, st.Wakes, st.WakeS)
	if waited > l.settings.Live.WakeWait || st.Wakes != 1 || st.WakeS <= 0 || st.WakeS > waited+5 || st.Asleep != 0 {
		l.Errorf("the job waited %.1f s, the bound is %v s; %+v", waited, l.settings.Live.WakeWait, st)
	}
}
