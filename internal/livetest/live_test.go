package livetest_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
)

const enforce = "[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0\nmax_slowdown = 1.5\n"

// fixed is a comment that wishes for a core clock of the simulated V100.
const fixed = "--comment=epplan:fixed=1087"

func TestAJobsClocksAreLockedAndGivenBackAndItsOutcomeIsRecorded(t *testing.T) {
	l := startLab(t, enforce)
	submitted := time.Now()
	job := l.lock("n1", 2)
	if got := slices.Sorted(maps.Values(l.locked("n1"))); !slices.Equal(got, []dvfsmodel.MHz{1087, 1087}) {
		t.Errorf("locked at %v MHz, want 1087", got)
	}
	if got := l.locked("n2"); len(got) != 0 {
		t.Errorf("n2 has %v locked", got)
	}
	const work = 3 * time.Second
	<-time.After(work)
	l.completes(job)
	most := time.Since(submitted).Seconds()
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
	if seconds := o.TimeS.Or(0); seconds < work.Seconds()-1 || seconds > most {
		t.Errorf("took %v s, want %v and at most %.1f, from its submission to its end", seconds, work, most)
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
		// Where a busy machine keeps epd from the script in time, its name tells a workload.
		job := l.submit(script, append(args, "-w", "n1", "-J", script)...)
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
	l.models("n1", 1)
	second, tried := l.lowered("n1", func() int64 {
		return l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", "-J", "renamed")
	})
	l.ends(second, "COMPLETED")
	l.recordedBy("n1", 1+int64(tried))
	l.undrained()
}

func TestObservingTouchesNothingUntilTheConfigurationChanges(t *testing.T) {
	l := startLab(t, "")
	var job int64
	l.held(func() {
		job = l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", fixed)
		l.eventually("the run is seen", func() bool { return len(l.says("n1").Runs) == 1 })
		if got := l.locked("n1"); len(got) != 0 {
			t.Errorf("observing, but %v is locked", got)
		}
	}, "n1")
	l.ends(job, "COMPLETED")

	// A file that is wrong changes nothing; a right one counts for the next job.
	for _, config := range []string{"[live]\nmode = \"enforced\"\n", enforce} {
		l.write("config.toml", config, 0o644)
		l.signal("n1", syscall.SIGHUP)
		wrong := config != enforce
		l.eventually("epd says what it made of the file", func() bool {
			return strings.Contains(l.read("n1.log"),
				map[bool]string{true: "not reloaded", false: "configuration reloaded"}[wrong])
		})
		if !wrong {
			l.completes(l.lock("n1", 1))
			continue
		}
		l.held(func() {
			job = l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", fixed)
			l.eventually("the run is seen", func() bool { return slices.Contains(l.runs("n1"), job) })
			if got := l.locked("n1"); len(got) > 0 {
				t.Errorf("%q: locked %v", config, got)
			}
		}, "n1")
		l.ends(job, "COMPLETED")
	}
	l.undrained()
}

func TestACancelledJobsClocksAreGivenBackAndItIsNotTakenForADoneOne(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n2", 1)
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
	job := l.locks(map[string]int{"n1": 3, "n2": 3}, 2,
		func() int64 { return l.submit("sleep 1", "-N", "2", "--gres=gpu:3", fixed) })
	l.ends(job, "COMPLETED")
	for _, node := range []string{"n1", "n2"} {
		l.recordedBy(node, 1)
		l.free(node)
	}
	l.undrained()
}

func TestAnEPDThatIsKilledLeavesNoClockLockedAndLosesNoOutcome(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n1", 1)
	l.stopEPD("n1", syscall.SIGKILL)
	l.completes(job)
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
	l.signal("n1", syscall.SIGSTOP)
	unheard := l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", "-J", "a name that nobody heard")
	l.signal("n1", syscall.SIGCONT)
	workloads := make(map[int64]string)
	for _, job := range []int64{first, second, other} {
		l.ends(job, "COMPLETED")
		if text := l.slurm("scontrol", "show", "job", name(job)); !strings.Contains(text,
			"AdminComment=epplan:") {
			t.Errorf("no token:\n%s", text)
		}
	}
	l.ends(unheard, "COMPLETED")
	l.recordedBy("n1", 4)
	if text := l.slurm("scontrol", "show", "job", name(cpus)); strings.Contains(text, "epplan:") {
		t.Errorf("a job without GPUs got a token:\n%s", text)
	}
	l.undrained()
	l.stopEPD("n1", os.Interrupt)
	for _, job := range []int64{first, second, other, unheard} {
		for _, o := range l.recorded("n1", job) {
			workloads[job] = o.Workload
		}
	}
	if workloads[first] == "" || workloads[first] != workloads[second] ||
		workloads[first] != workloads[unheard] || workloads[first] == workloads[other] {
		t.Errorf("workloads %v of %d, %d, %d and %d: want the script to tell, whatever the name", workloads,
			first, second, unheard, other)
	}
}

func TestWithoutAControllerSubmissionsGoThroughAsTheyAre(t *testing.T) {
	l := startLab(t, enforce)
	l.stopEPD("n1", os.Interrupt)
	job := l.submit("true", "--gres=gpu:1", "-w", "n2")
	l.ends(job, "COMPLETED")
	l.undrained()
}

func TestJobsOnPartsOfAGPURunAtDefaultClocksAloneAndTogether(t *testing.T) {
	l := startLab(t, enforce, "--shards", "2", "--gpus", "1")
	submit := func() int64 { return l.submit(l.untilTold(), "--gres=shard:1", "-w", "n1", fixed) }
	first := submit()
	l.eventually("one run is open", func() bool { return len(l.runs("n1")) == 1 })
	second := submit()
	l.eventually("both runs are open", func() bool {
		if locked := l.locked("n1"); len(locked) > 0 {
			t.Fatalf("locked: %v", locked)
		}
		return len(l.runs("n1")) == 2
	})
	l.completes(first)
	l.eventually("one run is open", func() bool { return len(l.runs("n1")) == 1 })
	l.completes(second)
	l.recordedBy("n1", 2)
	l.free("n1")
	l.undrained()
}

func TestEachTaskOfAnArrayAndEachPartOfAHetJobIsARun(t *testing.T) {
	l := startLab(t, enforce)
	array := l.locks(map[string]int{"n1": 3}, 3,
		func() int64 { return l.submit("sleep 1", "--array=0-2", "--gres=gpu:1", "-w", "n1", fixed) })
	var het int64
	l.eventually("the array ends", func() bool {
		return l.state(array) == "COMPLETED" && len(l.runs("n1")) == 0
	})
	l.recordedBy("n1", 3)
	l.held(func() {
		het = l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", fixed, ":", "--gres=gpu:2", "-w", "n2")
		l.eventually("the parts are seen", func() bool {
			return slices.Contains(l.runs("n1"), het) && slices.Contains(l.runs("n2"), het+1)
		})
	}, "n1", "n2")
	l.eventually("the job ends", func() bool {
		return l.state(het) == "COMPLETED" && len(l.runs("n1"))+len(l.runs("n2")) == 0
	})
	l.recordedBy("n1", 4)
	l.recordedBy("n2", 1)
	l.free("n1", "n2")
	l.undrained()
}

func TestSlurmMayBeReconfiguredUnderARun(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n1", 1)
	l.slurm("scontrol", "reconfigure")
	l.completes(job)
	l.recordedBy("n1", 1)
	l.free("n1")
	l.undrained()
}

// Its Epilog comes only when slurmctld is back, and without a list of GPUs.
func TestAJobThatEndsWhileSlurmctldIsAwayGivesItsClocksBack(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n1", 2)
	l.stopDaemon("slurmctld", syscall.SIGTERM)
	l.finish(job)
	l.eventually("the job's work is done", func() bool { return l.finished(job) })
	l.startDaemon("slurmctld")
	l.eventually("slurmctld is back", l.pings)
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 1)
	if seen := l.seen("epilog", job); !strings.Contains(seen, "gpus= ") {
		t.Errorf("the Epilog was told of GPUs: %s", seen)
	}
	l.free("n1")
	l.undrained()
}
