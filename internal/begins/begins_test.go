package begins_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/begins"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/steps"
	"github.com/epplan/epplan/slurm"
)

var start = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// cheapFrom has energy cost half from a time on.
func cheapFrom(at time.Time) begins.Prices {
	return func(from time.Time) (hours.Prices, float64) {
		cheap := at.Sub(from).Seconds()
		return hours.Prices{Function: steps.Function[float64]{
			{From: min(0, cheap) - 1, Value: 2}, {From: cheap, Value: 1},
		}}, 1e9
	}
}

// node returns one with four GPUs.
func node(name string, partitions ...string) slurm.Node {
	return slurm.Node{
		Name: name, State: slurm.NodeState{Base: "IDLE"}, Partitions: partitions,
		Gres: []slurm.Gres{{Name: "gpu", Count: 4}},
	}
}

// pending returns a job that waits for its turn since an hour.
func pending(id slurm.JobID, gpus int) slurm.Job {
	return slurm.Job{
		ID: id, Partition: "gpu", ArrayTask: -1, State: slurm.JobState{Base: slurm.Pending}, Priority: 1,
		Submit: start.Add(-time.Hour), Eligible: start.Add(-time.Hour), Reason: "Resources",
		TRESPerNode: "gres/gpu:" + strconv.Itoa(gpus),
	}
}

// day is what energy costs, and how many GPUs are used, minute by minute.
type day struct {
	price, used [26 * 60]float64
	nodes       int
}

// drawDay draws prices, nodes and jobs that run.
func drawDay(t *rapid.T) (d *day, prices begins.Prices, jobs []slurm.Job, nodes []slurm.Node) {
	d = &day{nodes: rapid.IntRange(1, 4).Draw(t, "nodes")}
	var f steps.Function[float64]
	for from := 0; from < len(d.price); from += rapid.IntRange(1, 300).Draw(t, "long") {
		value := float64(rapid.IntRange(-2, 20).Draw(t, "price")) / 7
		f = append(f, steps.Step[float64]{From: float64(60 * from), Value: value})
		for m := from; m < len(d.price); m++ {
			d.price[m] = value
		}
	}
	for n := range d.nodes {
		name := "n" + strconv.Itoa(n)
		nodes = append(nodes, node(name, "gpu"))
		if gpus := rapid.IntRange(0, 4).Draw(t, "running"); gpus > 0 {
			left := rapid.IntRange(1, 600).Draw(t, "left")
			j := pending(slurm.JobID(100+n), gpus)
			j.State.Base, j.Start, j.Nodes = slurm.Running, start.Add(-time.Hour), []string{name}
			j.TimeLimit = live.LimitOf(time.Duration(60+left) * time.Minute)
			jobs = append(jobs, j)
			d.use(0, left, gpus)
		}
	}
	return d, func(time.Time) (hours.Prices, float64) { return hours.Prices{Function: f}, 1e6 }, jobs, nodes
}

func (d *day) use(from, to, gpus int) {
	for m := from; m < min(to, len(d.used)); m++ {
		d.used[m] += float64(gpus)
	}
}

// cost returns what a run costs that begins at a minute.
func (d *day) cost(m, run int) (sum float64) {
	for k := m; k < m+run; k++ {
		sum += d.price[k]
	}
	return sum
}

// fits reports whether a run uses no more than a part of the GPUs.
func (d *day) fits(m, run, gpus int, part float64) bool {
	for k := m; k < m+run; k++ {
		if d.used[k]+float64(gpus) > part*float64(4*d.nodes)+1e-9 {
			return false
		}
	}
	return true
}

// best returns the first minute, up to a last one, at which a run costs least; 0: at once. Not sure where
// just as much is saved as must be.
func (d *day) best(run, gpus, last int) (best int, sure bool) {
	if !d.fits(0, run, gpus, 1) {
		return 0, true
	}
	first := d.cost(0, run)
	bar := first - 0.05*math.Abs(first)
	for m := 1; m <= last; m++ {
		cost := d.cost(m, run)
		if best == 0 && math.Abs(cost-bar) < 1e-6 {
			return 0, false
		}
		if cost < bar-1e-9*(math.Abs(first)+math.Abs(bar)) && d.fits(m, run, gpus, 0.9) {
			best, bar = m, cost
		}
	}
	return best, true
}

// An oracle tries every minute.
func TestAJobBeginsWhenItCostsLeastAndThereAreGPUs(t *testing.T) {
	later, atOnce := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d, prices, jobs, nodes := drawDay(t)
		book := begins.Book{Clock: func() time.Time { return start }}
		book.SetRooms(begins.NewRooms(start, jobs, nodes, nil, &begins.Terms{Prices: prices, LeastGain: 0.05}))
		for range rapid.IntRange(1, 4).Draw(t, "asks") {
			gpus, run := rapid.IntRange(1, 4*d.nodes).Draw(t, "gpus"), rapid.IntRange(1, 200).Draw(t, "run")
			slack := rapid.IntRange(0, 1300).Draw(t, "slack")
			best, sure := d.best(run, gpus, slack)
			if !sure {
				return
			}
			got, found := book.BestBegin(&begins.Ask{
				Partition: "gpu", GPUs: gpus, Run: time.Duration(run) * time.Minute,
				Latest: start.Add(time.Duration(slack) * time.Minute), Note: true,
			})
			if found != (best > 0) {
				t.Fatalf("%+v, want minute %d", got, best)
			}
			if !found {
				atOnce++
				continue
			}
			later++
			d.use(best, best+run, gpus)
			if !got.Begin.Equal(start.Add(time.Duration(best) * time.Minute)) {
				t.Fatalf("begins %v, want minute %d, which costs %g", got.Begin, best, d.cost(best, run))
			}
			first, then := d.cost(0, run), d.cost(best, run)
			if then > 1e-9 && math.Abs(got.Saves-(first-then)/first) > 1e-6 || then < -1e-9 && got.Saves != 0 {
				t.Fatalf("costs %g in place of %g, and saves %g", then, first, got.Saves)
			}
		}
	})
	t.Logf("%d began later, %d at once", later, atOnce)
	if later < 20 || atOnce < 20 {
		t.Error("too few of one kind")
	}
}

func TestNoJobIsPutOffByWhatIsOldOrUnknown(t *testing.T) {
	type site struct {
		jobs   []slurm.Job
		prices begins.Prices
		late   time.Duration // that what Slurm showed is old
		ask    begins.Ask
	}
	cheap := start.Add(2 * time.Hour)
	for what, c := range map[string]struct {
		change func(s *site)
		want   bool
	}{
		"all is known":            {func(*site) {}, true},
		"the default partition":   {func(s *site) { s.ask.Partition = "" }, true},
		"another partition":       {func(s *site) { s.ask.Partition = "cpu" }, false},
		"two partitions":          {func(s *site) { s.ask.Partition = "gpu,cpu" }, false},
		"too many GPUs":           {func(s *site) { s.ask.GPUs = 4 }, false},
		"Slurm answered long ago": {func(s *site) { s.late = 2 * time.Minute }, false},
		"it can wait but an hour": {func(s *site) { s.ask.Latest = start.Add(time.Hour) }, false},
		"it can wait until then":  {func(s *site) { s.ask.Latest = cheap }, true},
		"others wait for GPUs":    {func(s *site) { s.jobs = append(s.jobs, pending(8, 8)) }, false},
		"others wait for their begin time": {func(s *site) {
			j := pending(8, 8)
			j.Reason = "BeginTime"
			s.jobs = append(s.jobs, j)
		}, true},
		"prices are those of the last day": {func(s *site) {
			s.prices = func(from time.Time) (hours.Prices, float64) {
				prices, _ := cheapFrom(cheap)(from)
				return prices, -22 * 3600
			}
		}, false},
		"prices are repeated for a day": {func(s *site) {
			s.prices = func(from time.Time) (hours.Prices, float64) {
				prices, _ := cheapFrom(cheap)(from)
				return prices, -20 * 3600
			}
		}, true},
	} {
		s := site{prices: cheapFrom(cheap), ask: begins.Ask{
			Partition: "gpu", GPUs: 1, Run: time.Hour, Latest: start.Add(4 * time.Hour),
		}}
		c.change(&s)
		book := begins.Book{Clock: func() time.Time { return start.Add(s.late) }}
		if got, found := book.BestBegin(&s.ask); found {
			t.Errorf("%s: %+v, before anything is known", what, got)
		}
		rooms := begins.NewRooms(start, s.jobs, []slurm.Node{node("n1", "gpu")}, nil,
			&begins.Terms{Prices: s.prices, LeastGain: 0.05})
		rooms.SetDefault("gpu")
		book.SetRooms(rooms)
		if got, found := book.BestBegin(&s.ask); found != c.want || found && !got.Begin.Equal(cheap) {
			t.Errorf("%s: %+v, %t", what, got, found)
		}
	}
}

// What was given counts until Slurm's list has it.
func TestJobsThatComeTogetherHaveGPUsTogether(t *testing.T) {
	now := start
	book := begins.Book{Clock: func() time.Time { return now }}
	cheap := start.Add(2 * time.Hour)
	terms := &begins.Terms{Prices: cheapFrom(cheap), LeastGain: 0.05}
	nodes := []slurm.Node{node("n1", "gpu")}
	list := func(begun map[slurm.JobID]time.Time, jobs ...slurm.Job) {
		book.SetRooms(begins.NewRooms(now, jobs, nodes, begun, terms))
	}
	ask := &begins.Ask{Partition: "gpu", GPUs: 3, Run: time.Hour, Latest: start.Add(4 * time.Hour), Note: true}
	begin := func() time.Duration {
		got, _ := book.BestBegin(ask)
		return got.Begin.Sub(start)
	}
	list(nil)
	now = now.Add(time.Second)
	if first, second := begin(), begin(); first != 2*time.Hour || second != 3*time.Hour {
		t.Errorf("%v, %v", first, second)
	}
	now = start // a list that was asked for before
	list(nil)
	now = now.Add(2 * time.Second)
	if third := begin(); third != 4*time.Hour {
		t.Errorf("%v", third)
	}
	now = now.Add(time.Second)
	j := pending(7, 3)
	j.Reason, j.Eligible, j.TimeLimit = "BeginTime", cheap, live.LimitOf(time.Hour)
	list(map[slurm.JobID]time.Time{7: cheap}, j) // the others were cancelled
	if next := begin(); next != 3*time.Hour {
		t.Errorf("%v", next)
	}
}

// Slurm shows jobs, and takes begin times, in whole seconds, at whatever fraction of one it is asked: a job
// for which the latest is the best begins in the last second that it can.
func TestAJobMayBeginInTheLastSecondThatItCan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fraction := func(what string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Second)-1).Draw(t, what))
		}
		at := start.Add(fraction("of the list"))
		now := at.Add(fraction("of the submission"))
		latest := now.Add(time.Duration(rapid.IntRange(3600, 1e5).Draw(t, "slack")) * time.Second)
		whole := latest.Truncate(time.Second)
		book := begins.Book{Clock: func() time.Time { return now }}
		terms := &begins.Terms{Prices: cheapFrom(latest.Add(30 * time.Minute)), LeastGain: 0.01}
		book.SetRooms(begins.NewRooms(at, nil, []slurm.Node{node("n1", "gpu")}, nil, terms))
		got, found := book.BestBegin(&begins.Ask{Partition: "gpu", GPUs: 1, Run: time.Hour, Latest: latest})
		if !found || !got.Begin.Equal(whole) {
			t.Fatalf("%+v, %t, want %v", got, found, whole)
		}
	})
}
