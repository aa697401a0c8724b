package predict

import (
	"fmt"
	"math"
)

// Target is what is predicted.
type Target int

// The targets.
const (
	Time   Target = iota // run time in seconds
	Energy               // of all GPUs of a run, in kWh
	Power                // mean over a run, in W per GPU
)

// ParseTarget returns the target with a name: time, energy or power.
func ParseTarget(name string) (Target, error) {
	for _, t := range []Target{Time, Energy, Power} {
		if t.String() == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("target %q, want time, energy or power", name)
}

// String returns the target's name on the command line.
func (t Target) String() string {
	switch t {
	case Time:
		return "time"
	case Energy:
		return "energy"
	case Power:
		return "power"
	default:
		return fmt.Sprintf("Target(%d)", int(t))
	}
}

// Unit returns the unit of the target's values.
func (t Target) Unit() string {
	switch t {
	case Time:
		return "s"
	case Energy:
		return "kWh"
	case Power:
		return "W"
	default:
		return ""
	}
}

// Features are what is known of a job when it is submitted.
type Features struct {
	ID     string
	Submit float64 // s
	Owner  string
	Labels []string // names of the program, its data, the partition; "" is not known

	// Sizes are what the job asks for or is given to work on: GPUs, CPUs, nodes,
	// parameters. NaN is not known.
	Sizes []float64

	Requested  float64   // s; NaN is not known
	Conditions []float64 // how busy the machines are, and the like; NaN is not known
}

// Outcome is what became of a job.
type Outcome struct {
	End       float64 // s
	Completed bool    // it neither failed, nor was it stopped
	Value     [3]float64
}

// ValueOf returns the outcome's value of a target; NaN where it wasn't measured.
func (o *Outcome) ValueOf(t Target) float64 { return o.Value[t] }

// isUsable reports whether a value can be learnt from.
func isUsable(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
