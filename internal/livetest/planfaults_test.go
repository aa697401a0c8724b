package livetest_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// planned is a plan in force that is made anew every other second.
const planned = enforce + "reorder = \"all\"\n[live.plan]\nmode = \"enforce\"\npolicy = \"value\"\n" +
	"every_s = 2\n"

// nices returns the nice of jobs that wait, by job.
func (l *lab) nices() map[string]string {
	l.Helper()
	all := make(map[string]string)
	for line := range strings.Lines(l.slurm("squeue", "-h", "-t", "PD", "-o", "%A %y")) {
		id, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[id] = value
	}
	return all
}

// inOrder waits until jobs wait in an order, and nobody is thought to have interfered.
func (l *lab) inOrder(what string, wanted ...string) {
	l.Helper()
	l.within(patience, what, func() bool {
		order, _ := l.queued()
		return slices.Equal(order, wanted)
	})
	if now := l.steered(); len(now.Left) > 0 {
		l.Errorf("%s: %v are left alone, which nobody touched", what, now.Left)
	}
}

// allUndone takes every nice back. Users' own are there again.
func (l *lab) allUndone(own map[string]string) {
	l.Helper()
	l.levers("--undo")
	l.within(patience, "every nice is its user's own", func() bool {
		now := l.nices()
		for job, nice := range now {
			if want := own[job]; nice == want || want == "" && nice == "0" {
				delete(now, job)
			}
		}
		return len(now) == 0
	})
}

// saved waits until slurmctld has written down what its jobs are like now, and returns that.
func (l *lab) saved() []byte {
	l.Helper()
	path := filepath.Join(l.dir, "slurm/state/job_state")
	changed := time.Now()
	l.slurm("scontrol", "update", "jobid="+l.probe(), "comment=saved")
	l.eventually("slurmctld has written down its jobs", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.ModTime().After(changed)
	})
	data, err := os.ReadFile(path)
	if err != nil {
		l.Fatal(err)
	}
	return data
}

// probe returns a job whose change nobody minds: one that runs.
func (l *lab) probe() string {
	l.Helper()
	job, _, _ := strings.Cut(l.slurm("squeue", "-h", "-t", "R", "-o", "%A"), "\n")
	return strings.TrimSpace(job)
}

// restartSlurmctld stops slurmctld, does something, and starts it again.
func (l *lab) restartSlurmctld(meanwhile func()) {
	l.Helper()
	l.stopDaemon("slurmctld", syscall.SIGTERM)
	meanwhile()
	l.startDaemon("slurmctld")
	l.eventually("slurmctld is back", l.pings)
}

// hangSlurmctld has slurmctld stand still while something is done.
func (l *lab) hangSlurmctld(meanwhile func()) {
	l.Helper()
	pid := l.daemon("slurmctld")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		l.Fatal(err)
	}
	meanwhile()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		l.Fatal(err)
	}
	l.eventually("slurmctld goes on", l.pings)
}

// One that is killed comes back with jobs as they were some seconds before: without what epd set since, or
// with what it had set earlier.
func TestAPlanGoesOnWhenSlurmctldComesBack(t *testing.T) {
	l := newLab(t, setup{
		config: strings.Replace(planned, "[live.plan]\nmode = \"enforce\"", "[live.plan]\nmode = \"observe\"", 1),
		roles:  true, waits: true, gpu: "sim:4,busy,model=H200",
	})
	running, jobs := l.crowd("50", "40", "30")
	own := map[string]string{jobs[0]: "3"}
	l.slurm("scontrol", "update", "jobid="+jobs[0], "nice=3")
	untouched := l.saved()
	l.write("config.toml", planned, 0o644)
	l.reloadController()
	l.inOrder("in the plan's order", jobs[2], jobs[1], jobs[0])
	before, earlier := l.nices(), l.saved()

	l.restartSlurmctld(func() {
		if l.status(controller) == nil {
			t.Error("epd doesn't answer while slurmctld is away")
		}
	})
	<-time.After(25 * time.Second) // a step
	l.inOrder("after a restart", jobs[2], jobs[1], jobs[0])
	if now := l.nices(); !maps.Equal(now, before) {
		t.Errorf("nices %v, before the restart %v", now, before)
	}

	state := filepath.Join("slurm", "state", "job_state")
	l.restartSlurmctld(func() { l.write(state, string(untouched), 0o600) })
	l.inOrder("after a restart without any nice of epd's", jobs[2], jobs[1], jobs[0])
	l.slurm("scontrol", "update", "jobid="+jobs[0], "TimeLimit=20") // the plan's first, and the last so far
	l.inOrder("in another order", jobs[0], jobs[2], jobs[1])
	l.restartSlurmctld(func() { l.write(state, string(earlier), 0o600) })
	l.slurm("scontrol", "update", "jobid="+jobs[0], "TimeLimit=20")
	l.inOrder("after a restart with an earlier order", jobs[0], jobs[2], jobs[1])

	l.restartSlurmctld(func() { l.write(state, string(earlier), 0o600) })
	l.allUndone(own)
	l.slurm("scancel", name(running[0]))
	l.eventually("a job starts", func() bool { order, _ := l.queued(); return len(order) == 2 })
	l.undrained()
}

// While slurmctld is away or hangs, what is known of its queue grows old, and the plan with it.
func TestAPlanGrowsStaleWhileSlurmctldIsAway(t *testing.T) {
	l := newLab(t, setup{
		config: planned + "stale_s = 25\n", roles: true, waits: true, gpu: "sim:4,busy,model=H200",
	})
	_, jobs := l.crowd("50", "40", "30")
	wanted := []string{jobs[2], jobs[1], jobs[0]}
	l.inOrder("in the plan's order", wanted...)
	before := l.nices()
	stale := func() bool {
		p := l.steered().Plan
		return p != nil && p.Stale != ""
	}
	for what, away := range map[string]func(func()){
		"is away": l.restartSlurmctld,
		"hangs":   l.hangSlurmctld,
	} {
		begin := time.Now()
		away(func() {
			l.within(patience, "the plan is stale, as slurmctld "+what, stale)
			t.Logf("stale %s after slurmctld %s: %s", time.Since(begin), what, l.steered().Plan.Stale)
			if l.status(controller) == nil {
				t.Error("epd doesn't answer")
			}
		})
		l.within(patience, "the plan counts again", func() bool { return !stale() })
		l.inOrder("in the plan's order again", wanted...)
		<-time.After(25 * time.Second) // a step: nothing is added to what is there
		if now := l.nices(); !maps.Equal(now, before) {
			t.Errorf("nices %v, before slurmctld %s %v", now, what, before)
		}
	}
	l.allUndone(nil)
	l.undrained()
}

// setNode changes a node in Slurm.
func (l *lab) setNode(node string, values ...string) {
	l.Helper()
	l.slurm("scontrol", append([]string{"update", "nodename=" + node}, values...)...)
}

// takeDown has a node be down until it is resumed; one that isn't drained comes back when its slurmd reports.
func (l *lab) takeDown(node string) {
	l.Helper()
	l.setNode(node, "state=drain", "reason=test")
	l.setNode(node, "state=down", "reason=test")
}

// The plan's first wants a node that is down: it keeps nobody else from others. What ran there waits once
// more, and its clocks are given back.
func TestAPlanGoesOnWithoutANodeThatIsDown(t *testing.T) {
	l := newLab(t, setup{
		config: planned, roles: true, waits: true, brief: true, gpu: "sim:4,busy,model=H200",
	})
	lasts := l.submit(l.untilTold(), "--gres=gpu:4", "-w", "n1", "-t", "60")
	lost := l.lockBy("n2", 4, func() int64 {
		return l.submit(l.untilTold(), "--gres=gpu:4", "-w", "n2", "-t", "60", "--requeue",
			"--comment=epplan:fixed=1500")
	})
	work := func(limit string, args ...string) string {
		return name(l.submit("true", append(args, "--gres=gpu:4", "-t", limit)...))
	}
	jobs := []string{work("50"), work("40"), work("5", "-w", "n2")}
	l.inOrder("in the plan's order", jobs[2], jobs[1], jobs[0])
	l.takeDown("n2")
	l.eventually("its clocks are given back", func() bool { return len(l.hardware("n2")) == 0 })
	l.within(patience, "the plan has what ran there, on what is left", func() bool {
		p := l.steered().Plan
		starts := make(map[time.Time]bool)
		for _, j := range p.Jobs {
			starts[j.Start] = true
		}
		return p.Stale == "" && p.Trouble == "" && len(p.Jobs) >= 3 && len(starts) == len(p.Jobs)
	})
	begin := time.Now()
	l.completes(lasts)
	for _, job := range []string{jobs[1], jobs[0]} {
		l.eventually("job "+job+" ends", func() bool {
			return l.slurm("squeue", "-h", "-t", "all", "-o", "%T", "-j", job) == "COMPLETED"
		})
	}
	t.Logf("the others ran %s after the node was free", time.Since(begin))
	l.setNode("n2", "state=resume")
	l.finish(lost)
	for _, job := range []string{jobs[2], name(lost)} {
		l.within(patience, "job "+job+" ends", func() bool {
			return l.slurm("squeue", "-h", "-t", "all", "-o", "%T", "-j", job) == "COMPLETED"
		})
	}
	l.within(patience, "nothing is left", func() bool {
		now := l.steered()
		return now.Nice == 0 && now.Prefer == 0
	})
	l.free(l.names...)
	l.undrained()
}

// A controller that is killed leaves the order as it is; whichever way it comes back, each job gets its
// own nice.
func TestAControllerThatIsKilledUnderAPlanGivesEachJobItsOwnNice(t *testing.T) {
	l := newLab(t, setup{config: planned, roles: true, waits: true, gpu: "sim:4,busy,model=H200"})
	running, jobs := l.crowd("50", "40", "30")
	own := map[string]string{jobs[1]: "7"}
	l.slurm("scontrol", "update", "jobid="+jobs[1], "nice=7")
	wanted := []string{jobs[2], jobs[1], jobs[0]}
	for i, config := range []string{
		planned,
		strings.Replace(planned, "[live]\nmode = \"enforce\"", "[live]\nmode = \"observe\"", 1),
		strings.Replace(planned, "[live.plan]\nmode = \"enforce\"", "[live.plan]\nmode = \"off\"", 1),
	} {
		l.inOrder("in the plan's order", wanted...)
		l.stopEPD(controller, syscall.SIGKILL)
		l.write("config.toml", config, 0o644)
		l.startEPD(controller)
		if i == 0 {
			l.allUndone(own)
		} else {
			l.within(patience, "every nice is its user's own", func() bool {
				_, nice := l.queued()
				return slices.Equal(nice, []string{jobs[1]}) && l.nices()[jobs[1]] == "7"
			})
		}
		l.write("config.toml", planned+strings.Repeat("\n", i+1), 0o644)
		l.reloadController()
	}
	l.inOrder("in the plan's order", wanted...)
	l.stopEPD(controller, syscall.SIGKILL)
	l.slurm("scancel", name(running[0]))
	l.eventually("without a controller the next one starts", func() bool {
		order, _ := l.queued()
		return slices.Equal(order, wanted[1:])
	})
	l.startEPD(controller)
	l.plan(2, "what is left is planned")
	l.allUndone(own)
	l.undrained()
}

// faultsVariable names the seed by which faults are drawn; without it, it is always the same.
const faultsVariable = "EPPLAN_FAULTS_SEED"

// idleFor is how long a GPU may stand idle while a job waits that could have it: Slurm's own scheduler looks
// every few seconds, and all of it on a machine that is busy with tests.
const idleFor = 25 * time.Second

// mishap is one of the faults that are drawn: it ends with everything there again.
type mishap struct {
	name string
	play func()
}

// Faults in an order that is drawn, while jobs of some seconds come and go under a plan: all of them
// complete, none waits beside an idle GPU, and in the end nothing of epd's is left.
func TestJobsUnderAPlanGoOnWhateverHappens(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv(faultsVariable), 10, 64)
	if err != nil {
		seed = 1
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	l := newLab(t, setup{
		config: planned + "stale_s = 10\n", roles: true, waits: true, brief: true, gpu: "sim:4,busy,model=H200",
	})
	faults := l.mishaps(random)
	var jobs []int64
	own := make(map[string]string)
	submit := func(count int) {
		for range count {
			nice := strconv.Itoa(10 * random.IntN(3))
			job := l.submit("sleep "+strconv.Itoa(8+random.IntN(5)), "--gres=gpu:1", "--requeue", "--nice="+nice,
				"-t", strconv.Itoa(2+random.IntN(20)))
			jobs, own[name(job)] = append(jobs, job), nice
		}
	}
	submit(24)
	watch := l.watchIdle()
	for i := range 6 {
		fault := faults[random.IntN(len(faults))]
		<-time.After(time.Duration(random.IntN(5000)) * time.Millisecond)
		t.Logf("fault %d: %s, %d jobs wait", i, fault.name, len(l.nices()))
		fault.play()
		submit(6)
	}
	l.allUndone(own)
	for _, job := range jobs {
		l.within(patience, "job "+name(job)+" ends", func() bool { return l.state(job) == "COMPLETED" })
	}
	watch()
	l.within(patience, "nothing is left", func() bool {
		now := l.steered()
		return now.Nice == 0 && now.Prefer == 0 && now.Weights == 0
	})
	for _, node := range l.names {
		l.within(patience, "the runs of "+node+" are over", func() bool { return len(l.runs(node)) == 0 })
	}
	l.free(l.names...)
	l.undrained()
}

func (l *lab) mishaps(random *rand.Rand) []mishap {
	node := func() string { return l.names[random.IntN(len(l.names))] }
	short := func() { <-time.After(time.Duration(1+random.IntN(15)) * time.Second) }
	configs := 0
	return []mishap{
		{"slurmctld is started again", func() { l.restartSlurmctld(func() {}) }},
		{"slurmctld is away", func() { l.restartSlurmctld(short) }},
		{"slurmctld hangs", func() { l.hangSlurmctld(short) }},
		{"the controller is killed", func() {
			l.stopEPD(controller, syscall.SIGKILL)
			short()
			l.startEPD(controller)
		}},
		{"an agent is killed", func() {
			on := node()
			l.stopEPD(on, syscall.SIGKILL)
			short()
			l.startEPD(on)
		}},
		{"a node is down", func() {
			on := node()
			l.takeDown(on)
			short()
			l.setNode(on, "state=resume")
		}},
		{"a node is drained", func() {
			on := node()
			l.setNode(on, "state=drain", "reason=test")
			short()
			l.setNode(on, "state=resume")
		}},
		{"everything is taken back", func() {
			l.levers("--undo")
			short()
			configs++
			l.write("config.toml", planned+"stale_s = 10\n"+strings.Repeat("\n", configs), 0o644)
			l.reloadController()
		}},
	}
}

// watchIdle watches for jobs that wait though a GPU is idle, until what it returns is called.
func (l *lab) watchIdle() (stop func()) {
	l.Helper()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var since time.Time // when a GPU began to be idle beside a job that waits; zero: none is
		for {
			switch waiting, idle, ok := l.idleGPUs(); {
			case !ok || waiting == 0 || idle == 0:
				since = time.Time{}
			case since.IsZero():
				since = time.Now()
			case time.Since(since) > idleFor:
				jobs, _ := l.trySlurm("squeue", "-t", "PD,R", "-o", "%A %T %Q %y %r %S")
				nodes, _ := l.trySlurm("sinfo", "-N", "-o", "%N %T %E %G")
				l.Errorf("%d jobs wait while %d GPUs are idle for %s:\n%s\n%s", waiting, idle, time.Since(since), jobs,
					nodes)
				since = time.Time{}
			}
			select {
			case <-end:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// idleGPUs returns how many jobs could start but for their turn, and how many GPUs nobody has on nodes that
// take jobs; not ok: Slurm doesn't say.
func (l *lab) idleGPUs() (waiting, idle int, ok bool) {
	l.Helper()
	jobs, err := l.trySlurm("squeue", "-h", "-o", "%t %r")
	if err != nil {
		return 0, 0, false
	}
	nodes, err := l.trySlurm("sinfo", "-h", "-N", "-p", "main", "-o", "%T")
	if err != nil {
		return 0, 0, false
	}
	for node := range strings.Lines(nodes) {
		switch strings.TrimSpace(node) {
		case "idle", "mixed", "allocated":
			idle += l.gpus
		}
	}
	for job := range strings.Lines(jobs) {
		switch strings.TrimSpace(job) {
		case "PD Priority", "PD Resources", "PD None":
			waiting++
		default:
			if !strings.HasPrefix(job, "PD ") {
				idle-- // each has one
			}
		}
	}
	return waiting, max(0, idle), true
}
