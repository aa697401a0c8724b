package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/policy"
)

type meanSD struct{ mean, sd float64 }

// meanSDOf is that of a quantity over runs, NaN where there is none.
func meanSDOf(count int, quantity func(i int) float64) meanSD {
	sum := 0.0
	for i := range count {
		sum += quantity(i)
	}
	s := meanSD{mean: sum / float64(count)}
	if count > 1 {
		squares := 0.0
		for i := range count {
			d := quantity(i) - s.mean
			squares += d * d
		}
		s.sd = math.Sqrt(squares / float64(count-1))
	}
	return s
}

// text returns the spread for people, times a factor; the deviation only where there
// are several runs.
func (s meanSD) text(runs, decimals int, factor float64) report.Value {
	if math.IsNaN(s.mean) {
		return report.Value{}
	}
	return report.Text(s.words(runs, decimals, factor))
}

func (s meanSD) words(runs, decimals int, factor float64) string {
	text := terminal.Fixed(s.mean*factor, decimals)
	if runs > 1 {
		text += " ± " + terminal.Fixed(s.sd*factor, decimals)
	}
	return text
}

// saving returns the part of the base's power that a policy saves at a load; NaN without base.
func (in *inflation) saving(runs [][]inflationRun, policy int, load float64) meanSD {
	return in.reduction(runs, policy, load, func(r *replay.Reading) float64 { return float64(r.Power) })
}

// costSaving returns the same in weighted watts.
func costSaving(in *inflation, runs [][]inflationRun, policy int, load float64) meanSD {
	return in.reduction(runs, policy, load, func(r *replay.Reading) float64 { return r.Cost })
}

// reduction is by how much less of something a policy takes than the base.
func (in *inflation) reduction(
	runs [][]inflationRun, policy int, load float64, of func(*replay.Reading) float64,
) meanSD {
	return meanSDOf(len(in.seeds), func(seed int) float64 {
		if in.base < 0 {
			return math.NaN()
		}
		return 1 - of(in.reading(&runs[policy][seed], load))/of(in.reading(&runs[in.base][seed], load))
	})
}

// reading returns what a run had come to at one of all loads.
func (in *inflation) reading(run *inflationRun, load float64) *replay.Reading {
	return &run.Readings[slices.Index(in.allLoads(), load)]
}

func costAt(in *inflation, runs []inflationRun, load float64) meanSD {
	return meanSDOf(len(runs), func(seed int) float64 { return in.reading(&runs[seed], load).Cost })
}

func (in *inflation) ratio(runs []inflationRun, load float64) meanSD {
	return meanSDOf(len(runs), func(seed int) float64 { return in.reading(&runs[seed], load).Ratio })
}

func (in *inflation) power(runs []inflationRun, load float64) meanSD {
	return meanSDOf(len(runs), func(seed int) float64 { return float64(in.reading(&runs[seed], load).Power) })
}

// refusals are what a policy has refused by a load.
var refusals = []struct { //nolint:gochecknoglobals // constant
	key, head string
	of        func(w *replay.Work) float64
}{
	{"tasks", "tasks", func(w *replay.Work) float64 { return float64(w.Tasks) }},
	{"cpu_tasks", "CPU-only", func(w *replay.Work) float64 { return float64(w.CPUTasks) }},
	{"gpus", "GPUs", refusedGPUs},
	{"vcpus", "vCPU", refusedVCPUs},
}

func refusedGPUs(w *replay.Work) float64  { return float64(w.GPU) / fleet.WholeGPU }
func refusedVCPUs(w *replay.Work) float64 { return float64(w.CPU) / 1000 }

func refused(in *inflation, runs []inflationRun, load float64, of func(*replay.Work) float64) meanSD {
	return meanSDOf(len(runs), func(seed int) float64 {
		r := in.reading(&runs[seed], load)
		return of(&r.Refused) + float64(0*r.Ratio) // none past the end of the stream
	})
}

// servedLess is by how much less a policy has served than the base; NaN without base.
func servedLess(
	in *inflation, runs [][]inflationRun, policy int, load float64, of func(*replay.Work) float64,
) meanSD {
	return meanSDOf(len(in.seeds), func(seed int) float64 {
		if in.base < 0 {
			return math.NaN()
		}
		own, base := in.reading(&runs[policy][seed], load), in.reading(&runs[in.base][seed], load)
		return of(&own.Refused) - of(&base.Refused) + float64(0*own.Ratio)
	})
}

// isUnequal reports whether a policy has served other work than the base by a load.
func (in *inflation) isUnequal(runs [][]inflationRun, policy int, load float64) bool {
	gpus := servedLess(in, runs, policy, load, refusedGPUs)
	vcpus := servedLess(in, runs, policy, load, refusedVCPUs)
	return math.Abs(gpus.mean)+gpus.sd+math.Abs(vcpus.mean)+vcpus.sd > 0
}

// savingText returns the saving at a load, with a star if it is of unequal work.
func savingText(in *inflation, runs [][]inflationRun, policy int, load float64) report.Value {
	saved := in.saving(runs, policy, load)
	if math.IsNaN(saved.mean) || !in.isUnequal(runs, policy, load) {
		return saved.text(len(in.seeds), 1, 100)
	}
	return report.Text(saved.words(len(in.seeds), 1, 100) + "*")
}

// unequalWork says of each policy by how much less or more than the base it has served by the highest
// load at which that differs.
func (in *inflation) unequalWork(runs [][]inflationRun) []string {
	var notes []string
	for p := range runs {
		for _, load := range slices.Backward(in.loads) {
			if !in.isUnequal(runs, p, load) {
				continue
			}
			notes = append(
				notes,
				fmt.Sprintf("*: by load %s, %s has served %s and %s than %s: a saving with a "+
					"star compares unequal work", loadText(load), in.policies[p].Name,
					lessText(servedLess(in, runs, p, load, refusedGPUs).mean, "GPU", "GPUs"),
					lessText(servedLess(in, runs, p, load, refusedVCPUs).mean, "vCPU", "vCPU"),
					in.policies[in.base].Name),
			)
			break
		}
	}
	return notes
}

func lessText(less float64, one, several string) string {
	unit := several
	if math.Abs(less) == 1 {
		unit = one
	}
	if less < 0 {
		return fmt.Sprintf("%.4g %s more", -less, unit)
	}
	return fmt.Sprintf("%.4g %s less", less, unit)
}

// fragmentation returns the fragmentation at the first point of the curves at a load.
func (in *inflation) fragmentation(runs []inflationRun, load float64) meanSD {
	return meanSDOf(len(runs), func(seed int) float64 {
		if p, ok := replay.FirstAtLoad(runs[seed].Curve, load); ok {
			return p.Fragmented
		}
		return math.NaN()
	})
}

// table returns a row for each policy. People see savings, ratios, and power and
// fragmentation at the highest load; machines see everything at all loads.
func (in *inflation) table(runs [][]inflationRun) *report.Table {
	return report.TableOf(in.policies, func(row *report.Row, p **policy.Placement) {
		t := &inflationRow{row, in}
		t.addPeopleColumns(runs, slices.Index(in.policies, *p))
		t.addMachineColumns(runs, slices.Index(in.policies, *p))
	})
}

type inflationRow struct {
	*report.Row
	in *inflation
}

// loadText returns a load as it stands in headings: with one decimal at least.
func loadText(load float64) string {
	text := strconv.FormatFloat(load, 'f', -1, 64)
	if load == math.Trunc(load) {
		text += ".0"
	}
	return text
}

func (t *inflationRow) addPeopleColumns(runs [][]inflationRun, policy int) {
	n := len(t.in.seeds)
	t.Add(report.Column{Key: "policy", Head: "policy", Left: true}, report.Text(t.in.policies[policy].Name))
	for _, load := range t.in.loads {
		if t.in.base >= 0 {
			t.Add(report.Column{Head: "saved", Note: "% at " + loadText(load)},
				savingText(t.in, runs, policy, load))
		}
	}
	for _, load := range []float64{nearFullLoad, fullLoad} {
		t.Add(report.Column{Head: "GRAR", Note: "at " + loadText(load)},
			t.in.ratio(runs[policy], load).text(n, 4, 1))
	}
	highest := t.in.loads[len(t.in.loads)-1]
	if t.in.weighted() && t.in.base >= 0 {
		for _, load := range t.in.loads {
			t.Add(report.Column{Head: "weighted", Note: "saved % at " + loadText(load)},
				costSaving(t.in, runs, policy, load).text(n, 1, 100))
		}
	}
	if t.in.weighted() {
		t.Add(report.Column{Head: "weighted", Note: "kW at " + loadText(highest)},
			costAt(t.in, runs[policy], highest).text(n, 1, 1e-3))
	}
	t.Add(report.Column{Head: "EOPC", Note: "kW at " + loadText(highest)},
		t.in.power(runs[policy], highest).text(n, 1, 1e-3))
	t.Add(report.Column{Head: "fragmented", Note: "GPUs at " + loadText(highest)},
		t.in.fragmentation(runs[policy], highest).text(n, 0, 1))
	for _, c := range refusals {
		t.Add(report.Column{Head: c.head, Note: "refused at " + loadText(highest)},
			refused(t.in, runs[policy], highest, c.of).text(n, 0, 1))
	}
	t.Add(report.Column{Head: "placed"},
		meanSDOf(n, func(i int) float64 { return float64(runs[policy][i].Tally.Placed()) }).text(n, 0, 1))
	t.Add(report.Column{Head: "dropped"},
		meanSDOf(n, func(i int) float64 { return float64(runs[policy][i].Tally.Dropped()) }).text(n, 0, 1))
}

// addNumber adds a column for machines, and one for the deviation where there are
// several runs.
func (t *inflationRow) addNumber(key string, s meanSD) {
	t.Add(report.Column{Key: key}, report.Number(s.mean))
	if len(t.in.seeds) > 1 {
		t.Add(report.Column{Key: key + "_sd"}, report.Number(s.sd))
	}
}

func (t *inflationRow) addMachineColumns(runs [][]inflationRun, policy int) {
	own := runs[policy]
	t.Add(report.Column{Key: "trace"}, report.Text(t.in.label))
	t.Add(report.Column{Key: "seed"}, report.Count(int(t.in.seeds[0])))
	t.Add(report.Column{Key: "seeds"}, report.Count(len(t.in.seeds)))
	for _, load := range t.in.allLoads() {
		at := "_at_" + loadText(load)
		if t.in.base >= 0 {
			t.addNumber("saving"+at, t.in.saving(runs, policy, load))
		}
		t.addNumber("eopc_w"+at, t.in.power(own, load))
		if t.in.weighted() && t.in.base >= 0 {
			t.addNumber("weighted_saving"+at, costSaving(t.in, runs, policy, load))
		}
		if t.in.weighted() {
			t.addNumber("weighted_w"+at, costAt(t.in, own, load))
		}
		t.addNumber("grar"+at, t.in.ratio(own, load))
		for _, c := range refusals {
			t.addNumber("refused_"+c.key+at, refused(t.in, own, load, c.of))
		}
		if t.in.base >= 0 {
			t.addNumber("served_less_gpus"+at, servedLess(t.in, runs, policy, load, refusedGPUs))
			t.addNumber("served_less_vcpus"+at, servedLess(t.in, runs, policy, load, refusedVCPUs))
		}
		t.addNumber("fragmented_gpu"+at, t.in.fragmentation(own, load))
	}
	count := func(key string, of func(*replay.Tally) int) {
		t.addNumber(key, meanSDOf(len(own), func(i int) float64 { return float64(of(&own[i].Tally)) }))
	}
	count("arrived_pods", func(y *replay.Tally) int { return y.Arrived })
	count("placed_pods", (*replay.Tally).Placed)
	count("dropped_no_model", func(y *replay.Tally) int { return y.By[replay.NoModel] })
	count("dropped_too_large", func(y *replay.Tally) int { return y.By[replay.TooLarge] })
	count("dropped_full", func(y *replay.Tally) int { return y.By[replay.Full] })
	last := func(i int) *replay.LoadPoint { return &own[i].Curve[len(own[i].Curve)-1] }
	t.addNumber("final_eopc_w", meanSDOf(len(own), func(i int) float64 { return float64(last(i).Power()) }))
	t.addNumber("final_grar", meanSDOf(len(own), func(i int) float64 { return last(i).Ratio }))
}
