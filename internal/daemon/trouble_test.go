package daemon_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

func TestAPrologUnderWayAtTheStopLeavesNothingLocked(t *testing.T) {
	j := &judge{wait: 300 * time.Millisecond, asked: make(chan struct{}, 1)}
	h := open(t, t.TempDir(), "sim", "", j)
	j.setting = slow(t, h.sims[0])
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = h.client.Hook(context.Background(), &hooks.Event{ // which may be cut off
			Version: hooks.ProtocolVersion, Kind: hooks.Prolog, Job: 1, Node: "n1", GPUs: []int{0},
			GPUsKnown: true,
		})
	}()
	<-j.asked
	h.stop() // while the controller thinks
	<-done
	if f := h.core(t, 0); f != 0 {
		t.Errorf("locked at %v MHz after the stop", f)
	}
	<-time.After(400 * time.Millisecond) // the controller has answered by now
	if f := h.core(t, 0); f != 0 {
		t.Errorf("locked at %v MHz after the stop", f)
	}
}

func TestAControllerThatHangsIsAskedOnceHoweverManyEpilogsCome(t *testing.T) {
	j := &judge{full: errors.New("no answer"), stuck: make(chan struct{})}
	h := open(t, t.TempDir(), "sim", "", j)
	for job := range slurm.JobID(20) {
		h.hook(t, hooks.Prolog, job+1, 0)
		h.hook(t, hooks.Epilog, job+1)
	}
	close(j.stuck)
	<-time.After(500 * time.Millisecond)
	j.mu.Lock()
	tries := j.tries
	j.mu.Unlock()
	if tries > 3 {
		t.Errorf("the controller was asked %d times for 20 Epilogs", tries)
	}
	h.stop()
	if s := h.node.Status(t.Context()); s.Unrecorded != 20 {
		t.Errorf("%d outcomes wait, want 20", s.Unrecorded)
	}
}

func TestAnEndWithoutAStartIsOnDiskWhenItsEpilogIsAnswered(t *testing.T) {
	dir := t.TempDir()
	h := open(t, dir, "sim", "", &judge{full: errors.New("no answer")})
	h.hook(t, hooks.Epilog, 9, 0)
	files, err := filepath.Glob(filepath.Join(dir, "spool", "*.entry"))
	if err != nil || len(files) != 1 {
		t.Errorf("%q, error %v: want one entry", files, err)
	}
}
