package live_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

const enforce = "[live]\nmode = \"enforce\"\nhold_out = 0\n"

// fixed is a comment that wishes for a core clock of the simulated V100.
const fixed = "--comment=epplan:fixed=1087"

func TestAJobsClocksAreLockedAndGivenBackAndItsOutcomeIsRecorded(t *testing.T) {
	l := startLab(t, enforce)
	job := l.submit("sleep 3", "--gres=gpu:2", "-w", "n1", fixed)
	l.eventually("two GPUs are locked", func() bool { return len(l.locked("n1")) == 2 })
	if got := slices.Sorted(maps.Values(l.locked("n1"))); !slices.Equal(got, []float64{1087, 1087}) {
		t.Errorf("locked at %v MHz, want 1087", got)
	}
	if got := l.locked("n2"); len(got) != 0 {
		t.Errorf("n2 has %v locked", got)
	}
	l.eventually("the job ends", func() bool { return l.state(job) == "COMPLETED" })
	l.eventually("its outcome is recorded", func() bool { return l.status("n1").Totals.Outcomes == 1 })
	if got := l.locked("n1"); len(got) != 0 {
		t.Errorf("still locked: %v", got)
	}
	l.undrained()
	list := l.outcomes("n1", job)
	if len(list) != 1 {
		t.Fatalf("%d outcomes, want 1", len(list))
	}
	o := list[0]
	if o.ExitState != record.Completed || len(o.GPUs) != 2 || o.Setting.Core != 1087 || o.Node != "n1" {
		t.Errorf("outcome %+v", o)
	}
	if seconds := o.TimeS.Or(0); seconds < 2 || seconds > 30 {
		t.Errorf("took %v s, want about 3", seconds)
	}
	if joules := o.GPUEnergyJ.Or(0); joules <= 0 {
		t.Errorf("energy %v J", joules)
	}
}

func TestJobsThatDontWantItRunAtDefaultClocks(t *testing.T) {
	l := startLab(t, enforce)
	for script, args := range map[string][]string{
		"sleep 1":   {"--comment=epplan:off", "--gres=gpu:1"},
		"sleep 1.1": {"--gres=gpu:1"}, // nothing is known of it yet
		"sleep 1.2": {fixed},          // no GPU
	} {
		job := l.submit(script, append(args, "-w", "n1")...)
		l.eventually("the job runs", func() bool { return l.state(job) != "PENDING" })
		l.eventually("the job ends", func() bool {
			if got := l.locked("n1"); len(got) != 0 {
				t.Errorf("%q: locked %v", args, got)
			}
			return l.state(job) == "COMPLETED"
		})
	}
	l.undrained()
}

func TestAWorkloadThatIsKnownGetsOtherClocks(t *testing.T) {
	l := startLab(t, enforce)
	first := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1")
	l.eventually("the job ends", func() bool { return l.state(first) == "COMPLETED" })
	l.eventually("a model is made of its outcome", func() bool { return l.status("n1").Totals.Models == 1 })
	second := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", "-J", "renamed")
	l.eventually("its clocks are locked", func() bool { return len(l.locked("n1")) == 1 })
	for _, core := range l.locked("n1") {
		if core >= 1380 {
			t.Errorf("locked at %v MHz, want less than the default", core)
		}
	}
	l.eventually("the job ends", func() bool { return l.state(second) == "COMPLETED" })
	l.eventually("both are recorded", func() bool { return l.status("n1").Totals.Outcomes == 2 })
	l.undrained()
}

func TestObservingTouchesNothingUntilTheConfigurationChanges(t *testing.T) {
	l := startLab(t, "")
	job := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", fixed)
	l.eventually("the run is seen", func() bool { return len(l.status("n1").Runs) == 1 })
	if got := l.locked("n1"); len(got) != 0 {
		t.Errorf("observing, but %v is locked", got)
	}
	l.eventually("the job ends", func() bool { return l.state(job) == "COMPLETED" })

	// A file that is wrong changes nothing; a right one counts for the next job.
	for _, config := range []string{"[live]\nmode = \"enforced\"\n", enforce} {
		l.write("config.toml", config, 0o644)
		if err := l.epds["n1"].Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		wrong := config != enforce
		l.eventually("epd says what it made of the file", func() bool {
			log, err := os.ReadFile(l.dir + "/n1.log")
			return err == nil && strings.Contains(string(log), map[bool]string{true: "not reloaded", false: "configuration reloaded"}[wrong])
		})
		job := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", fixed)
		l.eventually("the run is seen", func() bool { return slices.ContainsFunc(l.runs("n1"), func(j int64) bool { return j == job }) })
		if got := len(l.locked("n1")); (got == 0) != wrong {
			t.Errorf("%q: %d GPUs locked", config, got)
		}
		l.eventually("the job ends", func() bool { return l.state(job) == "COMPLETED" })
	}
	l.undrained()
}

// runs are the jobs of a node's open runs.
func (l *lab) runs(node string) []int64 {
	var jobs []int64
	for _, r := range l.status(node).Runs {
		if !r.Ended {
			jobs = append(jobs, int64(r.Job))
		}
	}
	return jobs
}

func TestACancelledJobsClocksAreGivenBackAndItIsNotTakenForADoneOne(t *testing.T) {
	l := startLab(t, enforce)
	job := l.submit("sleep 60", "--gres=gpu:1", "-w", "n2", fixed)
	l.eventually("a GPU is locked", func() bool { return len(l.locked("n2")) == 1 })
	l.slurm("scancel", strconv.FormatInt(job, 10))
	l.eventually("the job ends", func() bool { return l.state(job) == "CANCELLED" })
	l.eventually("its outcome is recorded", func() bool { return l.status("n2").Totals.Outcomes == 1 })
	if got := l.locked("n2"); len(got) != 0 {
		t.Errorf("still locked: %v", got)
	}
	l.undrained()
	if list := l.outcomes("n2", job); len(list) != 1 || list[0].ExitState != "CANCELLED" {
		t.Errorf("outcomes %+v", list)
	}
}

func TestAJobOnManyNodesIsARunOnEach(t *testing.T) {
	l := startLab(t, enforce)
	job := l.submit("sleep 3", "-N", "2", "--gres=gpu:3", fixed)
	l.eventually("three GPUs of both nodes are locked", func() bool { return len(l.locked("n1")) == 3 && len(l.locked("n2")) == 3 })
	l.eventually("the job ends", func() bool { return l.state(job) == "COMPLETED" })
	for _, node := range []string{"n1", "n2"} {
		l.eventually("its outcome is recorded on "+node, func() bool { return l.status(node).Totals.Outcomes == 1 })
		if got := l.locked(node); len(got) != 0 {
			t.Errorf("%s: still locked: %v", node, got)
		}
	}
	l.undrained()
}

func TestAnEPDThatIsKilledLeavesNoClockLockedAndLosesNoOutcome(t *testing.T) {
	l := startLab(t, enforce)
	job := l.submit("sleep 4", "--gres=gpu:1", "-w", "n1", fixed)
	l.eventually("a GPU is locked", func() bool { return len(l.locked("n1")) == 1 })
	l.stopEPD("n1", syscall.SIGKILL)
	l.eventually("the job ends without epd", func() bool { return l.state(job) == "COMPLETED" })
	if text, err := os.ReadFile(l.dir + "/epilog.log"); err != nil || !strings.Contains(string(text), "can't reach epd") {
		t.Errorf("epilog.log: %s, %v", text, err)
	}
	// The Epilog ran epd restore: the entry is gone before epd is back.
	entries, err := os.ReadDir(l.dir + "/n1/journal")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			t.Errorf("the journal still has %s", e.Name())
		}
	}
	l.startEPD("n1")
	if got := l.locked("n1"); len(got) != 0 {
		t.Errorf("locked after the restart: %v", got)
	}
	l.undrained()
}

func TestWithoutEPDJobsRunAndNodesStay(t *testing.T) {
	l := startLab(t, enforce)
	l.stopEPD("n1", syscall.SIGTERM)
	job := l.submit("true", "--gres=gpu:1", "-w", "n1", fixed)
	l.eventually("the job ends", func() bool { return l.state(job) == "COMPLETED" })

	// An epd that hangs: stopped, its socket still takes connections.
	if err := l.epds["n2"].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	job = l.submit("true", "--gres=gpu:1", "-w", "n2", fixed)
	l.eventually("the job ends beside a hung epd", func() bool { return l.state(job) == "COMPLETED" })
	if err := l.epds["n2"].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	l.undrained()
}

func TestASubmissionGetsATokenByWhichItsScriptIsKnownAtTheStart(t *testing.T) {
	l := startLab(t, enforce)
	first := l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", "-J", "one name")
	second := l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", "-J", "another name\n|\"$(reboot)")
	other := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", "-J", "one name")
	cpus := l.submit("sleep 1", "-w", "n1")
	workloads := make(map[int64]string)
	for _, job := range []int64{first, second, other} {
		l.eventually("the job ends", func() bool { return l.state(job) == "COMPLETED" })
		if text := l.slurm("scontrol", "show", "job", strconv.FormatInt(job, 10)); !strings.Contains(text, "AdminComment=epplan:") {
			t.Errorf("no token:\n%s", text)
		}
	}
	l.eventually("the outcomes are recorded", func() bool { return l.status("n1").Totals.Outcomes == 3 })
	if text := l.slurm("scontrol", "show", "job", strconv.FormatInt(cpus, 10)); strings.Contains(text, "epplan:") {
		t.Errorf("a job without GPUs got a token:\n%s", text)
	}
	l.undrained()
	l.stopEPD("n1", os.Interrupt)
	for _, job := range []int64{first, second, other} {
		for _, o := range l.recorded("n1", job) {
			workloads[job] = o.Workload
		}
	}
	if workloads[first] == "" || workloads[first] != workloads[second] || workloads[first] == workloads[other] {
		t.Errorf("workloads %v: want the script to tell, whatever the name", workloads)
	}
}

func TestWithoutAControllerSubmissionsGoThroughAsTheyAre(t *testing.T) {
	l := startLab(t, enforce)
	l.stopEPD("n1", os.Interrupt)
	job := l.submit("true", "--gres=gpu:1", "-w", "n2")
	l.eventually("the job ends", func() bool { return l.state(job) == "COMPLETED" })
	l.undrained()
}

func TestARequeuedJobIsTwoRuns(t *testing.T) {
	l := startLab(t, enforce)
	job := l.submit("sleep 4", "--gres=gpu:1", "-w", "n1", "--requeue", fixed)
	l.eventually("a GPU is locked", func() bool { return len(l.locked("n1")) == 1 })
	id := strconv.FormatInt(job, 10)
	l.slurm("scontrol", "requeue", id)
	l.eventually("the clocks are given back", func() bool { return len(l.locked("n1")) == 0 })
	l.eventually("the job waits", func() bool { return l.state(job) == "PENDING" })
	// slurmd runs no Prolog for a job that starts again in the very seconds in
	// which it ended.
	<-time.After(3 * time.Second)
	l.slurm("scontrol", "update", "jobid="+id, "StartTime=now")
	l.eventually("a GPU is locked again", func() bool { return len(l.locked("n1")) == 1 })
	l.eventually("the job ends", func() bool { return l.state(job) == "COMPLETED" })
	l.eventually("both runs are recorded", func() bool { return l.status("n1").Totals.Outcomes == 2 })
	if got := l.locked("n1"); len(got) != 0 {
		t.Errorf("still locked: %v", got)
	}
	l.undrained()
	if list := l.outcomes("n1", job); len(list) != 2 || list[0].RunID == list[1].RunID {
		t.Errorf("outcomes %+v, want two of different runs", list)
	}
}

func TestTwoJobsOnOneGPURunAtDefaultClocks(t *testing.T) {
	l := startLab(t, enforce, "--shards", "2", "--gpus", "1")
	first := l.submit("sleep 3", "--gres=shard:1", "-w", "n1", fixed)
	l.eventually("a GPU is locked", func() bool { return len(l.locked("n1")) == 1 })
	second := l.submit("sleep 8", "--gres=shard:1", "-w", "n1", fixed)
	l.eventually("both runs are open, at default clocks", func() bool { return len(l.runs("n1")) == 2 && len(l.locked("n1")) == 0 })
	l.eventually("the first job ends", func() bool { return l.state(first) == "COMPLETED" && len(l.runs("n1")) == 1 })
	l.eventually("the second job ends", func() bool { return l.state(second) == "COMPLETED" })
	l.eventually("both are recorded", func() bool { return l.status("n1").Totals.Outcomes == 2 })
	if got := l.locked("n1"); len(got) != 0 {
		t.Errorf("still locked: %v", got)
	}
	l.undrained()
}

func TestEachTaskOfAnArrayAndEachPartOfAHetJobIsARun(t *testing.T) {
	l := startLab(t, enforce)
	array := l.submit("sleep 2", "--array=0-2", "--gres=gpu:1", "-w", "n1", fixed)
	l.eventually("three GPUs are locked", func() bool { return len(l.locked("n1")) == 3 })
	l.eventually("the array ends", func() bool { return l.state(array) == "COMPLETED" && len(l.runs("n1")) == 0 })
	l.eventually("its outcomes are recorded", func() bool { return l.status("n1").Totals.Outcomes == 3 })
	het := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", fixed, ":", "--gres=gpu:2", "-w", "n2")
	l.eventually("the parts' GPUs are locked", func() bool { return len(l.locked("n1")) == 1 })
	l.eventually("the job ends", func() bool { return l.state(het) == "COMPLETED" && len(l.runs("n1"))+len(l.runs("n2")) == 0 })
	l.eventually("its outcomes are recorded", func() bool {
		return l.status("n1").Totals.Outcomes == 4 && l.status("n2").Totals.Outcomes == 1
	})
	if got := len(l.locked("n1")) + len(l.locked("n2")); got != 0 {
		t.Errorf("%d GPUs still locked", got)
	}
	l.undrained()
}

func TestSlurmMayBeReconfiguredUnderARun(t *testing.T) {
	l := startLab(t, enforce)
	job := l.submit("sleep 3", "--gres=gpu:1", "-w", "n1", fixed)
	l.eventually("a GPU is locked", func() bool { return len(l.locked("n1")) == 1 })
	l.slurm("scontrol", "reconfigure")
	l.eventually("the job ends", func() bool { return l.state(job) == "COMPLETED" })
	l.eventually("its outcome is recorded", func() bool { return l.status("n1").Totals.Outcomes == 1 })
	if got := l.locked("n1"); len(got) != 0 {
		t.Errorf("still locked: %v", got)
	}
	l.undrained()
}

// Its Epilog comes only when slurmctld is back, and without a list of GPUs.
func TestAJobThatEndsWhileSlurmctldIsAwayGivesItsClocksBack(t *testing.T) {
	l := startLab(t, enforce)
	job := l.submit("sleep 3", "--gres=gpu:2", "-w", "n1", fixed)
	l.eventually("two GPUs are locked", func() bool { return len(l.locked("n1")) == 2 })
	text, err := os.ReadFile(l.dir + "/slurm/run/slurmctld.pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	l.eventually("slurmctld is gone", func() bool {
		_, err := os.Stat(l.dir + "/slurm/run/slurmctld.pid")
		return err != nil || syscall.Kill(pid, 0) != nil
	})
	<-time.After(4 * time.Second) // the job ends
	l.slurm("slurmctld", "-f", l.conf)
	l.eventually("slurmctld is back", l.pings)
	l.eventually("the job is known to have ended", func() bool { return l.state(job) == "COMPLETED" })
	l.eventually("its outcome is recorded", func() bool { return l.status("n1").Totals.Outcomes == 1 })
	if got := l.locked("n1"); len(got) != 0 {
		t.Errorf("still locked: %v", got)
	}
	l.undrained()
}
