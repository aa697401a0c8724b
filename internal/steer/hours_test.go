package steer_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/steps"
	"github.com/epplan/epplan/slurm"
)

// cheapFrom has energy cost half from a time on.
func cheapFrom(at time.Time) steer.Prices {
	return func(from time.Time) (hours.Prices, float64) {
		cheap := at.Sub(from).Seconds()
		return hours.Prices{Function: steps.Function[float64]{
			{From: min(0, cheap) - 1, Value: 2}, {From: cheap, Value: 1},
		}}, 1e9
	}
}

// hourly returns a world in which jobs wait for hours, and energy is cheap from two hours on.
func hourly() *world {
	w := newWorld()
	w.settings.Live.Hours.By = config.HoursCost
	w.settings.Prices = cheapFrom(start.Add(2 * time.Hour))
	w.node("n1", "a100", "gpu")
	return w
}

// waiting adds a job that was submitted with a begin time of ours.
func (w *world) waiting(id slurm.JobID, begin time.Time, comment string) *slurm.Job {
	j := w.job(id, 10, 500, comment)
	j.AdminComment = "epplan:" + slurm.TokenWithBegin("t"+strconv.Itoa(int(id)), begin)
	j.Submit, j.Eligible, j.Reason, j.TRESPerNode = start, begin, "BeginTime", "gres/gpu:1"
	j.TimeLimit = live.LimitOf(time.Hour)
	return j
}

func TestAJobWaitsForItsHourUntilSomebodyWantsItOtherwise(t *testing.T) {
	const slack = "epplan:slack=4h"
	begin := start.Add(2 * time.Hour)
	for what, c := range map[string]struct {
		change func(w *world, j *slurm.Job)
		waits  bool // it still does
		left   bool // it is somebody else's
	}{
		"nothing happens":       {func(*world, *slurm.Job) {}, true, false},
		"hours are off":         {func(w *world, _ *slurm.Job) { w.settings.Live.Hours.By = config.HoursOff }, false, false},
		"nobody states prices":  {func(w *world, _ *slurm.Job) { w.settings.Prices = nil }, false, false},
		"jobs are only advised": {func(w *world, _ *slurm.Job) { w.settings.Live.Mode = live.Advise }, false, false},
		"nothing is touched":    {func(w *world, _ *slurm.Job) { w.settings.Live.Mode = live.Observe }, false, false},
		"its user opts out":     {func(_ *world, j *slurm.Job) { j.Comment = "epplan:off" }, false, false},
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
		"its owner has it begin at once": {func(w *world, j *slurm.Job) { j.Eligible, j.Reason = w.now, "None" }, false, true},
		"its owner has it begin later still": {func(_ *world, j *slurm.Job) {
			j.Eligible = begin.Add(time.Hour)
		}, true, true},
	} {
		w := hourly()
		j := w.waiting(7, begin, slack)
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
	j := w.waiting(7, start.Add(2*time.Hour), "epplan:slack=4h")
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
	j := w.waiting(7, start.Add(2*time.Hour), "epplan:slack=4h")
	theirs := w.job(8, 10, 400, "") // by its own user
	theirs.Eligible, theirs.Reason = start.Add(5*time.Hour), "BeginTime"
	task := w.job(9, 10, 400, "epplan:slack=4h") // of an array, without a word of ours but with its begin
	task.ArrayJob, task.ArrayTask, task.Eligible, j.ArrayJob = 7, 3, j.Eligible, 7
	snap, err := w.snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left, err := steer.LeftOf(".", w.disk.Read, snap)
	if err != nil || left.String() != "the begin time of 2 jobs" {
		t.Errorf("%q, %v", left.String(), err)
	}
	if r, err := w.restore(t.Context()); err != nil || r.Undone != 2 || j.Eligible.After(w.now) ||
		task.Eligible.After(w.now) || !theirs.Eligible.After(w.now) {
		t.Errorf("%+v, %v: %v, %v, %v", r, err, j.Eligible, task.Eligible, theirs.Eligible)
	}
}

// An oracle tries every minute.
func TestAJobThatCanWaitBeginsWhenItCostsLeastAndThereAreGPUs(t *testing.T) {
	const minutes = 26 * 60
	later, atOnce := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.now = start.Add(-time.Second) // of the snapshot: start
		w.settings.Live.Hours.By = config.HoursCost
		var price, used [minutes]float64
		var f steps.Function[float64]
		for from, value := 0, 0.0; from < minutes; from += rapid.IntRange(1, 300).Draw(t, "long") {
			value = float64(rapid.IntRange(-2, 20).Draw(t, "price")) / 7
			f = append(f, steps.Step[float64]{From: float64(60 * from), Value: value})
			for m := from; m < minutes; m++ {
				price[m] = value
			}
		}
		w.settings.Prices = func(time.Time) (hours.Prices, float64) { return hours.Prices{Function: f}, 1e6 }
		nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
		for n := range nodes {
			w.node("n"+strconv.Itoa(n), "a100", "gpu")
		}
		use := func(from, to int, gpus float64) {
			for m := from; m < min(to, minutes); m++ {
				used[m] += gpus
			}
		}
		for n := range nodes {
			if gpus := rapid.IntRange(0, 4).Draw(t, "running"); gpus > 0 {
				left := rapid.IntRange(1, 600).Draw(t, "left")
				j := w.job(slurm.JobID(100+n), 10, 900, "")
				j.State.Base, j.Start, j.Nodes = slurm.Running, start.Add(-time.Hour), []string{"n" + strconv.Itoa(n)}
				j.TRESPerNode, j.TimeLimit = "gres/gpu:"+strconv.Itoa(gpus), live.LimitOf(time.Duration(60+left)*time.Minute)
				use(0, left, float64(gpus))
			}
		}
		s := w.steererOf(t)
		for range rapid.IntRange(1, 4).Draw(t, "asks") {
			gpus, run := rapid.IntRange(1, 4*nodes).Draw(t, "gpus"), rapid.IntRange(1, 200).Draw(t, "run")
			slack := rapid.IntRange(0, 1300).Draw(t, "slack")
			cost := func(m int) (sum float64) {
				for k := m; k < m+run; k++ {
					sum += price[k]
				}
				return sum
			}
			fits := func(m int, most float64) bool {
				for k := m; k < m+run; k++ {
					if used[k]+float64(gpus) > most+1e-9 {
						return false
					}
				}
				return true
			}
			best := 0
			for m := range slack + 1 {
				bar := cost(best)
				if best == 0 {
					bar -= 0.05 * math.Abs(bar)
					if m > 0 && math.Abs(cost(m)-bar) < 1e-6 {
						return // just so much is saved as must be
					}
				}
				if m > 0 && cost(m) < bar-1e-9*(math.Abs(cost(0))+math.Abs(bar)) && fits(m, 0.9*4*float64(nodes)) {
					best = m
				}
			}
			if !fits(0, 4*float64(nodes)) {
				best = 0
			}
			got, found := s.HourAtSubmit(&steer.HourAsk{
				Partition: "gpu", GPUs: gpus, Run: time.Duration(run) * time.Minute,
				Latest: start.Add(time.Duration(slack) * time.Minute), Note: true,
			})
			at := int(math.Round(got.Begin.Sub(start).Minutes()))
			switch {
			case found != (best > 0):
				t.Fatalf("%+v, want minute %d", got, best)
			case !found:
				atOnce++
			case at != best || math.Abs(got.Begin.Sub(start).Minutes()-float64(best)) > 1e-9 ||
				cost(at) > 1e-9 && math.Abs(got.Saves-(cost(0)-cost(at))/cost(0)) > 1e-6 || cost(at) < -1e-9 && got.Saves != 0:
				t.Fatalf("begins %v, where %g is saved, want minute %d, which costs %g", got.Begin, got.Saves, best, cost(best))
			default:
				later++
				use(at, at+run, float64(gpus))
			}
		}
	})
	t.Logf("%d began later, %d at once", later, atOnce)
	if later < 20 || atOnce < 20 {
		t.Error("too few of one kind")
	}
}

// steererOf returns one that has made a step.
func (w *world) steererOf(t *rapid.T) *steer.Steerer {
	s := w.open(t)
	if _, err := s.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNoJobIsPutOffByWhatIsOldOrUnknown(t *testing.T) {
	nothing := func(*world) {}
	ask := steer.HourAsk{GPUs: 1, Run: time.Hour, Latest: start.Add(4 * time.Hour)}
	for what, c := range map[string]struct {
		before func(w *world)
		later  time.Duration
		ask    func(a *steer.HourAsk)
		want   bool
	}{
		"all is known":          {nothing, 0, func(*steer.HourAsk) {}, true},
		"the default partition": {nothing, 0, func(a *steer.HourAsk) { a.Partition = "" }, true},
		"another partition":     {nothing, 0, func(a *steer.HourAsk) { a.Partition = "cpu" }, false},
		"two partitions":        {nothing, 0, func(a *steer.HourAsk) { a.Partition = "gpu,cpu" }, false},
		"others wait for GPUs": {func(w *world) {
			w.job(8, 20, 900, "").TRESPerNode = "gres/gpu:8"
		}, 0, func(*steer.HourAsk) {}, false},
		"too many GPUs":           {nothing, 0, func(a *steer.HourAsk) { a.GPUs = 4 }, false},
		"Slurm answered long ago": {nothing, 2 * time.Minute, func(*steer.HourAsk) {}, false},
		"it can wait but an hour": {nothing, 0, func(a *steer.HourAsk) { a.Latest = start.Add(time.Hour) }, false},
		"it can wait just until then": {nothing, 0, func(a *steer.HourAsk) {
			a.Latest = start.Add(2 * time.Hour)
		}, true},
	} {
		w := hourly()
		c.before(w)
		s := w.open(t)
		step(t, s)
		w.now = w.now.Add(c.later)
		a := ask
		a.Partition = "gpu"
		c.ask(&a)
		if hour, got := s.HourAtSubmit(&a); got != c.want || got && !hour.Begin.Equal(start.Add(2*time.Hour)) {
			t.Errorf("%s: %+v, %t", what, hour, got)
		}
	}
	w := hourly()
	w.settings.Prices = func(from time.Time) (hours.Prices, float64) {
		prices, _ := cheapFrom(start.Add(30 * time.Hour))(from)
		return prices, start.Sub(from).Seconds() // the series ended
	}
	s := w.open(t)
	step(t, s)
	if hour, got := s.HourAtSubmit(&steer.HourAsk{
		Partition: "gpu", GPUs: 1, Run: time.Hour, Latest: start.Add(40 * time.Hour),
	}); got {
		t.Errorf("begins %v, by the prices of a day that nobody states", hour.Begin)
	}
}
