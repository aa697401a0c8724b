package taskset

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/sharing"
)

// SharedSpec describes a stream of tasks that may share GPUs. The CATS paper
// publishes neither the series nor the durations of its streams: these are
// drawn, and only the kind is theirs.
type SharedSpec struct {
	Tasks    int
	AtOnce   float64    // tasks that run at a time, on average
	MedianS  float64    // run time alone, seconds: log-normal
	SpreadS  float64    // of its logarithm
	UtilPct  [2]float64 // mean utilisation of a task, from and to: uniform
	MemGB    [2]float64 // memory on each GPU: log-uniform
	MultiGPU float64    // part of the tasks that take two GPUs
	Servers  int
}

// What servers of drawn streams and instances are.
const (
	sharedGPUs    = 8    // of a server, as in the paper's simulations
	sharedMemGB   = 32.0 // the larger of the paper's GPUs
	sharedHostW   = 25.0 // by GPU, of a server that is on; the paper gives none
	seriesSlots   = 24   // of a profile
	seriesSlotS   = 60.0 // seconds
	minBurstSlots = 2    // that a burst lasts
	seriesNoise   = 0.15 // of the mean
	memoryAR      = 0.8  // of the auto-regressive series
	maxSineDepth  = 0.9  // of the mean
	burstLevel    = 2.5  // times the mean
	burstShare    = 0.3  // of the slots
)

// SharedLikePAI and SharedLikePhilly are streams of the sizes of the paper's
// two simulations, which it draws from the traces of Alibaba and of Microsoft.
func SharedLikePAI() SharedSpec {
	return SharedSpec{
		Tasks: 5000, AtOnce: 170, MedianS: 900, SpreadS: 1, UtilPct: [2]float64{5, 60},
		MemGB: [2]float64{0.5, 16}, Servers: 25,
	}
}

// SharedLikePhilly returns the second of the paper's simulations.
func SharedLikePhilly() SharedSpec {
	return SharedSpec{
		Tasks: 2000, AtOnce: 140, MedianS: 3600, SpreadS: 1.2, UtilPct: [2]float64{20, 85},
		MemGB: [2]float64{1, 16}, MultiGPU: 0.15, Servers: 35,
	}
}

// Shared draws a stream: a Poisson process of tasks with profiles, on servers of
// eight GPUs.
func Shared(rng *rand.Rand, spec *SharedSpec) *planner.Problem {
	physics := sharing.PaperPhysics()
	memory := make([]float64, sharedGPUs)
	for i := range memory {
		memory[i] = sharedMemGB
	}
	p := &planner.Problem{Mode: planner.Online, Cluster: planner.Cluster{
		Name: "drawn", Sharing: &planner.Sharing{Physics: physics},
		Classes: []planner.NodeClass{{
			Name: "v100", Model: "V100", Count: spec.Servers, GPUs: sharedGPUs, HostW: sharedHostW,
			SharedGB: memory,
		}},
	}}
	mean := spec.MedianS * math.Exp(spec.SpreadS*spec.SpreadS/2)
	now := 0.0
	for i := range spec.Tasks {
		now += rng.ExpFloat64() * mean / spec.AtOnce
		seconds := spec.MedianS * math.Exp(spec.SpreadS*rng.NormFloat64())
		gpus := 1
		if rng.Float64() < spec.MultiGPU {
			gpus = 2
		}
		t := SharedTask(strconv.Itoa(i), now, seconds, &physics)
		t.Options[0].GPUs = gpus
		t.Profile.MemGB = spec.MemGB[0] * math.Pow(spec.MemGB[1]/spec.MemGB[0], rng.Float64())
		t.Profile.UtilPct = drawSeries(rng, spec.UtilPct[0]+(spec.UtilPct[1]-spec.UtilPct[0])*rng.Float64())
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

// SharedTask returns a task of one GPU with a profile that is still to be filled in.
func SharedTask(id string, arrival, seconds float64, physics *sharing.Physics) planner.Task {
	full := dvfsmodel.Params{P0: dvfsmodel.Watt(physics.PowerAt(physics.Max())), T0: seconds}
	return planner.Task{
		ID: id, Arrival: arrival, Deadline: math.Inf(1), Due: math.Inf(1), Limit: math.Inf(1), Share: 1,
		Options: []planner.Option{{
			Model: "V100", GPUs: 1, Response: &dvfsmodel.Fixed{At: full.At(dvfsmodel.DefaultScaling())},
		}},
		Profile: &planner.UsageProfile{SlotS: seriesSlotS, Kappa: sharing.PaperSLA},
	}
}

// Consolidation draws an instance of so many tasks of the kind that the CATS
// paper's Table 4 has, 40 to 49 percent each, with more GPUs than tasks.
func Consolidation(rng *rand.Rand, tasks int) *sharing.Instance {
	in := &sharing.Instance{
		Name: strconv.Itoa(tasks) + " tasks", Physics: sharing.PaperPhysics(), SLA: sharing.PaperSLA,
		SlotS: seriesSlotS,
	}
	for i := range tasks {
		in.Tasks = append(in.Tasks, sharing.Task{
			ID: strconv.Itoa(i), Arrival: float64(i), GPUs: 1, Kappa: sharing.PaperSLA,
			MemGB: 1 + 7*rng.Float64(), UtilPct: drawSeries(rng, 40+9*rng.Float64()),
		})
	}
	for gpus := 0; gpus <= tasks; {
		s := sharing.Server{StaticW: 30 + 12*float64(1+rng.IntN(8)), OtherW: 20 + 50*rng.Float64()}
		for range 1 << rng.IntN(4) {
			s.GPUMemGB = append(s.GPUMemGB, float64(16*(1+rng.IntN(2))))
		}
		gpus += len(s.GPUMemGB)
		in.Servers = append(in.Servers, s)
	}
	return in
}

// drawSeries returns a utilisation by slot with about that mean, percent: flat, a sine,
// bursts or auto-regressive.
func drawSeries(rng *rand.Rand, mean float64) []float64 {
	all := make([]float64, seriesSlots)
	phase, cycles := 2*math.Pi*rng.Float64(), float64(1+rng.IntN(3))
	shape, state, burst := rng.IntN(4), 0.0, 0
	low := (1 - burstShare*burstLevel) / (1 - burstShare)
	for i := range all {
		level := 1.0
		switch shape {
		case 1:
			level += maxSineDepth * math.Sin(phase+2*math.Pi*cycles*float64(i)/seriesSlots)
		case 2:
			if burst--; burst < 0 && rng.Float64() < burstShare/(minBurstSlots+1) {
				burst = minBurstSlots + rng.IntN(minBurstSlots)
			}
			if level = low; burst >= 0 {
				level = burstLevel
			}
		case 3:
			state = memoryAR*state + 0.3*rng.NormFloat64()
			level += state
		}
		all[i] = min(100, max(0, mean*(level+seriesNoise*rng.NormFloat64())))
	}
	return all
}
