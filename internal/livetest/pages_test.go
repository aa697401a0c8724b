package livetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// alone is a machine with epd and no Slurm, as some pages have it.
type alone struct {
	dir, bin string
	there    *strings.Replacer
}

// requires ends the test where programs aren't installed.
func requires(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		_, err := exec.LookPath(name)
		shareddata.Need(t, err == nil, name+" isn't installed")
	}
}

func TestEpdRunsWithoutSlurmAsWritten(t *testing.T) {
	slurmlab.AnySlurm(t, "cc", "sqlite3", "curl")
	requires(t, "cc", "sqlite3", "curl")
	c := doctest.Claim(t, "epd")
	dir, err := os.MkdirTemp("/tmp", "epplan-page") //nolint:usetesting // sockets want short paths
	if err != nil {
		t.Fatal(err)
	}
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	a := &alone{
		dir: dir, bin: bin, there: strings.NewReplacer("/tmp/epd", dir+"/epd", "/var/lib/epplan", dir+"/epd",
			"/run/epplan-agent/agent.sock", dir+"/epd.sock", "/run/epplan/submit.sock", dir+"/epd.sock"),
	}
	t.Cleanup(func() { a.stop(t); _ = os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "epd"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, b := range c.Blocks {
		for _, s := range b.Steps {
			c.Ran(s)
			a.step(t, b, s)
		}
	}
}

// step runs a command until it shows what the page says; one of a block without
// prompts has to end well.
func (a *alone) step(t *testing.T, b *doctest.Block, s *doctest.Step) {
	t.Helper()
	if b.Info != "console" {
		if out, err := a.run(t, "set -e\n"+s.Command); err != nil {
			t.Errorf("%s: %v\n%s", b.At(), err, out)
		}
		return
	}
	out, err := a.run(t, s.Command)
	for deadline := time.Now().Add(patience); !doctest.Shows(out, s.Shown) && looks(s) &&
		time.Now().Before(deadline); out, err = a.run(t, s.Command) {
		<-time.After(50 * time.Millisecond)
	}
	if !doctest.Shows(out, s.Shown) {
		t.Fatalf("%s: %s (%v)\nshows:\n%s\nwant:\n%s", s.At(), s.Command, err, out,
			strings.Join(s.Shown, "\n"))
	}
}

// run runs a command line in epd's state folder. What it leaves in the
// background writes to a log.
func (a *alone) run(t *testing.T, line string) (string, error) {
	t.Helper()
	if front, background := strings.CutSuffix(line, "&"); background {
		line = front + " >>/tmp/epd.log 2>&1 & echo $! >>/tmp/epd.pid"
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", a.there.Replace(line))
	cmd.Dir = filepath.Join(a.dir, "epd")
	cmd.Env = append(os.Environ(), "PATH="+a.bin+":"+os.Getenv("PATH"), "EPPLAN_SOCKET="+a.dir+"/epd.sock",
		"EPPLAN_SUBMIT_SOCKET="+a.dir+"/epd.sock")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return out.String(), err
}

// stop ends what pages left running.
func (a *alone) stop(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(a.dir + "/epd.pid")
	if err != nil {
		t.Errorf("no page started an epd: %v", err)
		return
	}
	for word := range strings.FieldsSeq(string(text)) {
		pid := 0
		if _, err := fmt.Sscan(word, &pid); err != nil || pid <= 1 {
			t.Errorf("%q is no process", word)
			continue
		}
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(args, []byte(a.dir)) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
