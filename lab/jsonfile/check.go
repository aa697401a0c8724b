package jsonfile

import (
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// What an instance may have at most. A state holds a figure for each slot of
// each GPU.
const (
	maxLevels     = 10_000
	maxServers    = 100_000
	maxGPUs       = 1_000_000
	maxTasks      = 1_000_000
	maxCells      = 1 << 26 // slots times GPUs, or slots times tasks
	maxFigure     = 1e9     // watts, gigabytes, seconds, megahertz
	meanTolerance = 0.01    // by which mean_util_pct may differ, percent points
	greatestBeta  = 10.0    // exponent of eq. 5
	greatestSLA   = 1_000.0 // how many times its time a task may take
)

// fieldError is a field that can't be so.
type fieldError struct {
	at  jsontext.Pointer
	msg string
}

// Error returns the path and what is wrong.
func (f *fieldError) Error() string { return fieldPath(f.at) + " " + f.msg }

// fieldErrorf is a fault of a field.
func fieldErrorf(at jsontext.Pointer, format string, args ...any) error {
	return &fieldError{at: at, msg: fmt.Sprintf(format, args...)}
}

// float returns a number of the file between two bounds, or the default where it is
// left out; a default of NaN is none.
func (f *jsonNumber) float(
	at jsontext.Pointer, name string, least, most, otherwise float64,
) (float64, error) {
	if f == nil {
		if math.IsNaN(otherwise) {
			return 0, fieldErrorf(at, "has no %s, want a number from %g to %g", name, least, most)
		}
		return otherwise, nil
	}
	return float64(*f), f.checkRange(at.AppendToken(name), least, most)
}

// checkRange complains about a number out of bounds.
func (f *jsonNumber) checkRange(at jsontext.Pointer, least, most float64) error {
	if x := float64(*f); !(x >= least && x <= most) { // so is NaN
		return fieldErrorf(at, "is %g, want %g to %g", x, least, most)
	}
	return nil
}

// integer returns a field that counts something.
func (f *jsonNumber) integer(at jsontext.Pointer, name string, least, most, otherwise float64) (int, error) {
	x, err := f.float(at, name, least, most, otherwise)
	if err == nil && x != math.Trunc(x) {
		err = fieldErrorf(at.AppendToken(name), "is %g, want a whole number", x)
	}
	return int(x), err
}

func element(at jsontext.Pointer, i int) jsontext.Pointer { return at.AppendToken(strconv.Itoa(i)) }

// instance returns the instance of a file.
func (f *instanceFile) instance() (*sharing.Instance, error) {
	in := &sharing.Instance{}
	if f.Name != nil {
		in.Name = *f.Name
	}
	for _, step := range []func(*sharing.Instance) error{f.physics, f.window, f.servers, f.tasks} {
		if err := step(in); err != nil {
			return nil, err
		}
	}
	return in, nil
}

var required = math.NaN()

func (f *instanceFile) physics(in *sharing.Instance) (err error) {
	p := &in.Physics
	if p.BaseW, err = f.BaseW.float("", "p_gs_w", 0, maxFigure, required); err != nil {
		return err
	}
	if p.WPerMHz, err = f.WPerMHz.float("", "alpha_w_per_mhz", 0, maxFigure, required); err != nil {
		return err
	}
	if p.Beta, err = f.Beta.float("", "beta", 0, greatestBeta, required); err != nil {
		return err
	}
	if err := f.levels(p); err != nil {
		return err
	}
	step, err := f.StepMHz.float("", "delta_f_mhz", 0, float64(p.Max()), float64(smallestStep(p.LevelsMHz)))
	if err != nil {
		return err
	}
	p.StepMHz = dvfsmodel.MHz(step)
	if p.StepMHz == 0 {
		return fieldErrorf("/delta_f_mhz", "is 0, want more")
	}
	return nil
}

func (f *instanceFile) levels(p *sharing.Physics) error {
	if n := len(f.Levels); n == 0 || n > maxLevels {
		return fieldErrorf("/f_levels_mhz", "has %d frequencies, want 1 to %d", n, maxLevels)
	}
	for i, mhz := range f.Levels {
		at := element("/f_levels_mhz", i)
		if err := mhz.checkRange(at, 1, maxFigure); err != nil {
			return err
		}
		if i > 0 && mhz <= f.Levels[i-1] {
			return fieldErrorf(at, "is %g after %g, want the frequencies ascending", mhz, f.Levels[i-1])
		}
		p.LevelsMHz = append(p.LevelsMHz, dvfsmodel.MHz(mhz))
	}
	if f.MinMHz != nil && *f.MinMHz != f.Levels[0] {
		return fieldErrorf("/f_min_mhz", "is %g, want the first of f_levels_mhz, %g", *f.MinMHz, f.Levels[0])
	}
	if f.MaxMHz != nil && dvfsmodel.MHz(*f.MaxMHz) != p.Max() {
		return fieldErrorf("/f_max_mhz", "is %g, want the last of f_levels_mhz, %g", *f.MaxMHz, p.Max())
	}
	return nil
}

// smallestStep returns the least distance of two levels; the level itself where there
// is one.
func smallestStep(levels []dvfsmodel.MHz) dvfsmodel.MHz {
	gap := levels[len(levels)-1]
	for i := 1; i < len(levels); i++ {
		gap = min(gap, levels[i]-levels[i-1])
	}
	return gap
}

// window takes over what holds for all tasks.
func (f *instanceFile) window(in *sharing.Instance) (err error) {
	if in.SLA, err = f.SLA.float("", "sla", 1, greatestSLA, sharing.PaperSLA); err != nil {
		return err
	}
	if in.SlotS, err = f.SlotS.float("", "slot_s", 0, maxFigure, required); err != nil {
		return err
	}
	if in.SlotS == 0 {
		return fieldErrorf("/slot_s", "is 0, want more")
	}
	return nil
}

func (f *instanceFile) servers(in *sharing.Instance) error {
	if n := len(f.Servers); n == 0 || n > maxServers {
		return fieldErrorf("/servers", "has %d servers, want 1 to %d", n, maxServers)
	}
	seen := make(map[jsonName]bool)
	gpus := 0
	for i := range f.Servers {
		at := element("/servers", i)
		if id := f.Servers[i].ID; id != nil {
			if seen[*id] {
				return fieldErrorf(at.AppendToken("id"), "is %q again, want each once", *id)
			}
			seen[*id] = true
		}
		s, err := f.Servers[i].server(at)
		if err != nil {
			return err
		}
		if gpus += len(s.GPUMemGB); gpus > maxGPUs {
			return fieldErrorf(at, "makes it more than %d GPUs, want fewer", maxGPUs)
		}
		in.Servers = append(in.Servers, s)
	}
	return nil
}

func (f *serverFile) server(at jsontext.Pointer) (s sharing.Server, err error) {
	if s.StaticW, err = f.StaticW.float(at, "p_static_w", 0, maxFigure, required); err != nil {
		return s, err
	}
	if s.OtherW, err = f.OtherW.float(at, "p_other_w", 0, maxFigure, 0); err != nil {
		return s, err
	}
	if len(f.GPUMemGB) == 0 {
		return s, fieldErrorf(at, "has no gpu_mem_gb, want the memory of each of its GPUs")
	}
	for i, mem := range f.GPUMemGB {
		if err := mem.checkRange(element(at.AppendToken("gpu_mem_gb"), i), 0, maxFigure); err != nil {
			return s, err
		}
		s.GPUMemGB = append(s.GPUMemGB, float64(mem))
	}
	return s, nil
}

func (f *instanceFile) tasks(in *sharing.Instance) error {
	if n := len(f.Tasks); n == 0 || n > maxTasks {
		return fieldErrorf("/tasks", "has %d tasks, want 1 to %d", n, maxTasks)
	}
	gpus, slots := len(in.GPUs()), len(f.Tasks[0].UtilPct)
	if most := maxCells / max(gpus, len(f.Tasks)); slots == 0 || slots > most {
		return fieldErrorf("/tasks/0/util_pct", "has %d slots, want 1 to %d", slots, most)
	}
	if f.Slots != nil && int(*f.Slots) != slots {
		return fieldErrorf("/n_slots", "is %g, but the first task has %d", *f.Slots, slots)
	}
	seen := make(map[string]bool, len(f.Tasks))
	for i := range f.Tasks {
		at := element("/tasks", i)
		t, err := f.Tasks[i].task(at, in.SLA, gpus, slots)
		if err != nil {
			return err
		}
		if f.Tasks[i].ID == nil {
			t.ID = strconv.Itoa(i)
		}
		if seen[t.ID] {
			return fieldErrorf(at, "is called %q again, want each id once", t.ID)
		}
		seen[t.ID] = true
		in.Tasks = append(in.Tasks, t)
	}
	return nil
}

func (f *taskFile) task(at jsontext.Pointer, sla float64, gpus, slots int) (t sharing.Task, err error) {
	if f.ID != nil {
		t.ID = string(*f.ID)
	}
	if t.Arrival, err = f.Arrival.float(at, "arrival_s", 0, maxFigure*1e3, 0); err != nil {
		return t, err
	}
	if t.MemGB, err = f.MemGB.float(at, "mem_gb", 0, maxFigure, required); err != nil {
		return t, err
	}
	if t.GPUs, err = f.GPUs.integer(at, "v_gpus", 1, float64(gpus), 1); err != nil {
		return t, err
	}
	if t.Kappa, err = f.Kappa.float(at, "kappa", 1, greatestSLA, sla); err != nil {
		return t, err
	}
	t.UtilPct, err = f.series(at, slots)
	return t, err
}

// series returns the utilisation by slot.
func (f *taskFile) series(at jsontext.Pointer, slots int) ([]float64, error) {
	if len(f.UtilPct) != slots {
		return nil, fieldErrorf(at, "has %d slots of util_pct, want %d as the first task has",
			len(f.UtilPct), slots)
	}
	series := make([]float64, slots)
	for i, u := range f.UtilPct {
		if err := u.checkRange(element(at.AppendToken("util_pct"), i), 0, 100); err != nil {
			return nil, err
		}
		series[i] = float64(u)
	}
	if got := sharing.MeanPct(series); f.MeanPct != nil && math.Abs(float64(*f.MeanPct)-got) > meanTolerance {
		return nil, fieldErrorf(at.AppendToken("mean_util_pct"), "is %g, but the mean of util_pct is %.4f",
			*f.MeanPct, got)
	}
	return series, nil
}
