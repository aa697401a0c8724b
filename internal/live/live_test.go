package live_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

const enforce = "[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0\n"

// fixed is a comment that wishes for a core clock of the simulated V100.
const fixed = "--comment=epplan:fixed=1087"

func TestAJobsClocksAreLockedAndGivenBackAndItsOutcomeIsRecorded(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n1", 2, "sleep 3")
	if got := slices.Sorted(maps.Values(l.locked("n1"))); !slices.Equal(got, []float64{1087, 1087}) {
		t.Errorf("locked at %v MHz, want 1087", got)
	}
	if got := l.locked("n2"); len(got) != 0 {
		t.Errorf("n2 has %v locked", got)
	}
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 1)
	l.free("n1")
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
	first := l.known(func() int64 { return l.submit("sleep 2", "--gres=gpu:1", "-w", "n1") })
	l.ends(first, "COMPLETED")
	l.eventually("a model is made of its outcome", func() bool { return l.status("n1").Totals.Models == 1 })
	second := l.known(func() int64 { return l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", "-J", "renamed") })
	l.eventually("its clocks are locked", func() bool { return len(l.locked("n1")) == 1 })
	for _, core := range l.locked("n1") {
		if core >= 1380 {
			t.Errorf("locked at %v MHz, want less than the default", core)
		}
	}
	l.ends(second, "COMPLETED")
	l.recordedBy("n1", 2)
	l.undrained()
}

func TestObservingTouchesNothingUntilTheConfigurationChanges(t *testing.T) {
	l := startLab(t, "")
	job := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", fixed)
	l.eventually("the run is seen", func() bool { return len(l.status("n1").Runs) == 1 })
	if got := l.locked("n1"); len(got) != 0 {
		t.Errorf("observing, but %v is locked", got)
	}
	l.ends(job, "COMPLETED")

	// A file that is wrong changes nothing; a right one counts for the next job.
	for _, config := range []string{"[live]\nmode = \"enforced\"\n", enforce} {
		l.write("config.toml", config, 0o644)
		l.signal("n1", syscall.SIGHUP)
		wrong := config != enforce
		l.eventually("epd says what it made of the file", func() bool {
			return strings.Contains(l.read("n1.log"), map[bool]string{true: "not reloaded", false: "configuration reloaded"}[wrong])
		})
		job := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", fixed)
		l.eventually("the run is seen", func() bool { return slices.ContainsFunc(l.runs("n1"), func(j int64) bool { return j == job }) })
		if got := len(l.locked("n1")); (got == 0) != wrong {
			t.Errorf("%q: %d GPUs locked", config, got)
		}
		l.ends(job, "COMPLETED")
	}
	l.undrained()
}

func TestACancelledJobsClocksAreGivenBackAndItIsNotTakenForADoneOne(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n2", 1, "sleep 60")
	l.slurm("scancel", name(job))
	l.ends(job, "CANCELLED")
	l.recordedBy("n2", 1)
	l.free("n2")
	l.undrained()
	if list := l.outcomes("n2", job); len(list) != 1 || list[0].ExitState != "CANCELLED" {
		t.Errorf("outcomes %+v", list)
	}
}

func TestAJobOnManyNodesIsARunOnEach(t *testing.T) {
	l := startLab(t, enforce)
	job := l.submit("sleep 3", "-N", "2", "--gres=gpu:3", fixed)
	l.eventually("three GPUs of both nodes are locked", func() bool { return len(l.locked("n1")) == 3 && len(l.locked("n2")) == 3 })
	l.ends(job, "COMPLETED")
	for _, node := range []string{"n1", "n2"} {
		l.recordedBy(node, 1)
		l.free(node)
	}
	l.undrained()
}

func TestAnEPDThatIsKilledLeavesNoClockLockedAndLosesNoOutcome(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n1", 1, "sleep 4")
	l.stopEPD("n1", syscall.SIGKILL)
	l.ends(job, "COMPLETED")
	if text := l.read("epilog.log"); !strings.Contains(text, "can't reach epd") {
		t.Errorf("epilog.log: %s", text)
	}
	l.free("n1") // the Epilog ran epd restore: the entry is gone before epd is back
	l.startEPD("n1")
	l.free("n1")
	l.undrained()
}

func TestWithoutEPDJobsRunAndNodesStay(t *testing.T) {
	l := startLab(t, enforce)
	l.stopEPD("n1", syscall.SIGTERM)
	job := l.submit("true", "--gres=gpu:1", "-w", "n1", fixed)
	l.ends(job, "COMPLETED")

	// An epd that hangs: stopped, its socket still takes connections.
	l.signal("n2", syscall.SIGSTOP)
	job = l.submit("true", "--gres=gpu:1", "-w", "n2", fixed)
	l.ends(job, "COMPLETED")
	l.signal("n2", syscall.SIGCONT)
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
		l.ends(job, "COMPLETED")
		if text := l.slurm("scontrol", "show", "job", name(job)); !strings.Contains(text, "AdminComment=epplan:") {
			t.Errorf("no token:\n%s", text)
		}
	}
	l.recordedBy("n1", 3)
	if text := l.slurm("scontrol", "show", "job", name(cpus)); strings.Contains(text, "epplan:") {
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
	l.ends(job, "COMPLETED")
	l.undrained()
}

func TestTwoJobsOnOneGPURunAtDefaultClocks(t *testing.T) {
	l := startLab(t, enforce, "--shards", "2", "--gpus", "1")
	first := l.submit("sleep 3", "--gres=shard:1", "-w", "n1", fixed)
	l.eventually("a GPU is locked", func() bool { return len(l.locked("n1")) == 1 })
	second := l.submit("sleep 8", "--gres=shard:1", "-w", "n1", fixed)
	l.eventually("both runs are open, at default clocks", func() bool { return len(l.runs("n1")) == 2 && len(l.locked("n1")) == 0 })
	l.eventually("the first job ends", func() bool { return l.state(first) == "COMPLETED" && len(l.runs("n1")) == 1 })
	l.ends(second, "COMPLETED")
	l.recordedBy("n1", 2)
	l.free("n1")
	l.undrained()
}

func TestEachTaskOfAnArrayAndEachPartOfAHetJobIsARun(t *testing.T) {
	l := startLab(t, enforce)
	array := l.submit("sleep 2", "--array=0-2", "--gres=gpu:1", "-w", "n1", fixed)
	l.eventually("three GPUs are locked", func() bool { return len(l.locked("n1")) == 3 })
	l.eventually("the array ends", func() bool { return l.state(array) == "COMPLETED" && len(l.runs("n1")) == 0 })
	l.recordedBy("n1", 3)
	het := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", fixed, ":", "--gres=gpu:2", "-w", "n2")
	l.eventually("the parts are seen", func() bool { return slices.Contains(l.runs("n1"), het) && slices.Contains(l.runs("n2"), het+1) })
	l.eventually("the job ends", func() bool { return l.state(het) == "COMPLETED" && len(l.runs("n1"))+len(l.runs("n2")) == 0 })
	l.recordedBy("n1", 4)
	l.recordedBy("n2", 1)
	l.free("n1", "n2")
	l.undrained()
}

func TestSlurmMayBeReconfiguredUnderARun(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n1", 1, "sleep 3")
	l.slurm("scontrol", "reconfigure")
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 1)
	l.free("n1")
	l.undrained()
}

// Its Epilog comes only when slurmctld is back, and without a list of GPUs.
func TestAJobThatEndsWhileSlurmctldIsAwayGivesItsClocksBack(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n1", 2, "sleep 3")
	l.stopDaemon("slurmctld", syscall.SIGTERM)
	<-time.After(4 * time.Second) // the job ends
	l.startDaemon("slurmctld")
	l.eventually("slurmctld is back", l.pings)
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 1)
	if seen := l.read("epilog.seen"); !strings.Contains(seen, "gpus= ") {
		t.Errorf("the Epilog was told of GPUs: %s", seen)
	}
	l.free("n1")
	l.undrained()
}
