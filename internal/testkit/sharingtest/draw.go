// Package sharingtest draws instances of tasks that share GPUs, for tests.
package sharingtest

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/epplan/epplan/planner/sharing"
)

// mixes are the kinds of drawn instances, after the README of data/cats: the
// range of mean utilisations, percent, and of memory, GB.
var mixes = map[string][4]float64{
	"paperlike": {40, 49, 1.5, 6.5}, "light": {6, 32, 1, 7}, "medium": {28, 60, 1.2, 11},
	"heavy":     {50, 95, 2, 14},
	"antiphase": {35, 55, 2, 8}, "membound": {10, 45, 6, 22}, "mixed": {8, 95, .5, 16},
	"gang":       {12, 80, .5, 16},
	"mixedkappa": {10, 90, .5, 16},
}

// Draw returns an instance of a mix with so many tasks.
func Draw(r *rand.Rand, mix string, tasks int) *sharing.Instance {
	in := &sharing.Instance{
		Name: mix + "-" + strconv.Itoa(tasks), Physics: sharing.PaperPhysics(),
		SLA: sharing.PaperSLA, SlotS: 60,
	}
	pieces := 0
	for i := range tasks {
		t := drawTask(r, mix, i)
		pieces += t.GPUs
		in.Tasks = append(in.Tasks, t)
	}
	in.Servers = drawServers(r, pieces)
	return in
}

// drawServers are servers with more GPUs than pieces: all of 8, all of 4, or
// of all sizes.
func drawServers(r *rand.Rand, pieces int) []sharing.Server {
	sizes := [][]int{{8}, {4}, {1, 2, 4}, {1, 2, 4, 8}, {1, 2, 4, 8}}[r.IntN(5)]
	var all []sharing.Server
	for gpus := 0; gpus < pieces+2; {
		size := sizes[r.IntN(len(sizes))]
		s := sharing.Server{
			StaticW: float64(12*size + 10*(2+r.IntN(4))), OtherW: float64(10 + 5*size + 5*r.IntN(4)),
		}
		for range size {
			s.GPUMemGB = append(s.GPUMemGB, []float64{16, 32}[r.IntN(2)])
		}
		all, gpus = append(all, s), gpus+size
	}
	return all
}

func drawTask(r *rand.Rand, mix string, i int) sharing.Task {
	of := mixes[mix]
	mean := of[0] + (of[1]-of[0])*r.Float64()
	t := sharing.Task{ID: strconv.Itoa(i), Arrival: float64(25 * i), GPUs: 1, Kappa: sharing.PaperSLA}
	t.MemGB = math.Round(100*(of[2]+(of[3]-of[2])*r.Float64())) / 100
	if mix == "mixed" || mix == "gang" || mix == "mixedkappa" {
		if r.IntN(8) == 0 {
			t.MemGB = 16 + 12*r.Float64()
		}
	}
	if mix == "gang" && r.IntN(4) == 0 {
		t.GPUs = 2
	}
	if mix == "mixedkappa" {
		t.Kappa = []float64{1.05, 1.1, 1.2}[r.IntN(3)]
	}
	shape := r.IntN(4)
	switch mix {
	case "paperlike":
		shape = 0
	case "antiphase":
		shape = 4
	}
	t.UtilPct = drawSeries(r, shape, mean, i)
	return t
}

// drawSeries returns a series of a shape: flat with noise, sine, bursts, AR(1), or
// sines in opposite phase.
func drawSeries(r *rand.Rand, shape int, mean float64, i int) []float64 {
	const slots = 24
	s := make([]float64, slots)
	phase, period := 2*math.Pi*r.Float64(), []float64{6, 8, 12, 24}[r.IntN(4)]
	if shape == 4 {
		phase, period = math.Pi*float64(i%2), 12
	}
	swing := mean * (.3 + .5*r.Float64())
	level, high := 0.0, r.IntN(2) == 0
	for k := range s {
		x := mean
		switch shape {
		case 1, 4:
			x += swing * math.Sin(2*math.Pi*float64(k)/period+phase)
		case 2:
			if r.IntN(4) == 0 {
				high = !high
			}
			if high {
				x *= 1.4
			} else {
				x *= .5
			}
		case 3:
			level = .8*level + .2*mean*r.NormFloat64()
			x += level
		}
		s[k] = math.Round(10*min(100, max(0, x+2*r.NormFloat64()))) / 10
	}
	return s
}
