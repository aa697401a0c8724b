package sharing

import (
	"fmt"
	"math"
)

// Curve is contention as it was measured: how many times as long as alone the
// tasks of a GPU take,
//
//	mean over slots of max(1, load)^Exponent · (1 + ByTask·(n-1) + ByMemory·m),
//
// where n is how many tasks share the GPU and m the part of its memory that
// they take, which counts where there is more than one. Its three parameters
// are the three ways in which sharing costs time. Exponent 1 is a GPU that does
// a slot's work in a slot whoever it is for; work that gets in its own way
// when there is too much of it (caches, memory bandwidth) takes more. ByTask is
// what every further task costs also while the GPU has time for all of them
// (switching, launches that wait for each other), ByMemory what a full memory
// costs (paging, smaller caches). The zero value isn't a curve.
type Curve struct {
	Exponent float64 // of the load where it exceeds the GPU; 1: time is shared without loss
	ByTask   float64 // by task beside the first
	ByMemory float64 // by part of the memory taken, 0 to 1
}

// LinearCurve is contention without overhead: a slot with 140 percent of work takes
// 1.4 slots.
func LinearCurve() Curve { return Curve{Exponent: 1} }

// Validate reports the first parameter that makes no sense.
func (c *Curve) Validate() error {
	for _, p := range c.Parameters() {
		if err := p.Validate(); err != nil {
			return fmt.Errorf("curve of contention: %w", err)
		}
	}
	return nil
}

// Parameter is one of a curve's, by the name that its file has for it.
type Parameter struct {
	Name         string
	Value        *float64
	lower, upper float64
}

// The most that parameters may be: beyond what was ever measured, and such that
// slowdowns stay finite.
const (
	maxCurveExponent = 10
	maxCost          = 1000
)

// Parameters returns those of the curve.
func (c *Curve) Parameters() [3]Parameter {
	return [...]Parameter{
		{"exponent", &c.Exponent, 1, maxCurveExponent},
		{"by_task", &c.ByTask, 0, maxCost},
		{"by_memory", &c.ByMemory, 0, maxCost},
	}
}

// Validate reports a value out of range.
func (p *Parameter) Validate() error {
	if !(*p.Value >= p.lower && *p.Value <= p.upper) {
		return fmt.Errorf("%s is %g, want a number from %g to %g", p.Name, *p.Value, p.lower, p.upper)
	}
	return nil
}

// Occupancy is what shares a GPU.
type Occupancy struct {
	LoadPct []float64 // the sum of the tasks' utilisations alone by slot, percent
	Tasks   int       // how many there are
	Memory  float64   // the part of the GPU's memory that they take, 0 to 1
}

// MemoryPart returns the part of a GPU's memory that is taken, given what is free.
func MemoryPart(memGB, freeGB float64) float64 {
	if memGB == 0 {
		return 0
	}
	return min(1, max(0, (memGB-freeGB)/memGB))
}

// Slowdown returns how many times as long as alone the tasks of a GPU take at the
// same frequency, at least 1.
func (c Curve) Slowdown(s Occupancy) float64 {
	return c.Overload(s.LoadPct) * c.OverheadFactor(&s)
}

// OverheadFactor returns how many times as long tasks take for what sharing costs beside the overload.
func (c *Curve) OverheadFactor(s *Occupancy) float64 {
	return 1 + c.ByTask*s.OtherTasks() + c.ByMemory*s.Pressure()
}

// Overload returns the mean over slots of the time that a slot of load takes.
func (c *Curve) Overload(loadPct []float64) float64 {
	if len(loadPct) == 0 {
		return 1
	}
	sum := 0.0
	for _, u := range loadPct {
		sum += c.Work(u / 100)
	}
	return sum / float64(len(loadPct))
}

// Work returns how many slots a slot's work takes, given as slots.
func (c *Curve) Work(load float64) float64 {
	if c.Exponent == 1 || load <= 1 {
		return max(1, load)
	}
	return math.Pow(load, c.Exponent)
}

// OtherTasks returns the number of tasks beside one.
func (s *Occupancy) OtherTasks() float64 { return float64(max(0, s.Tasks-1)) }

// Pressure returns the part of the memory that counts: 0 for a task alone.
func (s *Occupancy) Pressure() float64 {
	if s.Tasks < 2 {
		return 0
	}
	return s.Memory
}
