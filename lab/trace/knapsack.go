package trace

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// EnergyModel says which of the two energies of a knapsack queue is meant.
type EnergyModel int

// Independent: the energy of a job has nothing to do with its run time, as in
// the PREDICT paper's simulator. Coupled: it is run time times power.
const (
	Independent EnergyModel = iota
	Coupled
)

// ParseEnergyModel reads "independent" or "coupled".
func ParseEnergyModel(s string) (EnergyModel, error) {
	switch s {
	case "independent":
		return Independent, nil
	case "coupled":
		return Coupled, nil
	}
	return 0, fmt.Errorf("unknown energy model %q, want independent or coupled", s)
}

// String returns the name that [ParseEnergyModel] takes.
func (m EnergyModel) String() string {
	if m == Coupled {
		return "coupled"
	}
	return "independent"
}

// KnapsackTypes are the names of the two GPU types of a knapsack queue, the more
// powerful one first.
var KnapsackTypes = [2]string{"A", "B"} //nolint:gochecknoglobals // constant

// KnapsackJob is a job of a queue for two GPU types.
type KnapsackJob struct {
	Pos      queue.Position // of its type in the file; zero: it was drawn
	ID, Type string
	Arrival  float64 // seconds
	GPUs     [2]int  // by GPU type
	Actual   [2]KnapsackRun
	Forecast [2]KnapsackRun // the prediction that decisions are made by
}

// KnapsackRun is what a run of a job takes.
type KnapsackRun struct{ Seconds, KWh float64 }

// KnapsackPool is the GPUs of both types that a queue has.
type KnapsackPool struct {
	Pos  queue.Position // of its name in the file; zero: it was drawn
	Name string
	GPUs [2]int
}

// ReadKnapsack reads a queue for two GPU types: CSV with a header that names
// job_id, arrival_s, type, gpus_a, gpus_b and, for a and b, t_*_s, e_*_kwh,
// pred_t_*_s and pred_e_*_kwh, those of the coupled energy model with c_ before
// them. Other columns are skipped.
func ReadKnapsack(r io.Reader, name string, model EnergyModel) ([]KnapsackJob, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	k := knapsackTable{csvTable: t, ids: make(map[string]int)}
	if err := k.locate(model); err != nil {
		return nil, err
	}
	var jobs []KnapsackJob
	err = t.each("no jobs after the header, want at least one", func() error {
		job, err := k.job()
		jobs = append(jobs, job)
		return err
	})
	return jobs, err
}

// knapsackTable is a table with the places of its columns.
type knapsackTable struct {
	*csvTable
	ids                    map[string]int // lines
	id, arrival, kind      int
	gpus, time, kWh        [2]int
	forecastTime, forecast [2]int
}

func (k *knapsackTable) locate(model EnergyModel) error {
	prefix := ""
	if model == Coupled {
		prefix = "c_"
	}
	at, err := k.requireColumns("job_id", "arrival_s", "type", "gpus_a", "gpus_b",
		prefix+"t_a_s", prefix+"t_b_s", prefix+"e_a_kwh", prefix+"e_b_kwh",
		prefix+"pred_t_a_s", prefix+"pred_t_b_s", prefix+"pred_e_a_kwh", prefix+"pred_e_b_kwh")
	if err != nil {
		return err
	}
	k.id, k.arrival, k.kind = at[0], at[1], at[2]
	for i, to := range []*[2]int{&k.gpus, &k.time, &k.kWh, &k.forecastTime, &k.forecast} {
		to[0], to[1] = at[3+2*i], at[4+2*i]
	}
	return nil
}

func (k *knapsackTable) job() (job KnapsackJob, err error) {
	job.Pos = k.position(k.kind)
	job.ID, job.Type = k.text(k.id), k.internedText(k.kind)
	if job.ID == "" {
		return job, k.errorAt(k.id, "job_id is empty, want a name")
	}
	if first, twice := k.ids[job.ID]; twice {
		return job, k.errorAt(k.id, "job %.40q is on line %d already, want each once", job.ID, first)
	}
	k.ids[job.ID] = k.in.Line()
	if job.Arrival, err = k.number(k.arrival, 0); err != nil {
		return job, err
	}
	for i := range KnapsackTypes {
		if job.GPUs[i], err = k.gpuCount(k.gpus[i]); err != nil {
			return job, err
		}
		if job.Actual[i], err = k.run(k.time[i], k.kWh[i]); err != nil {
			return job, err
		}
		if job.Forecast[i], err = k.run(k.forecastTime[i], k.forecast[i]); err != nil {
			return job, err
		}
	}
	return job, nil
}

func (k *knapsackTable) run(time, kWh int) (run KnapsackRun, err error) {
	const shortest = 1e-3
	if run.Seconds, err = k.number(time, shortest); err != nil {
		return run, err
	}
	run.KWh, err = k.number(kWh, 0)
	return run, err
}

// gpuCount returns a field with how many GPUs of a type there are, one at least.
func (t *csvTable) gpuCount(column int) (int, error) {
	gpus, err := t.integer(column, planner.MaxGPUs)
	if err == nil && gpus == 0 {
		err = t.errorAt(column, "%s is 0, want 1 to %d", t.in.Header[column], planner.MaxGPUs)
	}
	return int(gpus), err
}

// ReadKnapsackPools reads the GPUs of several queues: CSV with the columns
// instance, gpus_type_a and gpus_type_b.
func ReadKnapsackPools(r io.Reader, name string) ([]KnapsackPool, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	at, err := t.requireColumns("instance", "gpus_type_a", "gpus_type_b")
	if err != nil {
		return nil, err
	}
	var pools []KnapsackPool
	lines := make(map[string]int)
	err = t.each("no clusters after the header, want at least one", func() (err error) {
		pool := KnapsackPool{Pos: t.position(at[0]), Name: t.text(at[0])}
		if first, twice := lines[pool.Name]; twice {
			return t.errorAt(at[0], "cluster %.40q is on line %d already, want each once", pool.Name, first)
		}
		lines[pool.Name] = t.in.Line()
		for i := range pool.GPUs {
			if pool.GPUs[i], err = t.gpuCount(at[1+i]); err != nil {
				return err
			}
		}
		pools = append(pools, pool)
		return nil
	})
	return pools, err
}

// KnapsackProblem returns the planning problem of a queue as it is predicted, and as
// it turns out: all GPUs of a type are one node that is always on, and all that
// they take is the jobs' energy.
func KnapsackProblem(jobs []KnapsackJob, pool *KnapsackPool) (predicted, truth *planner.Problem, err error) {
	if len(jobs) == 0 {
		return nil, nil, errors.New("the queue has no jobs")
	}
	predicted, truth = &planner.Problem{}, &planner.Problem{}
	for _, p := range []*planner.Problem{predicted, truth} {
		p.Mode = planner.Online
		p.Tasks = make([]planner.Task, len(jobs))
		p.Cluster = planner.Cluster{Name: pool.Name, Classes: make([]planner.NodeClass, len(KnapsackTypes))}
		for i, model := range KnapsackTypes {
			p.Cluster.Classes[i] = planner.NodeClass{Name: model, Model: model, Count: 1, GPUs: pool.GPUs[i]}
		}
	}
	for i := range jobs {
		predicted.Tasks[i] = jobs[i].task(&jobs[i].Forecast)
		truth.Tasks[i] = jobs[i].task(&jobs[i].Actual)
	}
	return predicted, truth, nil
}

func (job *KnapsackJob) task(runs *[2]KnapsackRun) planner.Task {
	t := planner.Task{
		ID: job.ID, Arrival: job.Arrival, Share: 1,
		Deadline: math.Inf(1), Due: math.Inf(1), Limit: math.Inf(1),
		Options: make([]planner.Option, len(KnapsackTypes)),
	}
	for i, model := range KnapsackTypes {
		at := dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: runs[i].Seconds}
		at.Power = dvfsmodel.Watt(runs[i].KWh * dvfsmodel.JoulesPerKWh / float64(job.GPUs[i]) / at.Time)
		at.Energy = at.Power.Over(at.Time)
		t.Options[i] = planner.Option{Model: model, GPUs: job.GPUs[i], Response: &dvfsmodel.Fixed{At: at}}
	}
	return t
}
