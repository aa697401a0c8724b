package control

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// A run that didn't get its decided clocks is told apart by why, in its record and in counts; one for which
// default clocks were decided isn't. It stays in the arm that it was drawn for.
func TestRunsWithoutTheirDecidedClocksAreCountedByWhatKeptThem(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
	}
	late := live.NotLocked{Kind: live.NotLockedLate, Why: "the hook's deadline passed"}
	for i, c := range []struct {
		sent, want live.NotLocked
		comment    string
	}{
		{late, late, ""},
		{late, late, ""},
		{
			live.NotLocked{Kind: live.NotLockedPermission, Why: "no"},
			live.NotLocked{Kind: live.NotLockedPermission, Why: "no"},
			"",
		},
		{live.NotLocked{Kind: "nonsense", Why: "x"}, live.NotLocked{Kind: live.NotLockedOther, Why: "x"}, ""},
		{live.NotLocked{}, live.NotLocked{Kind: live.NotLockedOther, Why: "its node doesn't say why"}, ""},
		{late, live.NotLocked{}, "epplan:off"}, // nothing was to be set
	} {
		id := slurm.JobID(20 + i)
		r.job(id, func(j *slurm.Job) { j.Comment = c.comment })
		d := r.decide(ask(id))
		if d.Apply != (c.comment == "") {
			t.Fatalf("job %d: %+v", id, d)
		}
		o := r.ran(d, ask(id).RunID, memoryBound())
		o.Setting, o.NotLocked = dvfsmodel.Setting{}, c.sent
		r.record(o, store.Stored)
		all, err := r.store.OutcomesOfJob(t.Context(), "alpha", int64(id))
		if err != nil || len(all) != 1 || all[0].NotLocked != c.want || all[0].Arm != d.Arm {
			t.Errorf("job %d: %+v, %v, want %+v", id, all, err, c.want)
		}
	}
	status := r.status()
	if n := status.NotLocked; n[live.NotLockedLate] != 2 || n[live.NotLockedPermission] != 1 ||
		n[live.NotLockedOther] != 2 || len(n) != 3 {
		t.Errorf("counted %v", n)
	}
	if text := status.NotLockedWords(); !strings.Contains(text, "5 ended runs: 2 the Prolog's time was over") {
		t.Error(text)
	}
}
