package epdapi

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/slurm"
)

// Savings is what treated jobs used less than held-out ones of the same workload
// on the same GPU model. Workloads without both aren't in it.
type Savings struct {
	Since time.Time `json:"since,omitzero"` // the zero time: all that is known
	Until time.Time `json:"until,omitzero"` // the zero time: up to now
	GPU   Saving    `json:"gpu"`
	Node  Saving    `json:"node"`
	// Time is what it cost in time: how much longer the treated jobs took.
	Time Longer `json:"time"`
	// MaxSlowdown is how many times as long as at default clocks a job may run at most, now, in
	// partitions that MaxSlowdowns doesn't name.
	MaxSlowdown  float64            `json:"max_slowdown"`
	MaxSlowdowns map[string]float64 `json:"max_slowdowns,omitempty"`
	// SiteClocks are the highest clocks that the site has now, by GPU model: its default ones.
	SiteClocks map[string]dvfsmodel.Setting `json:"site_clocks,omitempty"`
	// EnergyOf is [OfModules] where all energies of GPUs are those of modules.
	EnergyOf string `json:"energy_of,omitempty"`
	// Module is the same as GPU of GPUs whose counters are those of modules, several GPUs or a
	// GPU with its CPU: they are in GPU only where there are no others. Absent: there are none.
	Module    *Saving `json:"module,omitempty"`
	Workloads int     `json:"workloads"` // on a GPU model each, that were compared at the GPU
	Alone     int     `json:"alone"`     // that weren't: one of the arms has no run
	// Treated and HeldOut are all completed jobs, compared or not.
	Treated int64 `json:"treated_runs"`
	HeldOut int64 `json:"held_out_runs"`
	// TreatedEnded and HeldOutEnded are all jobs that ended and whose details
	// aren't pruned. Only completed ones are compared.
	TreatedEnded EndingCounts `json:"treated_ended"`
	HeldOutEnded EndingCounts `json:"held_out_ended"`
	// ModelledUse is what the models say that the treated jobs saved. Nothing
	// measured stands behind its first term.
	Modelled ModelledUse `json:"modelled"`
	HoldOut  float64     `json:"hold_out"` // part of the jobs that is held out now
	// Constant is what the arm at constant clocks tells; absent: there is no such arm,
	// and none of its runs is known.
	Constant *ConstantArm `json:"constant,omitempty"`
	// Factors turn energy into what it costs.
	Factors Factors `json:"factors"`
	// ByWorkload are those that were compared at the GPU, the ones with the most
	// energy first, at most [MaxWorkloads]. Operators alone are told.
	ByWorkload []WorkloadSaving `json:"by_workload,omitempty"`
}

// OfModules is what an energy or a power is of, if not of GPUs alone.
const OfModules = "module"

// MostSlowdown returns how many times as long as at default clocks a job may take wherever that is most.
func (s *Savings) MostSlowdown() float64 {
	rules := config.Live{MaxSlowdown: s.MaxSlowdown, MaxSlowdowns: s.MaxSlowdowns}
	return rules.MostSlowdown()
}

// SlowdownWords say how much longer a job may take, now.
func (s *Savings) SlowdownWords() string {
	text := fmt.Sprintf("each job may take up to %v times as long as at default clocks, within its limit "+
		"(max_slowdown", s.MaxSlowdown)
	const most = 8
	names := slices.Sorted(maps.Keys(s.MaxSlowdowns))
	own := make([]string, min(most, len(names)))
	for i, name := range names[:len(own)] {
		own[i] = fmt.Sprintf("%s %v", slurm.Printable(name, MaxModelName), s.MaxSlowdowns[name])
	}
	if len(own) > 0 {
		text += "; in partition " + strings.Join(own, ", ")
	}
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	text += ")"
	if len(s.SiteClocks) == 0 {
		return text
	}
	site := make([]string, 0, len(s.SiteClocks))
	for _, model := range slices.Sorted(maps.Keys(s.SiteClocks)) {
		site = append(site, slurm.Printable(model, MaxModelName)+" "+s.SiteClocks[model].Words())
	}
	return text + "; default clocks are the site's (site_clocks): " + strings.Join(site, ", ")
}

// MaxWorkloads is how many workloads an answer tells apart.
const MaxWorkloads = 100

// WorkloadSaving is what one workload on one GPU model saved at the GPUs.
type WorkloadSaving struct {
	Workload string `json:"workload"`
	GPUModel string `json:"gpu_model"`
	Saving
	Time    Longer  `json:"time"`
	LastJob LastJob `json:"last_job,omitzero"` // absent: no job of it is kept
}

// ConstantArm is what comes of jobs that the lot puts at constant clocks, or at default
// ones where they may not be at those.
type ConstantArm struct {
	Part  float64      `json:"constant_arm"` // of the jobs, now
	Runs  int64        `json:"runs"`         // completed ones, compared or not
	Ended EndingCounts `json:"ended"`
	// GPU and Node are what these runs used less than held-out ones. Runs are those of
	// this arm there.
	GPU  Saving `json:"gpu"`
	Node Saving `json:"node"`
	Time Longer `json:"time"` // how much longer these runs took than held-out ones
	// AddedGPU and AddedNode are what treated runs used less than these.
	AddedGPU  AddedSaving `json:"added_gpu"`
	AddedNode AddedSaving `json:"added_node"`
	AddedTime AddedTime   `json:"added_time"` // how much longer treated runs took than these
}

// AddedSaving is what choosing clocks for each job saves over constant clocks, with the
// bounds of its 95 % interval. It is a [Saving] against another arm.
type AddedSaving struct {
	Runs    int64   `json:"runs"`          // treated ones
	Against int64   `json:"constant_runs"` // that they were compared with
	SavedJ  float64 `json:"saved_j"`
	LowJ    float64 `json:"low_j"`
	HighJ   float64 `json:"high_j"`
	// What the treated runs would have used at constant clocks.
	BaselineJ float64 `json:"baseline_j"`
	Needed    int64   `json:"needed_constant_runs"` // as [Saving.Needed]
}

// AddedTime is how much longer jobs took than those at constant clocks, with the bounds of its 95 % interval.
// It is a [Longer] against another arm.
type AddedTime struct {
	Runs      int64   `json:"runs"`          // treated ones
	Against   int64   `json:"constant_runs"` // that they were compared with
	LongerS   float64 `json:"longer_s"`      // all treated runs together; below 0: shorter
	LowS      float64 `json:"low_s"`
	HighS     float64 `json:"high_s"`
	BaselineS float64 `json:"baseline_s"` // what the treated runs would have taken at constant clocks
}

// Longer returns the same as how much longer jobs took than held-out ones.
func (a *AddedTime) Longer() *Longer { return (*Longer)(a) }

// Saving returns the same as a saving.
func (a *AddedSaving) Saving() *Saving { return (*Saving)(a) }

// EndingCounts counts jobs that ended.
type EndingCounts struct {
	Ended     int64 `json:"ended"`
	Completed int64 `json:"completed"` // of those
}

// ModelledUse compares what treated jobs used with what the models in use when they
// were decided said that they would at default clocks, at the GPUs.
type ModelledUse struct {
	Runs     int64   `json:"runs"` // with a prediction and a known energy
	DefaultJ float64 `json:"default_energy_j"`
	UsedJ    float64 `json:"used_j"`
}

// SavedJ returns the difference.
func (m *ModelledUse) SavedJ() float64 { return m.DefaultJ - m.UsedJ }

// TreatedCompleteLess reports whether so many fewer treated jobs than held-out ones
// completed that chance explains it once in 40 times at most: then what is
// compared is a choice of the jobs.
func (s *Savings) TreatedCompleteLess() bool { return s.TreatedEnded.completesLess(s.HeldOutEnded) }

// ConstantCompletesUnlike tells the same of treated jobs and those of the constant arm, fewer of
// either.
func (s *Savings) ConstantCompletesUnlike() bool {
	return s.Constant != nil &&
		(s.TreatedEnded.completesLess(s.Constant.Ended) || s.Constant.Ended.completesLess(s.TreatedEnded))
}

// completesLess reports whether so many fewer jobs than others completed that chance
// explains it once in 40 times at most.
func (e EndingCounts) completesLess(other EndingCounts) bool {
	t, h := e, other
	if t.Ended == 0 || h.Ended == 0 {
		return false
	}
	const bound = 1.96
	nt, nh := float64(t.Ended), float64(h.Ended)
	pt, ph := float64(t.Completed)/nt, float64(h.Completed)/nh
	both := (float64(t.Completed) + float64(h.Completed)) / (nt + nh)
	return ph-pt > bound*math.Sqrt(both*(1-both)*(1/nt+1/nh))
}

// Saving is an energy with the bounds of its 95 % interval.
type Saving struct {
	Runs      int64   `json:"runs"`          // treated ones
	Against   int64   `json:"held_out_runs"` // that they were compared with
	SavedJ    float64 `json:"saved_j"`
	LowJ      float64 `json:"low_j"`
	HighJ     float64 `json:"high_j"`
	BaselineJ float64 `json:"baseline_j"` // what the treated runs would have used
	// Needed is how many more held-out runs it takes, if both arms grow alike,
	// until the interval doesn't hold 0 in four of five cases; 0: none, or
	// nobody can tell.
	Needed int64 `json:"needed_held_out_runs"`
}

// Longer is how much longer jobs took than those they were compared with, with the bounds of its 95 %
// interval. A job's time is that on the node where it was longest.
type Longer struct {
	Runs      int64   `json:"runs"`          // treated ones
	Against   int64   `json:"held_out_runs"` // that they were compared with
	LongerS   float64 `json:"longer_s"`      // all treated runs together; below 0: shorter
	LowS      float64 `json:"low_s"`
	HighS     float64 `json:"high_s"`
	BaselineS float64 `json:"baseline_s"` // what the treated runs would have taken
}

// Part returns a time as a part of what the treated runs would have taken.
func (l *Longer) Part(seconds float64) float64 { return seconds / l.BaselineS }

// Words returns how much longer jobs took than those against which they were compared, as these are called.
func (l *Longer) Words(against string) string {
	if l.Runs == 0 {
		return "nothing to compare"
	}
	part, low, high, how := 100*l.Part(l.LongerS), 100*l.Part(l.LowS), 100*l.Part(l.HighS), "longer"
	if part < 0 {
		part, low, high, how = -part, -high, -low, "shorter"
	}
	text := fmt.Sprintf("%.1f %% %s than %s; between %.1f %% and %.1f %% in 95 of 100 cases", part, how,
		against, low, high)
	if !l.IsCertain() {
		text += "; may be chance"
	}
	return text
}

// IsCertain reports whether the interval says that jobs took longer, or less long.
func (l *Longer) IsCertain() bool { return l.Runs > 0 && (l.LowS > 0 || l.HighS < 0) }

// IsCertain reports whether the interval says that something was saved, or lost.
func (s *Saving) IsCertain() bool { return s.Runs > 0 && (s.LowJ > 0 || s.HighJ < 0) }

// Factors turn energy into what it costs. 0 wasn't stated.
type Factors struct {
	PUE          float64 `json:"pue"`
	CarbonPerKWh float64 `json:"carbon_g_per_kwh"`
	WaterPerKWh  float64 `json:"water_l_per_kwh"`
	CostPerKWh   float64 `json:"cost_per_kwh"`
	Currency     string  `json:"currency"`
	// Series says that factors change by the hour, too, which these don't.
	Series bool `json:"series,omitempty"`
}

// NewFactors returns those of a configuration.
func NewFactors(f *config.Factors) Factors {
	return Factors{
		PUE: f.PUE, CarbonPerKWh: f.CarbonPerKWh, WaterPerKWh: f.WaterPerKWh, CostPerKWh: f.CostPerKWh,
		Currency: f.Currency, Series: f.Series != "",
	}
}

// Config returns them as a configuration has them.
func (f *Factors) Config() *config.Factors {
	return &config.Factors{
		PUE: f.PUE, CarbonPerKWh: f.CarbonPerKWh, WaterPerKWh: f.WaterPerKWh, CostPerKWh: f.CostPerKWh,
		Currency: f.Currency,
	}
}

// FootprintOf returns what an energy costs.
func (f *Factors) FootprintOf(joules float64) config.Footprint {
	return f.Config().Footprint(dvfsmodel.Joule(joules))
}
