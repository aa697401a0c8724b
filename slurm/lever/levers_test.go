package lever_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
	"pgregory.net/rapid"
)

// nice returns the nice of a job on top of its user's own.
func nice(job slurm.JobID, before, after int) lever.Undo {
	return lever.Undo{Lever: lever.Nice, Job: job, Before: strconv.Itoa(before), After: strconv.Itoa(after)}
}

func TestNiceNeverGoesBelowTheUsersOwn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f, _, l := levers(t)
		own := rapid.IntRange(-100, 1000).Draw(rt, "own")
		f.job(7, "PENDING", map[string]any{"nice": own})
		now := own
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			next := own + rapid.IntRange(-5, 500).Draw(rt, "offset")
			if l.Change(context.Background(), strconv.Itoa(now), nice(7, own, next)) == nil {
				now = next
			}
			if n, _ := f.jobs[7]["nice"].(int); n < own || n != now {
				rt.Fatalf("nice %d, want %d, the user's own is %d", n, now, own)
			}
		}
		if err := l.Undo(context.Background(), nice(7, own, now)); err != nil || f.jobs[7]["nice"] != own {
			rt.Fatalf("undo: %v, nice %v, own %d", err, f.jobs[7]["nice"], own)
		}
	})
}

func TestWhatTheUserChangedSinceIsLeftAlone(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"nice": 5, "prefer": "lab"})
	f.weights["n2"] = 5
	for _, u := range []lever.Undo{
		nice(7, 0, 100),
		{Lever: lever.Prefer, Job: 7, After: "h200"},
		{Lever: lever.Weight, Node: "n2", Before: "1", After: "88"},
	} {
		if err := l.Undo(t.Context(), u); !errors.Is(err, lever.ErrChanged) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	if n := f.updates(); n != 0 {
		t.Errorf("%d updates", n)
	}
}

func TestAHeldJobIsNotTouchedSoThatItIsNotReleased(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"priority": 0, "nice": 10})
	f.job(8, "RUNNING", map[string]any{"nice": 10})
	for id, want := range map[slurm.JobID]error{
		7: lever.ErrHeld, 8: slurm.ErrNotPending, 9: slurm.ErrNotFound,
	} {
		if err := l.Change(t.Context(), "10", nice(id, 0, 20)); !errors.Is(err, want) {
			t.Error(err)
		}
		if err := l.Undo(t.Context(), nice(id, 0, 10)); !errors.Is(err, want) {
			t.Error(err)
		}
	}
	if n := f.updates(); n != 0 {
		t.Errorf("%d updates", n)
	}
}

func TestPreferTakesOnlyFeaturesThatSlurmKnows(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"prefer": "lab"})
	for _, bad := range []string{"", "nosuch", "h200&nosuch", "-x", "a b"} {
		u := lever.Undo{Lever: lever.Prefer, Job: 7, Before: "lab", After: bad}
		if err := l.Change(t.Context(), "lab", u); !errors.Is(err, slurm.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	u := lever.Undo{Lever: lever.Prefer, Job: 7, Before: "lab", After: "h200"}
	if err := l.Change(t.Context(), "lab", u); err != nil || f.jobs[7]["prefer"] != "h200" {
		t.Fatal(err)
	}
	if err := l.Undo(t.Context(), u); err != nil || f.jobs[7]["prefer"] != "lab" {
		t.Error(err, f.jobs[7])
	}
}

func powerDown(node string) lever.Undo {
	return lever.Undo{Lever: lever.Power, Node: node, Before: "power_up", After: "power_down"}
}

func TestPowerNeedsPowerSaving(t *testing.T) {
	f, _, l := levers(t)
	u := powerDown("n1")
	if err := l.Change(t.Context(), "", u); !errors.Is(err, slurm.ErrNoPowerSaving) {
		t.Error(err)
	}
	f.saving = true
	if err := l.Change(t.Context(), "", u); err != nil || f.power["n1"] != "+POWERED_DOWN" {
		t.Fatal(err, f.power)
	}
	if err := l.Undo(t.Context(), u); err != nil || f.power["n1"] != "" {
		t.Error(err, f.power)
	}
}

// Programs alone aren't power saving: up to 25.11 Slurm wants a SuspendTime, too.
func TestASlurmThatSwitchesNoNodeOffHasNoPowerSavingInWhateverWords(t *testing.T) {
	f, _, l := levers(t)
	f.saving = true
	for said, want := range map[string]bool{
		"slurm_update error: Invalid node state specified": true, // 22.05, 24.11
		"slurm_update error: Invalid power action":         true, // 26.05
		"slurm_update error: Invalid user id":              false,
	} {
		f.refuses = said
		err := l.Change(t.Context(), "", powerDown("n1"))
		if err == nil || errors.Is(err, slurm.ErrNoPowerSaving) != want {
			t.Errorf("%s: %v", said, err)
		}
	}
}

func TestNoHostileArgumentReachesScontrol(t *testing.T) {
	f, c, l := levers(t)
	f.saving = true
	ctx := t.Context()
	for _, name := range []string{
		"", "-v", "n1 n2", "n[1-2]", "n1,n2", "ALL;x", "n1\nweight=3", "$(x)",
		"../n1", string(make([]byte, 100)),
	} {
		e1 := l.Change(ctx, "1", lever.Undo{Lever: lever.Weight, Node: name, Before: "1", After: "3"})
		e2 := l.Change(ctx, "", powerDown(name))
		e3 := l.Undo(ctx, powerDown(name))
		_, e4 := c.Node(ctx, name)
		for _, err := range []error{e1, e2, e3, e4} {
			if !errors.Is(err, slurm.ErrInvalid) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	for _, u := range []lever.Undo{
		{Lever: "reboot", Node: "n1", After: "x"},
		{Lever: lever.Weight, Node: "n1", Before: "x;y", After: "1"},
		{Lever: lever.Power, Node: "n1", Before: "reboot", After: "power_down"},
		{Lever: lever.Nice, Job: 0, Before: "1", After: "2"},
	} {
		if err := l.Undo(ctx, u); err == nil {
			t.Errorf("%+v was done", u)
		}
	}
	if n := f.updates(); n != 0 {
		t.Errorf("%d updates: %v", n, f.calls)
	}
}
