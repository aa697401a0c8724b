package steer_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/steps"
	"github.com/epplan/epplan/slurm"
)

// anyPrices are those that nothing depends on: jobs have their begin times already.
func anyPrices(time.Time) (hours.Prices, float64) {
	return hours.Prices{Function: steps.Constant(1.0)}, 1e9
}

// hourly returns a world in which jobs wait for hours.
func hourly() *world {
	w := newWorld()
	w.settings.Live.Hours.By = config.HoursCost
	w.settings.Prices = anyPrices
	w.node("n1", "a100", "gpu")
	return w
}

// waiting adds a job that was submitted with a begin time of ours.
func (w *world) waiting(id slurm.JobID, begin time.Time) *slurm.Job {
	j := w.job(id, 10, 500, "epplan:slack=4h")
	j.AdminComment = "epplan:" + slurm.TokenWithBegin("t"+strconv.Itoa(int(id)), begin)
	j.Submit, j.Eligible, j.Reason, j.TRESPerNode = start, begin, "BeginTime", "gres/gpu:1"
	j.TimeLimit = live.LimitOf(time.Hour)
	return j
}

func TestAJobWaitsForItsHourUntilSomebodyWantsItOtherwise(t *testing.T) {
	begin := start.Add(2 * time.Hour)
	for what, c := range map[string]struct {
		change func(w *world, j *slurm.Job)
		waits  bool // it still does
		left   bool // it is somebody else's
	}{
		"nothing happens": {func(*world, *slurm.Job) {}, true, false},
		"hours are off": {func(w *world, _ *slurm.Job) {
			w.settings.Live.Hours.By = config.HoursOff
		}, false, false},
		"nobody states prices": {func(w *world, _ *slurm.Job) { w.settings.Prices = nil }, false, false},
		"jobs are only advised": {func(w *world, _ *slurm.Job) {
			w.settings.Live.Mode = live.Advise
		}, false, false},
		"nothing is touched": {func(w *world, _ *slurm.Job) {
			w.settings.Live.Mode = live.Observe
		}, false, false},
		"its user opts out": {func(_ *world, j *slurm.Job) { j.Comment = "epplan:off" }, false, false},
		"its user opts out though its partition's jobs can wait": {func(w *world, j *slurm.Job) {
			j.Comment, w.settings.Live.Hours.Slacks = "epplan:off", map[string]float64{"gpu": 7200}
		}, false, false},
		"its user wants it now": {func(_ *world, j *slurm.Job) { j.Comment = "epplan:slack=0" }, false, false},
		"its user's slack is too short": {
			func(_ *world, j *slurm.Job) { j.Comment = "epplan:slack=1h" }, false, false,
		},
		"its user says nothing, and its partition's jobs can't wait": {
			func(_ *world, j *slurm.Job) { j.Comment = "" }, false, false,
		},
		"its user says nothing, and its partition's jobs can": {func(w *world, j *slurm.Job) {
			j.Comment, w.settings.Live.Hours.Slacks = "", map[string]float64{"gpu": 7200}
		}, true, false},
		"others wait for GPUs": {func(w *world, _ *slurm.Job) {
			w.job(8, 20, 900, "").TRESPerNode = "gres/gpu:4"
		}, false, false},
		"others wait in a partition with the same nodes": {func(w *world, _ *slurm.Job) {
			w.nodes["n1"].Partitions = []string{"gpu", "long"}
			j := w.job(8, 20, 900, "")
			j.TRESPerNode, j.Partition = "gres/gpu:4", "long"
		}, false, false},
		"it has a component without a begin time": {func(w *world, j *slurm.Job) {
			j.HetJob = 7
			c := w.job(8, 10, 900, "")
			c.TRESPerNode, c.HetJob, c.HetOffset = "gres/gpu:1", 7, 1
		}, true, false},
		"others wait elsewhere": {func(w *world, _ *slurm.Job) {
			w.node("n9", "a100", "long")
			j := w.job(8, 20, 900, "")
			j.TRESPerNode, j.Partition = "gres/gpu:4", "long"
		}, true, false},
		"others wait for a limit": {func(w *world, _ *slurm.Job) {
			j := w.job(8, 20, 900, "")
			j.TRESPerNode, j.Reason = "gres/gpu:4", "QOSMaxGRESPerUser"
		}, true, false},
		"another has just come": {func(w *world, _ *slurm.Job) {
			j := w.job(8, 20, 900, "")
			j.TRESPerNode, j.Eligible = "gres/gpu:4", w.now
		}, true, false},
		"its owner has it begin at once": {func(w *world, j *slurm.Job) {
			j.Eligible, j.Reason = w.now, "None"
		}, false, true},
		"its owner has it begin later still": {func(_ *world, j *slurm.Job) {
			j.Eligible = begin.Add(time.Hour)
		}, true, true},
	} {
		w := hourly()
		j := w.waiting(7, begin)
		s := w.open(t)
		if r := step(t, s); r.Set+r.Undone > 0 || s.Status().Begin != 1 {
			t.Fatalf("%s: at first %+v, %+v", what, r, s.Status())
		}
		c.change(w, j)
		own := j.Eligible
		for range 2 {
			step(t, s)
		}
		st := s.Status()
		if waits := j.Eligible.After(w.now); waits != c.waits || c.left != (len(st.Left) == 1) ||
			c.left && !j.Eligible.Equal(own) || (st.Begin == 1) != (c.waits && !c.left) {
			t.Errorf("%s: begins %v, %+v", what, j.Eligible, st)
		}
	}
}

func TestABeginTimeIsOverWhenItHasCome(t *testing.T) {
	w := hourly()
	j := w.waiting(7, start.Add(2*time.Hour))
	s := w.open(t)
	step(t, s)
	w.now = start.Add(2 * time.Hour)
	j.Reason = "None"
	r := step(t, s)
	if st := s.Status(); r.Undone > 0 || st.InForce() != 0 || len(st.Left) > 0 {
		t.Errorf("%+v, %+v", r, st)
	}
}

func TestABeginTimeThatAJobWasSubmittedWithIsTakenBackThoughNoLedgerNamesIt(t *testing.T) {
	w := hourly()
	j := w.waiting(7, start.Add(2*time.Hour))
	theirs := w.job(8, 10, 400, "") // by its own user
	theirs.Eligible, theirs.Reason = start.Add(5*time.Hour), "BeginTime"
	task := w.job(9, 10, 400, "epplan:slack=4h") // of an array, without a word of ours but with its begin
	task.ArrayJob, task.ArrayTask, task.Eligible, j.ArrayJob = 7, 3, j.Eligible, 7
	snap, err := w.snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left, err := steer.ReadLeftovers(".", w.disk.Read, snap)
	if err != nil || left.String() != "the begin time of 2 jobs" {
		t.Errorf("%q, %v", left.String(), err)
	}
	if r, err := w.restore(t.Context()); err != nil || r.Undone != 2 || j.Eligible.After(w.now) ||
		task.Eligible.After(w.now) || !theirs.Eligible.After(w.now) {
		t.Errorf("%+v, %v: %v, %v, %v", r, err, j.Eligible, task.Eligible, theirs.Eligible)
	}
}
