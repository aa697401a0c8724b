package main

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/gpu/gpucheck"
	"github.com/epplan/epplan/internal/testkit/amdgputest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// ownChild returns the tests' program as epd with some arguments.
func ownChild(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestEPDAsAChild$") //nolint:noctx // it is to be killed
	cmd.Env = append(os.Environ(), asChild+"="+strings.Join(append([]string{"epd"}, args...), "\n"))
	return cmd
}

// asOwnChild has gpu-check start the tests' program where it would start epd.
func asOwnChild(t *testing.T) {
	t.Helper()
	was := itself
	itself = ownChild
	t.Cleanup(func() { itself = was })
}

// check runs gpu-check, and reads its report.
func check(t *testing.T, state string, flags ...string) (report gpucheck.Report, code int, failed string) {
	t.Helper()
	var out, errs text
	args := append([]string{"epd", "gpu-check", "--json", "--seconds", "0.3", "--state", state}, flags...)
	code = run(t.Context(), args, &out, &errs)
	if err := json.Unmarshal([]byte(out.String()), &report); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errs)
	}
	if strings.Contains(out.String(), "GPU-") {
		t.Errorf("the report has a board's number:\n%s", &out)
	}
	return report, code, errs.String()
}

func TestACheckOfSimulatedGPUsLocksKillsAndGivesBack(t *testing.T) {
	asOwnChild(t)
	state := t.TempDir()
	report, code, failed := check(t, state, "--gpu", "sim:2,model=GTX1080Ti", "--write")
	if code != exitDone || len(report.GPUs) != 2 || !report.OK() {
		t.Fatalf("%d %s\n%+v", code, failed, report)
	}
	for _, g := range report.GPUs {
		l := g.Lock
		back, seen := l.BackMS.Get()
		if !l.Held || !l.Restored || !seen || back > 2000 || l.Shown != "1600 MHz, 5000 MHz, 175 W" {
			t.Errorf("%+v", l)
		}
		if g.Load == nil || g.Idle == nil || !(g.Load.MeanW.Or(0) > g.Idle.MeanW.Or(0)) || len(g.Calls) != 5 ||
			g.Catalogue != "GTX1080Ti" {
			t.Errorf("%+v", g)
		}
	}
	left, err := filepath.Glob(filepath.Join(state, "gpu-check", "journal", "*.json"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the journal: %v, %v", left, err)
	}
}

func TestACheckWithoutWriteChangesNothing(t *testing.T) {
	state := t.TempDir()
	report, code, failed := check(t, state, "--gpu", "sim")
	if code != exitDone || report.Wrote || report.GPUs[0].Lock != nil || report.GPUs[0].Load == nil {
		t.Errorf("%d %s\n%+v", code, failed, report)
	}
	if _, err := os.Stat(filepath.Join(state, "gpu-check")); !os.IsNotExist(err) {
		t.Errorf("a journal was made: %v", err)
	}
}

func TestACheckFindsWhatIsWrong(t *testing.T) {
	asOwnChild(t)
	for faults, says := range map[string]string{
		"lock:permission":   "the lock: the process that was to lock it",
		"unlock:transient":  "giving back",
		"read:transient@30": "read",
		"clocks:transient":  "clocks",
		"1/open:lost":       "open GPU 1",
		"limit:transientx1": "limit",
	} {
		report, code, failed := check(t, t.TempDir(), "--gpu", "sim:2", "--write", "--gpu-faults", faults)
		list := report.Trouble
		for _, g := range report.GPUs {
			list = append(list, g.Faults...)
		}
		all := strings.Join(list, "; ")
		if code != exitFailed || report.OK() || !strings.Contains(all, says) {
			t.Errorf("%s: %d %s\n%s, want %q", faults, code, failed, all, says)
		}
	}
}

func TestACheckLeavesGPUsInUseAlone(t *testing.T) {
	asOwnChild(t)
	state := t.TempDir()
	l, err := openSim("sim:2", state, nil)
	must(t, err)
	all, err := l.Sims()
	must(t, err)
	work := dvfsmodel.Params{P0: 50, Gamma: 30, C: 100, D: 90, Delta: 0.5, T0: 10}
	must(t, all[0].Run(gpu.Work{PID: 42, Model: work}))
	report, code, failed := check(t, state, "--gpu", "sim:2", "--write")
	if code != exitDone || report.GPUs[0].Lock != nil || report.GPUs[0].InUse != "by 1 processes" ||
		report.GPUs[1].Lock == nil {
		t.Errorf("%d %s\n%+v", code, failed, report)
	}
}

// holder returns a process that holds a simulated GPU locked, and the end of its input.
func holder(t *testing.T, state string) (s *gpu.Sim, child *exec.Cmd, input io.Closer) {
	t.Helper()
	asOwnChild(t)
	l, err := openSim("sim", state, nil)
	must(t, err)
	all, err := l.Sims()
	must(t, err)
	child = itself("gpu-check", "--hold", all[0].Identity().UUID, "--at", "802,0,150,0", "--gpu", "sim",
		"--state", state)
	input, err = child.StdinPipe()
	must(t, err)
	must(t, child.Start())
	t.Cleanup(func() { _ = input.Close() })
	for until := time.Now().Add(30 * time.Second); ; {
		v, err := all[0].Held(gpu.PowerLimit)
		must(t, err)
		if v == 150 {
			return all[0], child, input
		}
		if time.Now().After(until) {
			t.Fatal("it isn't locked")
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestTheProcessThatHoldsALockGivesBackWhenTheCheckIsGone(t *testing.T) {
	s, child, input := holder(t, t.TempDir())
	must(t, input.Close()) // as when the check is killed
	must(t, child.Wait())
	for _, c := range []gpu.Control{gpu.CoreClock, gpu.PowerLimit} {
		if v, err := s.Held(c); err != nil || v != 0 {
			t.Errorf("the %s is left at %v, %v", c, float64(v), err)
		}
	}
}

// What a check left that was killed with that process is given back by the next one.
func TestACheckThatWasKilledIsClearedUpByTheNextOne(t *testing.T) {
	state := t.TempDir()
	_, child, _ := holder(t, state)
	must(t, child.Process.Kill())
	_ = child.Wait()
	report, code, failed := check(t, state, "--gpu", "sim", "--write")
	if limit := report.GPUs[0].LimitW.Or(0); code != exitDone || limit != 300 {
		t.Errorf("%d %s: the limit was %v W", code, failed, limit)
	}
}

func TestACheckOfAMDsGPUs(t *testing.T) {
	k := amdNode(t, amdgputest.MI300X, amdgputest.MI210, amdgputest.MI100)
	must(t, k.GPUs[1].Obey("power_dpm_force_performance_level", "high"))
	for _, g := range k.GPUs[:2] { // the folder's GPUs are always at work
		g.Put(t, "gpu_busy_percent", "0\n")
	}
	asOwnChild(t)
	t.Setenv(childSysfs, k.Root)
	report, code, failed := check(t, t.TempDir(), "--gpu", "amd", "--write")
	if code != exitDone || len(report.GPUs) != 3 {
		t.Fatalf("%d %s\n%+v", code, failed, report)
	}
	if g := report.GPUs[2]; g.InUse != "it works, though no process is listed" || g.Lock != nil {
		t.Errorf("%+v", g)
	}
	for i, want := range []string{
		"core clock 1300 MHz, memory clock 1300 MHz, power limit 562 W", "core clock 1100 MHz, power limit 225 W",
	} {
		if l := report.GPUs[i].Lock; l == nil || l.Wanted != want || !l.Held || !l.Restored {
			t.Errorf("%+v, want %s", l, want)
		}
		if !strings.Contains(report.GPUs[i].NoLoad, "hipcc") && report.GPUs[i].Load == nil {
			t.Errorf("no load: %s", report.GPUs[i].NoLoad)
		}
	}
	if again := amdgputest.Reopen(t, k); !again.GPUs[0].IsAsLoaded() || again.GPUs[1].Level != "high" {
		t.Errorf("%+v, %+v", again.GPUs[0], again.GPUs[1])
	}
}

// The stand-in for NVIDIA's driver forgets with the process what was set, as no driver may: a check finds it.
func TestACheckByAStandInOfNVIDIAsDriver(t *testing.T) {
	dir := t.TempDir()
	compiler := cmp.Or(os.Getenv("CC"), "gcc")
	_, err := exec.LookPath(compiler)
	shareddata.Need(t, err == nil, "the fake driver needs "+compiler)
	build := exec.CommandContext(t.Context(), compiler, "-shared", "-fPIC", "-o",
		filepath.Join(dir, "libnvidia-ml.so.1"), "../../gpu/testdata/fakenvml.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const idle = "nvmlDeviceGetUtilizationRates=3,nvmlDeviceGetComputeRunningProcesses_v3=3," +
		"nvmlDeviceGetGraphicsRunningProcesses_v3=3"
	for _, write := range []bool{false, true} {
		args := []string{"epd", "gpu-check", "--json", "--seconds", "0.3", "--gpu", "nvml", "--state", t.TempDir()}
		if write {
			args = append(args, "--write")
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEPDAsAChild$")
		cmd.Env = append(os.Environ(), asChild+"="+strings.Join(args, "\n"), "LD_LIBRARY_PATH="+dir,
			childSysfs+"="+t.TempDir(), "FAKE_NVML="+idle)
		out, err := cmd.Output()
		var report gpucheck.Report
		if err := json.Unmarshal(out, &report); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(report.GPUs) != 2 || report.GPUs[0].Model != "Fake A100" || report.GPUs[0].InUse == "" {
			t.Errorf("%+v", report)
		}
		faults := strings.Join(report.GPUs[1].Faults, "; ")
		if failed := err != nil; failed != write || write && !strings.Contains(faults, "the power limit is at") {
			t.Errorf("with --write %v: %v\n%s", write, err, out)
		}
	}
}

func TestAReportForPeople(t *testing.T) {
	var out, failed text
	code := run(t.Context(), []string{
		"epd", "gpu-check", "--gpu", "sim", "--seconds", "0.2", "--state", t.TempDir(),
	}, &out, &failed)
	for _, says := range []string{
		"epd devel, --gpu sim, ", ": 1 GPUs, only read\n", "GPU 0     V100 at 00000000:17:00.0, device file 0\n",
		"Can set   core clock, power limit; not memory clock, power profile; an energy counter\n",
		"Clocks    memory 877 MHz: core 802 to 1380 MHz, 5 of them\n", "Call      sharing ", "Idle      30 W",
		"Load      ",
		"Known as  V100\n", "No faults.\n",
	} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("no %q", says)
		}
	}
	if code != exitDone || t.Failed() {
		t.Errorf("%d %s\n%s", code, &failed, &out)
	}
	for _, args := range [][]string{{"--seconds", "0"}, {"--seconds", "1e9"}, {"now"}} {
		args = append([]string{"epd", "gpu-check", "--gpu", "sim"}, args...)
		if code := run(t.Context(), args, &out, &failed); code != exitUsage {
			t.Errorf("%v: status %d", args, code)
		}
	}
}
