package join_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
)

// doubtedModels are twoModels whose models of fft may be off, by a tenth on slow and by a
// hundredth on fast; and jobs without a model on slow, which has clocks, respond as others.
type doubtedModels struct {
	twoModels
	doubts map[string]*dvfsmodel.Uncertainty
	table  *dvfsmodel.Table
	unseen *pooled.UnseenWorkload
}

func newDoubtedModels(t *testing.T) *doubtedModels {
	t.Helper()
	d := &doubtedModels{doubts: map[string]*dvfsmodel.Uncertainty{
		"fft slow": {Level: dvfsmodel.Deviation{Time: 0.1, Power: 0.1}, LevelShare: 1, Clocks: noDeviation},
		"fft fast": {Level: dvfsmodel.Deviation{Time: 0.01, Power: 0.01}, LevelShare: 1, Clocks: noDeviation},
	}}
	base := dvfsmodel.Setting{Core: 1000, Mem: 900}
	var err error
	if d.table, err = dvfsmodel.NewTable(base, []dvfsmodel.Setting{
		{Core: 500, Mem: 900},
		{Core: 800, Mem: 900},
		{Core: 1000, Mem: 900},
	}, nil); err != nil {
		t.Fatal(err)
	}
	const count = 6
	known := make([]pooled.KnownWorkload, 0, count)
	for i := range count { // times grow by 0.2 to 0.45 of what the clock falls
		known = append(known, pooled.KnownWorkload{
			Predict: func(at dvfsmodel.Setting) (float64, dvfsmodel.Watt) {
				x := float64(at.Core / base.Core)
				return 10 * math.Pow(x, -0.2-0.05*float64(i)), dvfsmodel.Watt(100 * x * x)
			},
		})
	}
	if d.unseen, err = pooled.NewUnseenWorkload(known, base); err != nil {
		t.Fatal(err)
	}
	return d
}

func noDeviation(dvfsmodel.Scaling) dvfsmodel.Deviation { return dvfsmodel.Deviation{} }

func (d *doubtedModels) Hardware(gpuModel string) (join.Hardware, error) {
	h, err := d.twoModels.Hardware(gpuModel)
	if h.Name == "slow" {
		h.Range, h.Table, h.Unseen = nil, d.table, d.unseen
		h.Default.Core, h.Default.Mem = 1000, 900
	}
	return h, err
}

func (d *doubtedModels) Uncertainty(workload, gpuModel string) *dvfsmodel.Uncertainty {
	return d.doubts[workload+" "+gpuModel]
}

func (d *doubtedModels) CheckWorkload(workload string) error {
	if workload == "new" {
		return errors.New("unknown workload new")
	}
	return nil
}

func TestAResponseIsDoubtedByAllModelsThatItRestsOn(t *testing.T) {
	// How often levels of time and power count, by GPU model of the doubted model.
	type levels map[string][2]float64
	for name, c := range map[string]struct {
		csv  string
		want map[string]levels // by GPU model of the option
	}{
		"measured there, and moved": {"id,workload,runtime_s.slow\na,fft,80\n", map[string]levels{
			"slow": {"slow": {0, 1}}, "fast": {"fast": {1, 1}, "slow": {-1, 0}},
		}},
		"with power": {"id,workload,runtime_s.slow,power_w.slow\na,fft,80,100\n", map[string]levels{
			"slow": {"slow": {0, 0}}, "fast": {"fast": {1, 1}, "slow": {-1, -1}},
		}},
		"measured on both": {"id,workload,runtime_s.slow,runtime_s.fast\na,fft,80,20\n", map[string]levels{
			"slow": {"slow": {0, 1}}, "fast": {"fast": {0, 1}},
		}},
		"not measured": {"id,workload\na,fft\n", map[string]levels{
			"slow": {"slow": {1, 1}}, "fast": {"fast": {1, 1}},
		}},
		"no error stated": {"id,workload,runtime_s.fast\na,mesh,80\n", map[string]levels{"fast": {}}},
		"without a model": {"id,runtime_s.fast\na,80\n", map[string]levels{"fast": {}}},
	} {
		d := newDoubtedModels(t)
		tasks, _, err := joinedBy(t, d, c.csv, "slow", "fast")
		if err != nil {
			t.Fatal(err)
		}
		if len(tasks[0].Options) != len(c.want) {
			t.Errorf("%s: options %+v", name, tasks[0].Options)
		}
		for _, o := range tasks[0].Options {
			want := c.want[o.Model]
			if len(o.Uncertainties) != len(want) {
				t.Errorf("%s: on %s it rests on %d models, want %d", name, o.Model,
					len(o.Uncertainties), len(want))
			}
			for gpu, times := range want {
				if !slices.ContainsFunc(o.Uncertainties, func(of planner.UncertainModel) bool {
					return of.Uncertainty == d.doubts["fft "+gpu] && of.Time == times[0] &&
						of.Power == times[1] && of.Clocks == (gpu == o.Model)
				}) {
					t.Errorf("%s: on %s it rests on %+v, want %v of the model on %s", name, o.Model,
						o.Uncertainties, times, gpu)
				}
			}
		}
	}
}

func TestAJobWithoutAModelRespondsAsOthersDo(t *testing.T) {
	const csv = "id,workload,runtime_s.slow,power_w.slow,util_pct,slot_s,gpu_mem_gb\n" +
		"a,,1000,50,,,\nb,mesh,1000,50,,,\nc,mesh,2000,60,,,\nd,new,1000,50,,,\ne,,1000,50,40 60,500,4\n"
	tasks, warnings, err := joinedBy(t, newDoubtedModels(t), csv, "slow")
	if err != nil {
		t.Fatal(err)
	}
	if told := errors.Join(warnings...); told == nil || strings.Count(told.Error(), "\n") > 0 ||
		!strings.Contains(told.Error(), `job "d": workload "new" has no model: planned as others respond`) {
		t.Errorf("warnings %v", told)
	}
	for i, task := range tasks[:4] {
		o := task.Options[0]
		at, least := o.Response.Default(), task.Options[0].Response.MinTime()
		if !o.Prior || at.Time != [...]float64{1000, 1000, 2000, 1000}[i] ||
			at.Power != [...]dvfsmodel.Watt{50, 50, 60, 50}[i] || least != at.Time {
			t.Errorf("job %s: at default clocks %v s at %v W, %v s at least, prior %v", task.ID, at.Time,
				at.Power, least, o.Prior)
		}
		best, err := o.Response.Optimum(dvfsmodel.MinEnergy(), math.Inf(1))
		if err != nil || best.Core != 500 || best.Time < at.Time*math.Pow(2, 0.45) ||
			best.Energy > at.Energy/2 {
			t.Errorf("job %s: best at %v MHz, %v s and %v J, where the slowest other takes %v s; %v", task.ID,
				best.Core, best.Time, best.Energy, at.Time*math.Pow(2, 0.45), err)
		}
		// Whoever promises no more time than at default clocks keeps these.
		if best, err = o.Response.Optimum(dvfsmodel.MinEnergy(), at.Time*1.01); err != nil ||
			best.Core != 1000 {
			t.Errorf("job %s: %v MHz where there is no time to lose; %v", task.ID, best.Core, err)
		}
	}
	if o := tasks[4].Options[0]; o.Prior {
		t.Error("a job with a profile is taken to respond as others")
	}
	doubts := func(i int) []planner.UncertainModel { return tasks[i].Options[0].Uncertainties }
	if doubts(0)[0].Uncertainty != doubts(1)[0].Uncertainty ||
		doubts(1)[1].Uncertainty != doubts(2)[1].Uncertainty ||
		doubts(0)[1].Uncertainty == doubts(1)[1].Uncertainty {
		t.Error("jobs of a workload aren't off together, or jobs of two are")
	}
}

func TestAPowerContradictsAModelIfItIsFurtherOffThanTheModelMayBe(t *testing.T) {
	for csv, warned := range map[string]bool{
		"id,workload,runtime_s.slow,power_w.slow\na,fft,80,115\n": false, // of 100 W that may be off by 16 %
		"id,workload,runtime_s.slow,power_w.slow\na,fft,80,120\n": true,
		// of 200 W that may be off by 1.6 %: 5 % are let pass.
		"id,workload,runtime_s.fast,power_w.fast\na,fft,80,208\n": false,
		"id,workload,runtime_s.fast,power_w.fast\na,fft,80,214\n": true,
		// of 300 W, nobody knows how far off.
		"id,workload,runtime_s.fast,power_w.fast\na,mesh,9,370\n": false,
		"id,workload,runtime_s.fast,power_w.fast\na,mesh,9,380\n": true,
	} {
		_, warnings, err := joinedBy(t, newDoubtedModels(t), csv, "slow", "fast")
		if err != nil {
			t.Fatal(err)
		}
		if (len(warnings) > 0) != warned {
			t.Errorf("%s: warnings %v, want some: %v", csv, warnings, warned)
		}
	}
}
