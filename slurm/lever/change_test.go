package lever_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

func TestAChangeIsMadeOnlyFromWhatWasExpected(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"nice": 50})
	f.job(8, "PENDING", map[string]any{"nice": 0, "priority": 0})
	f.job(9, "RUNNING", nil)
	nice := func(job slurm.JobID, before, after string) lever.Undo {
		return lever.Undo{Lever: lever.Nice, Job: job, Before: before, After: after}
	}
	weight := func(after string) lever.Undo {
		return lever.Undo{Lever: lever.Weight, Node: "n1", Before: "1", After: after}
	}
	for _, c := range []struct {
		from string
		u    lever.Undo
		want error
	}{
		{"0", nice(7, "0", "100"), lever.ErrChanged},
		{"50", nice(7, "50", "40"), slurm.ErrInvalid},
		{"50", nice(7, "x", "100"), slurm.ErrInvalid},
		{"50", nice(7, "50", "2000000"), slurm.ErrInvalid},
		{"0", nice(8, "0", "10"), lever.ErrHeld},
		{"0", nice(9, "0", "10"), slurm.ErrNotPending},
		{"0", nice(10, "0", "10"), slurm.ErrNotFound},
		{"2", weight("5"), lever.ErrChanged},
		{"1", weight("-5"), slurm.ErrInvalid},
		{"1", lever.Undo{Lever: lever.Power, Node: "n1", After: "reboot"}, slurm.ErrInvalid},
		{"", lever.Undo{Lever: lever.Power, Node: "n1", After: "power_down"}, slurm.ErrNoPowerSaving},
		{"lab", lever.Undo{Lever: lever.Prefer, Job: 7, After: "h200"}, lever.ErrChanged},
		{"", lever.Undo{Lever: lever.Prefer, Job: 7, After: "nosuch"}, slurm.ErrInvalid},
		{"", lever.Undo{Lever: lever.Prefer, Job: 7, After: ""}, slurm.ErrInvalid},
		{"", lever.Undo{Lever: "admin_comment", Job: 7, After: "x"}, slurm.ErrInvalid},
	} {
		if err := l.Change(t.Context(), c.from, c.u); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.u, err, c.want)
		}
	}
	if n := f.updates(); n != 0 {
		t.Errorf("%d updates", n)
	}
	u := nice(7, "50", "150")
	if err := l.Change(t.Context(), "50", u); err != nil || f.jobs[7]["nice"] != 150 {
		t.Error(err, f.jobs[7])
	}
	if err := l.Change(t.Context(), "50", u); err != nil || f.updates() != 1 {
		t.Error("made already:", err, f.calls)
	}
	if err := l.Undo(t.Context(), u); err != nil || f.jobs[7]["nice"] != 50 {
		t.Error(err, f.jobs[7])
	}
	prefer := lever.Undo{Lever: lever.Prefer, Job: 7, After: "h200&lab"}
	if err := l.Change(t.Context(), "", prefer); err != nil || f.jobs[7]["prefer"] != "h200&lab" {
		t.Error(err, f.jobs[7])
	}
	if err := l.Undo(t.Context(), prefer); err != nil || f.jobs[7]["prefer"] != "" {
		t.Error(err, f.jobs[7])
	}
	if err := l.Change(t.Context(), "1", weight("5")); err != nil || f.weights["n1"] != 5 {
		t.Error(err, f.weights)
	}
}

func TestABeginTimeIsOnlyTakenBack(t *testing.T) {
	f, _, l := levers(t)
	later := time.Now().Add(time.Hour).Unix()
	after := strconv.FormatInt(later, 10)
	f.job(7, "PENDING", map[string]any{"eligible_time": later})
	f.job(8, "RUNNING", map[string]any{"eligible_time": later})
	f.job(9, "PENDING", map[string]any{"eligible_time": time.Now().Add(-time.Hour).Unix()})
	ours := func(job slurm.JobID) lever.Undo { return lever.Undo{Lever: lever.Begin, Job: job, After: after} }
	for _, c := range []struct {
		u    lever.Undo
		want error
	}{
		{lever.Undo{Lever: lever.Begin, Job: 7, After: after, Before: "now"}, slurm.ErrInvalid},
		{lever.Undo{Lever: lever.Begin, Job: 7, After: strconv.FormatInt(later+1, 10)}, lever.ErrChanged},
		{ours(8), slurm.ErrNotPending},
		{ours(9), nil}, // its time has come
	} {
		if err := l.Undo(t.Context(), c.u); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.u, err, c.want)
		}
	}
	if err := l.Change(t.Context(), "", ours(9)); !errors.Is(err, slurm.ErrInvalid) {
		t.Error(err)
	}
	if n := f.updates(); n != 0 {
		t.Errorf("%d updates", n)
	}
	err := l.Undo(t.Context(), ours(7))
	if err != nil || f.updates() != 1 || f.jobs[7]["eligible_time"] == later {
		t.Error(err, f.jobs[7])
	}
}

func TestOnlyThePendingTasksOfAnArrayAreNamed(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"array_job_id": 7, "array_task_string": "2-4,6-9%3"})
	f.job(8, "PENDING", map[string]any{"array_job_id": 7, "array_task_id": 5})
	f.job(9, "PENDING", map[string]any{"array_job_id": 9, "array_task_id": 3})
	f.job(10, "PENDING", map[string]any{"array_job_id": 10, "array_task_string": "1,3,5,..."})
	for id, want := range map[slurm.JobID]string{
		7: "jobid=7_[2-4,6-9] ", 8: "jobid=8 ",
		9: "jobid=9_3 ", 10: "",
	} {
		f.calls = nil
		err := l.Change(t.Context(), "0", nice(id, 0, 10))
		at := slices.IndexFunc(f.calls, func(c string) bool {
			return strings.HasPrefix(c, "scontrol update")
		})
		switch {
		case want == "" && (at >= 0 || !errors.Is(err, slurm.ErrInvalid)):
			t.Errorf("job %s: %v, %q", id, err, f.calls)
		case want != "" && (err != nil || at < 0 || !strings.HasPrefix(f.calls[at], "scontrol update "+want)):
			t.Errorf("job %s: %v, %q, want %q", id, err, f.calls, want)
		}
	}
}
