package main

import (
	"math"
	"slices"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/planner/fleet"
)

func (d *departures) table() *report.Table {
	return report.TableOf(d.runsOf, func(row *report.Row, run *departureRun) {
		(&departureRow{row, d, run}).fill()
	})
}

type departureRow struct {
	*report.Row
	all *departures
	run *departureRun
}

// addNumber adds a column for people, in a factor of the unit, and one for
// machines, with a deviation where there are several seeds.
func (w *departureRow) addNumber(key string, head report.Column, decimals int, factor float64, s meanSD) {
	w.Add(head, s.text(len(w.all.in.seeds), decimals, factor))
	w.Add(report.Column{Key: key}, report.Number(s.mean))
	if len(w.all.in.seeds) > 1 {
		w.Add(report.Column{Key: key + "_sd"}, report.Number(s.sd))
	}
}

func (w *departureRow) spreadOf(quantity func(*replay.StreamResult) float64) meanSD {
	return meanSDOf(len(w.all.in.seeds), func(s int) float64 { return quantity(&w.run.passages[s]) })
}

// savingAgainst is by how much less the runs take than others on the same streams,
// NaN where there are none.
func (w *departureRow) savingAgainst(
	other *departureRun, quantity func(*replay.StreamResult) float64,
) meanSD {
	return meanSDOf(len(w.all.in.seeds), func(s int) float64 {
		if other == nil {
			return math.NaN()
		}
		return 1 - quantity(&w.run.passages[s])/quantity(&other.passages[s])
	})
}

// findRun returns the runs of a placement at the row's load; nil if there are none.
func (w *departureRow) findRun(policy int, parked func(*sleepRule) bool) *departureRun {
	i := slices.IndexFunc(w.all.runsOf, func(r departureRun) bool {
		return r.policy == policy && r.load == w.run.load && parked(&w.all.parks[r.park])
	})
	if i < 0 {
		return nil
	}
	return &w.all.runsOf[i]
}

func meanPower(p *replay.StreamResult) float64 { return float64(p.Power) }

// gpus returns the mean number of GPUs that are allocated.
func (w *departureRow) gpus(p *replay.StreamResult) float64 {
	return p.Allocated * float64(w.all.in.capacity()) / fleet.WholeGPU
}

func (w *departureRow) fill() {
	load := w.all.in.loads[w.run.load]
	if w.all.raw {
		w.Add(report.Column{Key: "load", Head: "load", Left: true}, report.Text("as it is"))
	} else {
		w.Add(report.Column{Key: "load"}, report.Number(load))
		w.Add(report.Column{Head: "load", Left: true}, report.Text(loadText(load)))
	}
	w.Add(report.Column{Key: "sleep_after_s", Head: "sleep", Note: "after s", Left: true},
		report.Text(w.all.parks[w.run.park].name))
	w.Add(report.Column{Key: "policy", Head: "policy", Left: true},
		report.Text(w.all.in.policies[w.run.policy].Name))
	w.Add(report.Column{Key: "trace"}, report.Text(w.all.in.label))
	w.Add(report.Column{Key: "seed"}, report.Count(int(w.all.in.seeds[0])))
	w.Add(report.Column{Key: "seeds"}, report.Count(len(w.all.in.seeds)))
	w.power()
	w.addNumber("allocated_share", report.Column{Head: "allocated", Note: "% of GPUs"}, 1, 100,
		w.spreadOf(func(p *replay.StreamResult) float64 { return p.Allocated }))
	w.addNumber("allocated_gpu", report.Column{Head: "allocated", Note: "GPUs"}, 0, 1, w.spreadOf(w.gpus))
	w.addNumber("asleep_share", report.Column{Head: "asleep", Note: "% of nodes"}, 1, 100,
		w.spreadOf(func(p *replay.StreamResult) float64 { return p.Asleep }))
	w.waits()
}

// power adds power and what is saved: against the base that parks alike, which
// is what placement saves, and against the same placement on nodes that never
// sleep, which is what sleep saves.
func (w *departureRow) power() {
	w.addNumber("eopc_w", report.Column{Head: "EOPC", Note: "kW"}, 1, 1e-3, w.spreadOf(meanPower))
	w.addNumber("eopc_w_per_allocated_gpu", report.Column{Head: "EOPC", Note: "W a GPU"}, 1, 1,
		w.spreadOf(func(p *replay.StreamResult) float64 {
			return meanPower(p) / w.gpus(p)
		}))
	var base *departureRun
	if w.all.in.base >= 0 {
		base = w.findRun(w.all.in.base, func(s *sleepRule) bool { return *s == w.all.parks[w.run.park] })
		name := w.all.in.policies[w.all.in.base].Name
		w.addNumber("saving", report.Column{Head: "saved", Note: "% of " + name}, 1, 100,
			w.savingAgainst(base, meanPower))
	}
	if len(w.all.parks) > 1 &&
		slices.ContainsFunc(w.all.parks, func(s sleepRule) bool { return s.isNever() }) {
		w.addNumber("saving_by_sleep", report.Column{Head: "by sleep", Note: "% of never"}, 1, 100,
			w.savingAgainst(w.findRun(w.run.policy, (*sleepRule).isNever), meanPower))
	}
	if !w.all.in.weighted() {
		return
	}
	cost := func(p *replay.StreamResult) float64 { return p.Cost }
	w.addNumber("weighted_w", report.Column{Head: "weighted", Note: "kW"}, 1, 1e-3, w.spreadOf(cost))
	if w.all.in.base >= 0 {
		w.addNumber("weighted_saving", report.Column{Head: "saved", Note: "% weighted"}, 1, 100,
			w.savingAgainst(base, cost))
	}
}

// waits adds how long tasks waited, and how many never started.
func (w *departureRow) waits() {
	w.addNumber("mean_wait_s", report.Column{Head: "wait", Note: "mean s"}, 1, 1,
		w.spreadOf(func(p *replay.StreamResult) float64 { return p.MeanWait }))
	w.addNumber("wait_95_s", report.Column{Head: "wait", Note: "95 % s"}, 0, 1,
		w.spreadOf(func(p *replay.StreamResult) float64 { return p.Wait95 }))
	w.addNumber("waited_share", report.Column{Head: "waited", Note: "% of tasks"}, 1, 100,
		w.spreadOf(func(p *replay.StreamResult) float64 {
			return float64(p.Waited) / float64(max(1, p.Arrived))
		}))
	w.addNumber("arrived", report.Column{Head: "tasks"}, 0, 1,
		w.spreadOf(func(p *replay.StreamResult) float64 { return float64(p.Arrived) }))
	w.addNumber("never_started", report.Column{Head: "never", Note: "started"}, 0, 1,
		w.spreadOf(func(p *replay.StreamResult) float64 { return float64(p.Unplaced) }))
}
