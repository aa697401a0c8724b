package livetest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// recovered checks what settled does, and what is recorded of the job: one outcome.
func (l *lab) recovered(node string, job int64) {
	l.Helper()
	l.settled(node)
	l.once(node, job, "COMPLETED")
}

// settled checks, after a fault, that a node serves, and that its epd gives
// everything back when it is started anew.
func (l *lab) settled(node string) {
	l.Helper()
	l.undrained(node)
	l.stopEPD(node, syscall.SIGTERM)
	l.startEPD(node, "--gpu-faults", "")
	l.free(node)
	l.within(patience, "everything is recorded", func() bool {
		s := l.status(node)
		return s != nil && len(s.Runs) == 0 && s.Unrecorded == 0
	})
}

// Every call of the driver goes wrong in every way, one way at a time.
func TestJobsRunWhateverTheDriverSays(t *testing.T) {
	slurmlab.AnySlurm(t)
	const nodes = 8
	faults := []string{
		"lock:permission", "lock:unsupported", "lock:transient", "lock:slow=2s", "0/lock:lost",
		"0/lock:reload", "0/lock:foreign",
		"unlock:permission", "unlock:unsupported", "unlock:transientx2", "unlock:slow=2s", "0/unlock:lost",
		"0/unlock:reload",
		"read:permission", "read:unsupported", "read:transient", "read:slow=2s", "0/read:lost@3",
		"0/read:reset@2", "0/read:reload@2",
		"0/read:foreign@2", "clocks:permission", "clocks:transientx1", "sharing:transient",
		"limit:unsupported", "processes:slow=2s",
		"0/*:permission", "0/*:transient", "0/*:unsupported", "*:slow=700ms", "0/*:lost@9",
	}
	l := newLab(t, setup{config: enforce, nodes: nodes})
	for i, node := range l.names {
		t.Run("on "+node, func(t *testing.T) {
			t.Parallel()
			l := l.on(t)
			for k := i; k < len(faults); k += nodes {
				l.playFault(node, faults[k])
			}
		})
	}
}

// playFault runs a job on a node whose driver has a fault.
func (l *lab) playFault(node, fault string) {
	l.Helper()
	l.stopEPD(node, syscall.SIGTERM)
	l.startEPD(node, "--gpu-faults", fault)
	var job int64
	if strings.HasPrefix(fault, "unlock:") { // there is something to unlock
		job = l.lock(node, 1)
		l.completes(job)
	} else {
		job = l.submit("sleep 2", "--gres=gpu:1", "-w", node, fixed)
		l.ends(job, "COMPLETED")
	}
	if strings.Contains(fault, "lost") { // until the machine is booted
		l.stopEPD(node, syscall.SIGTERM)
		if err := l.sims(node)[0].Reboot(); err != nil {
			l.Fatal(err)
		}
	}
	if strings.HasPrefix(fault, "0/*:") && !strings.Contains(fault, "@") { // epd couldn't open the GPU
		l.settled(node)
		if list := l.recorded(node, job); len(list) != 1 || !list[0].Unmatched {
			l.Errorf("%s: job %d: outcomes %+v, want one without a run", node, job, list)
		}
	} else {
		l.recovered(node, job)
	}
	core := l.recorded(node, job)[0].Setting.Core
	if strings.HasPrefix(fault, "lock:") && core != 0 || strings.HasPrefix(fault, "unlock:") && core != 1087 {
		l.Errorf("recorded at core %v MHz", core)
	}
	if l.Failed() {
		l.dump()
		l.Fatalf("that was with %s", fault)
	}
}

// GPUs that can't be opened when epd starts are taken up as soon as they can.
func TestGPUsMayComeAfterEPD(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{
		config: enforce, waits: true, flags: map[string][]string{"n1": {"--gpu-faults", "open:transientx1"}},
	})
	job := l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", fixed)
	l.ends(job, "COMPLETED")
	l.within(patience, "the GPUs are there", func() bool { return len(l.says("n1").GPUs) == 4 })
	again := l.lock("n1", 1)
	l.completes(again)
	l.recovered("n1", again)
}

// Slurm 26.05 resets the clocks at the end of a step that had its own; others set higher ones.
func TestALockThatIsLostUnderARunIsSetAgain(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	for i, disturb := range []func(g *gpu.Sim) error{
		func(g *gpu.Sim) error { return g.Set(gpu.CoreClock, 1380) },
		func(g *gpu.Sim) error { return g.Release(gpu.CoreClock) },
	} {
		g := l.sims("n1")[0]
		if err := g.Run(gpu.Work{
			PID:   4242,
			Model: dvfsmodel.Params{P0: 50, Gamma: 20, C: 100, D: 1e6, Delta: 0.5},
		}); err != nil {
			t.Fatal(err)
		}
		job := l.lock("n1", 1)
		before := l.hardware("n1")[0]
		if err := disturb(g); err != nil {
			t.Fatal(err)
		}
		l.eventually("epd sets it again", func() bool { return l.hardware("n1")[0] == before })
		l.completes(job)
		if err := g.Stop(4242); err != nil {
			t.Fatal(err)
		}
		l.recordedBy("n1", 1)
		l.free("n1")
		l.recovered("n1", job)
		for _, o := range l.recorded("n1", job) {
			if !strings.Contains(o.LockedWords(), "locked again") {
				t.Errorf("the job doesn't say so: %q", o.LockedWords())
			}
		}
		if i == 0 && t.Failed() {
			break
		}
	}
}

func TestAnEPDThatComesBackUnderARunGivesItsClocksBackAtOnce(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n1", 2)
	l.stopEPD("n1", syscall.SIGKILL)
	if got := l.hardware("n1"); len(got) != 2 {
		t.Errorf("locked %v, want two GPUs: locks outlive the process", got)
	}
	l.startEPD("n1")
	l.free("n1")
	if got := l.state(job); got != "RUNNING" {
		t.Errorf("the job is %s", got)
	}
	l.completes(job)
	l.recordedBy("n1", 1)
	l.recovered("n1", job)
}

// An epd that hangs takes what was said to it when it goes on.
func TestAnEPDThatHangsAtTheEndOfAJobLosesNothing(t *testing.T) {
	l := newLab(t, setup{config: enforce, waits: true})
	job := l.lock("n2", 1)
	l.signal("n2", syscall.SIGSTOP)
	l.completes(job)
	if text := l.read("epilog.log"); !strings.Contains(text, "can't reach epd") {
		t.Errorf("epilog.log: %s", text)
	}
	l.givesBackBeside("n2") // the journal is for epd to clear
	l.signal("n2", syscall.SIGCONT)
	l.freed("n2")
	l.recovered("n2", job)
}

// The Epilog of one job gives back, beside an epd that hangs, what another job's GPU is
// locked at: epd heeds that when it goes on, and leaves nothing locked that a restart
// wouldn't find.
func TestAnEPDThatHangsHeedsWhatARestoreGaveBackMeanwhile(t *testing.T) {
	l := newLab(t, setup{config: enforce, waits: true})
	stays := l.lock("n2", 1)
	ends := l.lockBy("n2", 3, func() int64 {
		return l.submit(l.untilTold(), "--gres=gpu:2", "-w", "n2", fixed)
	})
	l.signal("n2", syscall.SIGSTOP)
	l.completes(ends)
	l.givesBackBeside("n2")
	l.signal("n2", syscall.SIGCONT)
	l.within(patience, "epd heeds it", func() bool {
		s := l.says("n2")
		return len(s.Runs) == 1 &&
			strings.Contains(s.Runs[0].HandsOff, "another process gave its clocks back")
	})
	if got := l.hardware("n2"); len(got) > 0 {
		t.Errorf("locked %v", got)
	}
	l.stopEPD("n2", syscall.SIGKILL)
	l.startEPD("n2")
	l.free("n2")
	l.completes(stays)
	l.recordedBy("n2", 1)
	l.undrained()
}

// givesBackBeside has a node's clocks given back beside its epd that hangs. The Epilog has done so, unless a busy
// machine took longer than its 2 s: then epd restore is run again.
func (l *lab) givesBackBeside(node string) {
	l.Helper()
	l.within(patience, "the clocks are given back", func() bool {
		if len(l.hardware(node)) == 0 {
			return true
		}
		again := exec.CommandContext(l.Context(), filepath.Join(l.bin, "epd"), "restore",
			"--journal", filepath.Join(l.dir, node, "journal"))
		again.Env = append(again.Environ(), "EPD_GPU="+l.gpu, "EPD_STATE="+filepath.Join(l.dir, node))
		out, err := again.CombinedOutput()
		l.Logf("the Epilog didn't give all back: %s; again: %v\n%s", l.read("epilog.log"), err, out)
		return false
	})
}

// garbage answers at a socket in a wrong way, until its test ends.
func (l *lab) garbage(path, answer string) {
	l.Helper()
	_ = os.Remove(path)
	listener, err := new(net.ListenConfig).Listen(l.Context(), "unix", path)
	if err != nil {
		l.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		l.Fatal(err)
	}
	ctx, cancel := context.WithCancel(l.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { babble(ctx, c, answer) })
		}
	})
	l.Cleanup(func() {
		cancel()
		_ = listener.Close()
		group.Wait()
	})
}

// babble writes an answer, again and again where it ends in "…".
func babble(ctx context.Context, c net.Conn, answer string) {
	defer c.Close() //nolint:errcheck // it isn't meant well
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	answer, endless := strings.CutSuffix(answer, "…")
	_, _ = c.Read(make([]byte, 1<<16))
	_, err := io.WriteString(c, answer)
	for endless && err == nil {
		_, err = io.WriteString(c, strings.Repeat("x", 100))
		<-time.After(time.Millisecond)
	}
}

// mostSubmit is more than sbatch takes on a busy machine whatever our module waits for,
// and less than Slurm does for a slurmctld that hangs in it.
const mostSubmit = 9 * time.Second

func TestGarbageInPlaceOfAnEPDHurtsNoJob(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	head := func(length int, body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", length, body)
	}
	token := fmt.Sprintf(`{"v":1,"admin_comment_hex":"%x"}`, "epplan:x\nJobId=1 AdminComment=y")
	for what, answer := range map[string]string{
		"nothing at all":         "",
		"no HTTP":                "\x00\xff\x16\x03garbage\r\n\r\n",
		"no JSON":                head(7, "garbage"),
		"JSON of another kind":   head(2, "[]"),
		"null":                   head(4, "null"),
		"wrong types":            head(60, `{"v":"1","run_hex":7,"applied":"yes","admin_comment_hex":9}  `),
		"odd hexadecimals":       head(40, `{"v":1,"reason_hex":"zz","run_hex":"0"} `),
		"a token that isn't one": head(len(token), token),
		"less than it says":      head(1000, "{"),
		"an error":               "HTTP/1.1 500 no\r\nContent-Length: 0\r\n\r\n",
		"no end":                 head(1<<30, "{\"v\":…"),
		"a head without an end":  "HTTP/1.1 200 OK\r\nX: …",
	} {
		t.Run(what, func(t *testing.T) {
			l := l.on(t)
			l.stopEPD("n1", os.Interrupt)
			l.garbage(l.socket("n1"), answer)
			l.garbage(filepath.Join(l.dir, "submit.sock"), answer)
			begin := time.Now()
			job := l.submit("true", "--gres=gpu:1", "-w", "n1", fixed)
			if took := time.Since(begin); took > mostSubmit {
				t.Errorf("sbatch took %s", took)
			}
			l.ends(job, "COMPLETED")
			l.undrained()
			if text := l.slurm("scontrol", "show", "job", name(job)); strings.Contains(text,
				"\nJobId=1 AdminComment") {
				t.Errorf("the answer forges fields:\n%s", text)
			}
		})
	}
	if got := l.hardware("n1"); len(got) > 0 {
		t.Errorf("locked %v", got)
	}
	l.startEPD("n1")
	job := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", fixed)
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 1)
	l.recovered("n1", job)
}

// An answer that is none is no answer: the Epilog gives the clocks back by the
// journal.
func TestGarbageAtTheEndOfAJobLeavesNothingLocked(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{config: enforce, waits: true})
	job := l.lock("n2", 1)
	l.stopEPD("n2", syscall.SIGKILL)
	t.Run("garbage", func(t *testing.T) {
		l := l.on(t)
		l.garbage(l.socket("n2"), "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ngarbage")
		l.completes(job)
		l.eventually("the hardware is at default clocks", func() bool { return len(l.hardware("n2")) == 0 })
	})
	l.startEPD("n2")
	l.recovered("n2", job)
}
