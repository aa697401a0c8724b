package lever_test

import (
	"context"
	"errors"
	"testing"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
	"pgregory.net/rapid"
)

func TestNiceIsAnOffsetOnTopOfTheUsersOwn(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"nice": 50})
	ctx := t.Context()
	first, err := l.SetNice(ctx, 7, 100, nil)
	if err != nil || f.jobs[7]["nice"] != 150 || first.Before != "50" {
		t.Fatal(first, err, f.jobs[7])
	}
	second, err := l.SetNice(ctx, 7, 20, &first)
	if err != nil || f.jobs[7]["nice"] != 70 || second.Before != "50" {
		t.Fatal(second, err, f.jobs[7])
	}
	f.jobs[7]["nice"] = 5 // the user
	if err := l.Undo(ctx, second); !errors.Is(err, lever.ErrChanged) || f.jobs[7]["nice"] != 5 {
		t.Error(err, f.jobs[7])
	}
	third, err := l.SetNice(ctx, 7, 10, &second)
	if err != nil || f.jobs[7]["nice"] != 15 {
		t.Error(third, err, f.jobs[7])
	}
	if err := l.Undo(ctx, third); err != nil || f.jobs[7]["nice"] != 5 {
		t.Error(err, f.jobs[7])
	}
}

func TestNiceNeverGoesBelowTheUsersOwn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f, _, l := levers(t)
		own := rapid.IntRange(-100, 1000).Draw(rt, "own")
		f.job(7, "PENDING", map[string]any{"nice": own})
		var prior *lever.Undo
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			u, err := l.SetNice(context.Background(), 7, rapid.IntRange(-5, 500).Draw(rt, "offset"), prior)
			if err == nil {
				prior = &u
			}
			if n, _ := f.jobs[7]["nice"].(int); n < own {
				rt.Fatalf("nice %d below the user's own %d", n, own)
			}
		}
		if prior != nil {
			if err := l.Undo(context.Background(), *prior); err != nil || f.jobs[7]["nice"] != own {
				rt.Fatalf("undo: %v, nice %v, own %d", err, f.jobs[7]["nice"], own)
			}
		}
	})
}

func TestAHeldJobIsNotTouchedSoThatItIsNotReleased(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"priority": 0})
	f.job(8, "RUNNING", nil)
	if _, err := l.SetNice(t.Context(), 7, 10, nil); !errors.Is(err, lever.ErrHeld) {
		t.Error(err)
	}
	if _, err := l.SetNice(t.Context(), 8, 10, nil); !errors.Is(err, slurm.ErrNotPending) {
		t.Error(err)
	}
	if _, err := l.SetNice(t.Context(), 9, 10, nil); !errors.Is(err, slurm.ErrNotFound) {
		t.Error(err)
	}
	if n := f.updates(); n != 0 {
		t.Errorf("%d updates", n)
	}
}

func TestTheTokenGoesInAndOutAndForeignTextStays(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "RUNNING", map[string]any{"admin_comment": "site; x=1"})
	u, err := l.SetToken(t.Context(), 7, "ab12")
	if err != nil || f.jobs[7]["admin_comment"] != "site; x=1;epplan:ab12" {
		t.Fatal(err, f.jobs[7])
	}
	f.jobs[7]["admin_comment"] = "other;epplan:ab12;site" // somebody edits around it
	if err := l.Undo(t.Context(), u); err != nil || f.jobs[7]["admin_comment"] != "other;site" {
		t.Error(err, f.jobs[7])
	}
	if err := l.Undo(t.Context(), u); !errors.Is(err, lever.ErrChanged) {
		t.Error(err)
	}
}

func TestPreferTakesOnlyFeaturesThatSlurmKnows(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"prefer": "lab"})
	for _, bad := range [][]string{nil, {"nosuch"}, {"h200", "nosuch"}, {"h200&lab"}, {"-x"}, {"a b"}, {""}} {
		if _, err := l.SetPrefer(t.Context(), 7, bad); !errors.Is(err, slurm.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	u, err := l.SetPrefer(t.Context(), 7, []string{"h200"})
	if err != nil || f.jobs[7]["prefer"] != "h200" {
		t.Fatal(err)
	}
	if err := l.Undo(t.Context(), u); err != nil || f.jobs[7]["prefer"] != "lab" {
		t.Error(err, f.jobs[7])
	}
}

func TestWeightsAreAssertedAfterAReconfigureAndUndone(t *testing.T) {
	f, _, l := levers(t)
	ctx := t.Context()
	a, err := l.SetWeight(ctx, "n1", 77)
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.SetWeight(ctx, "n2", 88)
	if err != nil {
		t.Fatal(err)
	}
	f.weights["n1"], f.weights["n2"] = 1, 5 // n1: scontrol reconfigure; n2: an admin
	set, err := l.AssertWeights(ctx, []lever.Undo{a, b})
	if err != nil || len(set) != 1 || set[0] != "n1" || f.weights["n1"] != 77 || f.weights["n2"] != 5 {
		t.Error(set, err, f.weights)
	}
	if err := l.Undo(ctx, a); err != nil || f.weights["n1"] != 1 {
		t.Error(err, f.weights)
	}
	if err := l.Undo(ctx, b); !errors.Is(err, lever.ErrChanged) {
		t.Error(err)
	}
}

func TestPowerNeedsPowerSaving(t *testing.T) {
	f, _, l := levers(t)
	if _, err := l.PowerDown(t.Context(), "n1"); !errors.Is(err, slurm.ErrNoPowerSaving) {
		t.Error(err)
	}
	f.saving = true
	u, err := l.PowerDown(t.Context(), "n1")
	if err != nil || f.power["n1"] != "+POWERED_DOWN" {
		t.Fatal(err, f.power)
	}
	if err := l.Undo(t.Context(), u); err != nil || f.power["n1"] != "" {
		t.Error(err, f.power)
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
		_, e1 := l.SetWeight(ctx, name, 3)
		_, e2 := l.PowerDown(ctx, name)
		_, e3 := l.PowerUp(ctx, name)
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
