package trace

import (
	"io"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/planner/fleet"
)

// Pod is a task of a list in the openb format. Times are seconds, NaN where
// the list doesn't have them.
type Pod struct {
	Name                        string
	Demand                      fleet.Demand
	Created, Deleted, Scheduled float64
}

// initialRows is how many rows there is room for from the start.
const initialRows = 10_000

// maxQuantity bounds what a row asks for, so that sums stay exact.
const maxQuantity = 1e12

// demandColumns are where a table has a task's demand.
type demandColumns struct{ cpu, mem, gpus, milli, spec int }

func (t *csvTable) demandColumns() (demandColumns, error) {
	found, err := t.requireColumns("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
	if err != nil {
		return demandColumns{}, err
	}
	return demandColumns{
		cpu: found[0], mem: found[1], gpus: found[2], milli: found[3], spec: t.in.Index("gpu_spec"),
	}, nil
}

// demand reads a task's demand.
func (t *csvTable) demand(at *demandColumns) (d fleet.Demand, err error) {
	if d.CPU, err = t.integer(at.cpu, maxQuantity); err != nil {
		return d, err
	}
	if d.Mem, err = t.integer(at.mem, maxQuantity); err != nil {
		return d, err
	}
	gpus, err := t.integer(at.gpus, fleet.MaxGPUs)
	if err != nil {
		return d, err
	}
	if d.GPUs, err = int(gpus), t.share(at, &d, gpus); err != nil {
		return d, err
	}
	d.Spec = t.internedText(at.spec)
	return d, t.checkSpec(at.spec, d.Spec)
}

// share reads the share of each GPU; a task without GPUs may leave it out.
func (t *csvTable) share(at *demandColumns, d *fleet.Demand, gpus int64) error {
	if gpus == 0 && len(t.field(at.milli)) == 0 {
		return nil
	}
	milli, err := t.integer(at.milli, fleet.WholeGPU)
	if err != nil {
		return err
	}
	switch d.Milli = int(milli); {
	case gpus == 0 && milli != 0:
		return t.errorAt(at.milli, "gpu_milli is %d but num_gpu is 0, want 0", milli)
	case gpus > 0 && milli == 0:
		return t.errorAt(at.milli, "gpu_milli is 0 but num_gpu is %d, want 1 to %d", gpus, fleet.WholeGPU)
	case gpus > 1 && milli != fleet.WholeGPU:
		return t.errorAt(at.milli, "gpu_milli is %d on each of %d GPUs, want %d: only one GPU can be shared",
			milli, gpus, fleet.WholeGPU)
	}
	return nil
}

// checkSpec refuses a list of GPU models that has an empty one.
func (t *csvTable) checkSpec(column int, spec string) error {
	if spec != "" && slices.Contains(strings.Split(spec, "|"), "") {
		return t.errorAt(column, "gpu_spec is %.40q, want GPU models joined by |", spec)
	}
	return nil
}

// ReadPods reads a list of tasks in the openb format: CSV with a header that
// names the columns cpu_milli, memory_mib, num_gpu and gpu_milli and may name
// name, gpu_spec, creation_time, deletion_time and scheduled_time; others are
// skipped. The name stands for the input in errors; every one is a
// [queue.SyntaxError] but those of the reader itself.
func ReadPods(r io.Reader, name string) ([]Pod, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	at, err := t.demandColumns()
	if err != nil {
		return nil, err
	}
	names := t.in.Index("name")
	times := [3]int{t.in.Index("creation_time"), t.in.Index("deletion_time"), t.in.Index("scheduled_time")}
	pods := make([]Pod, 0, initialRows)
	err = t.each("no tasks, want at least one line after the header", func() (err error) {
		pod := Pod{Name: t.text(names)}
		if pod.Demand, err = t.demand(&at); err != nil {
			return err
		}
		err = t.times(&pod, times)
		pods = append(pods, pod)
		return err
	})
	return pods, err
}

// times reads when a task was there.
func (t *csvTable) times(pod *Pod, columns [3]int) (err error) {
	for i, to := range [...]*float64{&pod.Created, &pod.Deleted, &pod.Scheduled} {
		if *to, err = t.seconds(columns[i]); err != nil {
			return err
		}
	}
	if pod.Deleted < pod.Created {
		return t.errorAt(columns[1], "deletion_time %v is before creation_time %v", pod.Deleted, pod.Created)
	}
	return nil
}

// Arrival is the arrival of a task of a list.
type Arrival struct {
	Pod    int // row of the list, from 0
	Demand fleet.Demand
	Name   string
}

// ReadArrivals reads an arrival sequence in the format of data/openb: the
// columns seq, which counts from 0, and pod_row, the row of the task list from
// 0. Where it also has a task's name and demand, they must agree with the list.
func ReadArrivals(r io.Reader, name string, pods []Pod) ([]Arrival, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	found, err := t.requireColumns("seq", "pod_row")
	if err != nil {
		return nil, err
	}
	names, demands := t.in.Index("name"), t.in.Index("cpu_milli") >= 0
	var at demandColumns
	if demands {
		if at, err = t.demandColumns(); err != nil {
			return nil, err
		}
	}
	arrivals := make([]Arrival, 0, max(initialRows, len(pods)*3/2))
	err = t.each("no arrivals, want at least one line after the header", func() error {
		row, err := t.arrival(found, len(arrivals), len(pods))
		if err != nil {
			return err
		}
		pod := &pods[row]
		if names >= 0 && pod.Name != "" && pod.Name != t.field(names) {
			return t.errorAt(names, "name is %.40q, want that of the task list, %.40q", t.field(names), pod.Name)
		}
		if demands {
			if err := t.checkPodDemand(pod, &at); err != nil {
				return err
			}
		}
		arrivals = append(arrivals, Arrival{Pod: row, Demand: pod.Demand, Name: pod.Name})
		return nil
	})
	return arrivals, err
}

// arrival reads which task of a list arrives.
func (t *csvTable) arrival(columns []int, want, pods int) (int, error) {
	seq, err := t.integer(columns[0], math.MaxInt32)
	if err != nil {
		return 0, err
	}
	if int(seq) != want {
		return 0, t.errorAt(columns[0], "seq is %d, want %d", seq, want)
	}
	row, err := t.integer(columns[1], int64(pods)-1)
	return int(row), err
}

func (t *csvTable) checkPodDemand(pod *Pod, at *demandColumns) error {
	d, err := t.demand(at)
	if err != nil {
		return err
	}
	want := pod.Demand
	if at.spec < 0 {
		want.Spec = "" // not in these columns
	}
	if d != want {
		return t.errorAt(-1, "asks for %+v, want what %.40q of the task list asks for, %+v", d,
			pod.Name, want)
	}
	return nil
}
