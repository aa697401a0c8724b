package dvfsmodel

import "errors"

// rescaled is a response whose times and powers are multiplied, of a kind that
// only its author knows.
type rescaled struct {
	original    Response
	time, power float64
}

// Default is the point at the default clocks.
func (r *rescaled) Default() Point { return r.original.Default().scaled(r.time, r.power) }

// MinTime is the shortest run time.
func (r *rescaled) MinTime() float64 { return r.time * r.original.MinTime() }

// Optimum asks for the same choice in the measures of the original: there, an
// energy counts by the power's factor, and the limit is shorter by that of time.
func (r *rescaled) Optimum(o Objective, limit float64) (Point, error) {
	o.EnergyWeight *= r.power
	pt, err := r.original.Optimum(o, limit/r.time)
	if inf, ok := errors.AsType[*InfeasibleError](err); ok {
		return Point{}, &InfeasibleError{Limit: limit, MinTime: r.time * inf.MinTime}
	}
	return pt.scaled(r.time, r.power), err
}

// Model is the original's with times and powers multiplied.
func (r *rescaled) Model() Model { return scaledModel{r.original.Model(), r.time, r.power} }

// Allows reports whether the setting may be set.
func (r *rescaled) Allows(s Scaling) bool { return r.original.Allows(s) }
