package livetest_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
	"github.com/epplan/epplan/live"
)

// reload puts a configuration in the place of the one in force and waits until
// epd on n1 has said what it makes of it.
func (l *lab) reload(config, says string) {
	l.Helper()
	before := strings.Count(l.read("n1.log"), says)
	l.write("config.toml", config, 0o644)
	l.signal("n1", syscall.SIGHUP)
	l.eventually("epd: "+says, func() bool { return strings.Count(l.read("n1.log"), says) > before })
}

func TestAdviceIsRecordedAndNotFollowed(t *testing.T) {
	l := startLab(t, strings.Replace(enforce, "enforce", "advise", 1))
	for i, args := range [][]string{{}, {}, {fixed}} { // nothing is known yet; a model's clocks; the user's
		job := l.known(func() int64 {
			return l.submit("sleep 2", append(args, "--gres=gpu:1", "-w", "n1")...)
		})
		if got := l.hardware("n1"); len(got) > 0 {
			t.Errorf("locked %v", got)
		}
		l.ends(job, "COMPLETED")
		l.recordedBy("n1", int64(i+1))
		if i == 0 {
			l.models("n1", 1)
		}
		list := l.decisions(job)
		if len(list) != 1 || list[0].Mode != "advise" {
			t.Fatalf("decisions %+v", list)
		}
		core, said := list[0].Setting.Core, strings.HasPrefix(list[0].Reason, "advice: ")
		if want := i > 0; said != want || (core > 0) != want || core >= 1380 {
			t.Errorf("decided for core %v MHz: %s", core, list[0].Reason)
		}
		if o := l.once("n1", job, "COMPLETED"); o.Setting.Core != 0 {
			t.Errorf("recorded at %v MHz, and nothing was locked", o.Setting.Core)
		}
	}
	l.free("n1")
	l.undrained()
}

func TestAWeightEditedWhileJobsRunChangesTheNextDecision(t *testing.T) {
	l := startLab(t, enforce)
	one := func() int64 { return l.submit(l.untilTold(), "--gres=gpu:1", "-w", "n1") }
	submit := func() int64 { return l.known(one) }
	first := submit()
	<-time.After(3 * time.Second) // of work
	l.completes(first)
	l.models("n1", 1)

	saving, tried := l.lowered("n1", one)
	before := slices.Collect(maps.Values(l.hardware("n1")))
	l.reload("[objective]\nenergy_weight = 1\ntime_weight = 1e6\n"+enforce, "configuration reloaded")
	fast := submit()
	if after := slices.Collect(maps.Values(l.hardware("n1"))); !slices.Equal(before, after) {
		t.Errorf("locked %v, want what was before, %v: the run that goes on and no other", after, before)
	}
	l.reload("[objective]\nenergy_wieght = 1\n"+enforce, "not reloaded")
	still := submit()
	for _, job := range []int64{saving, fast, still} {
		l.completes(job)
	}
	l.recordedBy("n1", 3+int64(tried))
	l.free("n1")
	l.undrained()
	l.stopEPD("n1", os.Interrupt)
	old, edited, wrong := l.decisions(saving)[0], l.decisions(fast)[0], l.decisions(still)[0]
	if old.Setting.Core == 0 || edited.Setting.Core != 0 || wrong.Setting.Core != 0 {
		t.Errorf("decided for %v, %v, %v", old.Setting, edited.Setting, wrong.Setting)
	}
	if edited.Workload != old.Workload || edited.Reason != "default clocks are the best ones" {
		t.Errorf("workloads %s and %s: %s", old.Workload, edited.Workload, edited.Reason)
	}
	if old.ConfigVersion == edited.ConfigVersion || edited.ConfigVersion != wrong.ConfigVersion {
		t.Errorf("configurations %s, %s, %s", old.ConfigVersion, edited.ConfigVersion, wrong.ConfigVersion)
	}
}

// What a job was submitted with isn't what counts when it starts.
func TestALimitAndAPartitionThatWereChangedCountAsTheyAreAtTheStart(t *testing.T) {
	l := startLab(t, enforce+"modes = {low = \"observe\"}\n")
	job := l.submit(l.untilTold(), "--gres=gpu:1", "-w", "n1", "-H", "-t", "30", fixed)
	l.slurm("scontrol", "update", "jobid="+name(job), "TimeLimit=7")
	l.slurm("scontrol", "update", "jobid="+name(job), "Partition=low")
	other := l.lockBy("n1", 1, func() int64 {
		other := l.submit(l.untilTold(), "--gres=gpu:1", "-w", "n1", "-H", "-p", "low", fixed)
		l.slurm("scontrol", "update", "jobid="+name(other), "Partition=main")
		l.slurm("scontrol", "release", name(other))
		return other
	})
	l.slurm("scontrol", "release", name(job))
	l.decided(job)
	l.eventually("both run", func() bool { return len(l.runs("n1")) == 2 })
	if got := l.runFile("n1", job); got.Limit != live.LimitOf(7*time.Minute) {
		t.Errorf("limit %s, want 7 min", got.Limit)
	}
	if got := l.runFile("n1", other); got.Setting.Core != 1087 {
		t.Errorf("setting %v of the job that went to main", got.Setting)
	}
	if got := l.hardware("n1"); len(got) != 1 {
		t.Errorf("locked %v, want one GPU", got)
	}
	l.completes(job)
	l.completes(other)
	l.recordedBy("n1", 2)
	if list := l.decisions(job); len(list) != 1 || list[0].Mode != "observe" {
		t.Errorf("decisions %+v", list)
	}
	l.free("n1")
	l.undrained()
}

// What epd wasn't there to hear of it asks for.
func TestAJobThatWasSubmittedBeforeEPDRanIsDecidedAtItsStart(t *testing.T) {
	l := startLab(t, enforce+"modes = {low = \"observe\"}\n")
	job := l.lockBy("n1", 1, func() int64 {
		l.stopEPD("n1", os.Interrupt)
		job := l.submit(l.untilTold(), "--gres=gpu:1", "-w", "n1", "-H", "-t", "9", fixed)
		l.startEPD("n1")
		l.slurm("scontrol", "release", name(job))
		return job
	})
	if got := l.runFile("n1", job); got.Limit != live.LimitOf(9*time.Minute) {
		t.Errorf("limit %s, want 9 min", got.Limit)
	}
	l.completes(job)
	l.recordedBy("n1", 1)
	l.free("n1")
	l.undrained()
	l.once("n1", job, "COMPLETED")
}

// Slurm's number of a GPU is a place in gres.conf, and no more.
func TestThePlaceInGresConfIsNotTheGPUsNumber(t *testing.T) {
	l := newLab(t, setup{config: enforce, flags: map[string][]string{
		"n1": {"--gpu", "sim:4,busy,minor=2/3/0/1"}, // /dev/nvidia0 is the third on the bus
		"n2": {"--gpu", "sim:4,busy,minor=reverse"}, // and here the last
	}})
	for node, want := range map[string][]int{"n1": {2, 3}, "n2": {2, 3}} {
		job := l.lock(node, 2)
		if got := slices.Sorted(maps.Keys(l.hardware(node))); !slices.Equal(got, want) {
			t.Errorf("%s: locked GPUs %v, want %v for places 0 and 1", node, got, want)
		}
		l.completes(job)
		l.recordedBy(node, 1)
		l.free(node)
	}
	if seen := l.read("prolog.seen"); !strings.Contains(seen, "on n1: gpus=0,1 ") ||
		!strings.Contains(seen, "on n2: gpus=0,1 ") {
		t.Errorf("Prologs: %s", seen)
	}
	l.undrained()
}

// A lost GPU leaves the others served, and is adopted when it is back.
func TestALostGPULeavesTheOthersServed(t *testing.T) {
	slurmlab.AnySlurm(t)
	const gpus = "sim:4,busy"
	l := newLab(t, setup{
		config: enforce, flags: map[string][]string{"n1": {"--gpu", gpus, "--gpu-faults", "1/open:lost"}},
	})
	first := l.lock("n1", 1)
	lost := l.submit(l.untilTold(), "--gres=gpu:1", "-w", "n1", fixed)
	l.within(patience, "the job on the lost GPU runs", func() bool { return l.began(lost) })
	third := l.lockBy("n1", 2, func() int64 {
		return l.submit(l.untilTold(), "--gres=gpu:1", "-w", "n1", fixed)
	})
	if got := slices.Sorted(maps.Keys(l.hardware("n1"))); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("locked GPUs %v, want 0 and 2", got)
	}
	if s := l.says("n1"); len(s.GPUs) != 3 || !slices.ContainsFunc(s.Troubles,
		func(one epdapi.Problem) bool { return strings.Contains(one.Message, "GPU is lost") }) {
		t.Errorf("%d GPUs, troubles %v", len(s.GPUs), s.Troubles)
	}
	library, err := gpu.OpenSim(gpus, config.BuiltinProfiles().Board,
		&gpu.SimOptions{Dir: filepath.Join(l.dir, "n1", "sim")})
	if err != nil {
		t.Fatal(err)
	}
	sims, err := library.Sims()
	if err == nil {
		err = sims[1].Reboot()
	}
	if err != nil {
		t.Fatal(err)
	}
	l.within(patience, "the GPU is adopted", func() bool { return len(l.says("n1").GPUs) == 4 })
	for _, job := range []int64{first, lost, third} {
		l.completes(job)
	}
	l.recordedBy("n1", 2)
	l.free("n1")
	l.undrained()
}

// Where gres.conf and --gpu-order contradict each other, nothing is touched.
func TestAGPUThatIsNotCertainIsLeftAlone(t *testing.T) {
	library, err := gpu.OpenSim("sim:4", config.BuiltinProfiles().Board, nil)
	if err != nil {
		t.Fatal(err)
	}
	sims, err := library.Sims()
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, s := range slices.Backward(sims) {
		order = append(order, s.Identity().UUID)
	}
	l := newLab(t, setup{
		config: enforce, flags: map[string][]string{"n1": {"--gpu-order", strings.Join(order, ",")}},
	})
	job := l.submit("true", "--gres=gpu:1", "-w", "n1", fixed)
	l.ends(job, "COMPLETED")
	if got := l.hardware("n1"); len(got) > 0 {
		t.Errorf("locked %v", got)
	}
	if n := l.says("n1").Numbering; n == nil || !strings.Contains(n.Trouble, "by --gpu-order") {
		t.Errorf("the status says %+v", n)
	}
	l.undrained()
}
