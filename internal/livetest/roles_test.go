package livetest_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// munge names the munged of controller and agents, which isn't Slurm's.
const munge = "munge"

func (l *lab) mungeSocket() string { return filepath.Join(l.dir, munge, "socket") }

// startMunge starts a munged beside that of Slurm, so that it can be missed
// alone.
func (l *lab) startMunge() {
	l.Helper()
	dir := filepath.Join(l.dir, munge)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		l.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "key")); err != nil {
		l.write(munge+"/key", strings.Repeat("a key of tests ", 70), 0o600)
	}
	munged := slurmlab.Preferred("munged", "--foreground", "--force", "--key-file="+dir+"/key",
		"--socket="+l.mungeSocket(), "--pid-file="+dir+"/pid", "--log-file="+dir+"/log", "--seed-file="+dir+"/seed",
		"--num-threads=2")
	cmd := exec.Command(munged[0], munged[1:]...) //nolint:noctx // stopped with the epds
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	l.mu.Lock()
	l.epds[munge] = cmd
	l.mu.Unlock()
	l.eventually("munged is there", func() bool {
		c, err := net.Dial("unix", l.mungeSocket()) //nolint:noctx // at once
		return err == nil && c.Close() == nil
	})
}

func TestAgentsObeyAControllerElsewhere(t *testing.T) {
	l := newLab(t, setup{config: enforce, roles: true})
	first := l.locks(map[string]int{"n1": 2, "n2": 2}, 2,
		func() int64 { return l.submit("sleep 2", "-N", "2", "--gres=gpu:2", fixed) })
	l.ends(first, "COMPLETED")
	l.recordedBy("n1", 2)
	l.recordedBy("n2", 2)
	l.free("n1", "n2")
	l.once("n1", first, "COMPLETED")
	l.once("n2", first, "COMPLETED")

	// What one node learnt the other knows.
	learnt := l.known(func() int64 { return l.submit("sleep 2.1", "--gres=gpu:1", "-w", "n1") })
	l.ends(learnt, "COMPLETED")
	l.models(controller, 2)
	known, tried := l.lowered("n2", func() int64 { return l.submit("sleep 2.1", "--gres=gpu:1", "-w", "n2") })
	l.ends(known, "COMPLETED")
	l.recordedBy("n2", 3+int64(tried))
	l.free("n1", "n2")
	l.undrained()
	l.once("n2", known, "COMPLETED")
}

// misses plays a controller that is away in some way: while a job runs, and
// while another starts and ends.
func (l *lab) misses(away, back func()) {
	l.Helper()
	during := l.lock("n1", 1)
	away()
	begin := time.Now()
	within := l.submit("sleep 1", "--gres=gpu:1", "-w", "n2", fixed)
	if took := time.Since(begin); took > mostSubmit {
		l.Errorf("sbatch took %s", took)
	}
	l.ends(within, "COMPLETED")
	l.completes(during)
	l.free("n1", "n2")
	l.undrained()
	for _, node := range []string{"n1", "n2"} {
		if s := l.says(node); s.Unrecorded != 1 {
			l.Errorf("%s: status %+v, want an outcome that waits", node, s)
		}
	}
	back()
	for node, job := range map[string]int64{"n1": during, "n2": within} {
		l.within(patience, "the outcome of "+node+" is recorded", func() bool {
			s := l.says(node)
			return s.Unrecorded == 0 && len(s.Runs) == 0
		})
		l.recovered(node, job)
	}
	after := l.lock("n2", 1)
	l.completes(after)
	l.recovered("n2", after)
}

func TestAControllerMayBeStopped(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{config: enforce, roles: true})
	l.misses(func() { l.stopEPD(controller, syscall.SIGTERM) }, func() { l.startEPD(controller) })
}

func TestAControllerMayBeKilled(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{config: enforce, roles: true})
	l.misses(func() { l.stopEPD(controller, syscall.SIGKILL) }, func() { l.startEPD(controller) })
}

func TestAControllerMayHang(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{config: enforce, roles: true})
	l.misses(func() { l.signal(controller, syscall.SIGSTOP) },
		func() { l.signal(controller, syscall.SIGCONT) })
}

func TestAControllerMayAnswerGarbage(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{config: enforce, roles: true})
	var stop func()
	l.misses(func() {
		l.stopEPD(controller, syscall.SIGKILL)
		stop = l.garbageTCP("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" +
			"Content-Length: 60\r\n\r\n" +
			fmt.Sprintf("%-60s", `{"apply":true,"core_mhz":1380,"receipt":"stored"}`))
	}, func() {
		stop()
		l.startEPD(controller)
	})
}

// garbageTCP answers where the controller should, without munge's word for it.
func (l *lab) garbageTCP(answer string) (stop func()) {
	l.Helper()
	listener, err := new(net.ListenConfig).Listen(l.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(l.port))
	if err != nil {
		l.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { babble(l.Context(), c, answer) })
		}
	})
	return func() {
		_ = listener.Close()
		group.Wait()
	}
}

func TestMungeMayBeDown(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{config: enforce, roles: true})
	l.misses(func() { l.stopEPD(munge, syscall.SIGKILL) }, func() { l.startMunge() })
}

// Without the file of a run and without room for its outcome the run's own file
// waits.
func TestAFullDiskOfTheSpoolLosesNoOutcome(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	l.smallDisk("n1", "spool")
	job := l.lock("n1", 1)
	free := l.fill("n1", "spool")
	l.completes(job)
	l.free("n1")
	l.eventually("epd says that it can't", func() bool { return strings.Contains(l.read("n1.log"), "spool") })
	if s := l.says("n1"); s.Unrecorded != 1 {
		t.Errorf("status %+v, want an outcome that waits", s)
	}
	l.stopEPD("n1", syscall.SIGKILL)
	l.startEPD("n1")
	free()
	l.recordedBy("n1", 1)
	l.recovered("n1", job)
}
