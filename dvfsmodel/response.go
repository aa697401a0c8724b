package dvfsmodel

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// Response is how one workload on one GPU model answers to clocks: everything
// that planning asks of the model. Times are seconds, powers are of one GPU.
type Response interface {
	// Default is the point at the GPU's default clocks.
	Default() Point
	// MinTime is the shortest possible run time, seconds.
	MinTime() float64
	// Optimum is the cheapest point within the limit, seconds (+Inf: none), or an
	// [InfeasibleError].
	Optimum(o Objective, limit float64) (Point, error)
	// Model is what predicts time and power, under the power limit that is the default one.
	Model() Model
	// Allows reports whether the setting may be set, up to rounding.
	Allows(s Scaling) bool
}

// Compile-time checks of the four kinds of response.
var (
	_ Response = (*Continuous)(nil)
	_ Response = (*Discrete)(nil)
	_ Response = (*Frontier)(nil)
	_ Response = (*Fixed)(nil)
)

// rangeTol is the relative tolerance of [Response.Allows] on a range.
const rangeTol = 1e-9

// Continuous responds by the paper's model in a continuous range.
type Continuous struct {
	Params Params
	Range  *Range
}

// Default returns the point at (1, 1, 1).
func (c *Continuous) Default() Point { return c.Params.At(DefaultScaling()) }

// MinTime returns the run time at the highest clocks of the range.
func (c *Continuous) MinTime() float64 { return c.Range.MinTime(c.Params) }

// Optimum is [Range.Optimum].
func (c *Continuous) Optimum(o Objective, limit float64) (Point, error) {
	return c.Range.Optimum(c.Params, o, limit)
}

// Model returns the paper's form with this workload's coefficients.
func (c *Continuous) Model() Model { return c.Params }

// Allows reports whether the setting lies in the range. The default setting is
// always allowed: a GPU nobody touches runs at it.
func (c *Continuous) Allows(s Scaling) bool {
	return s == DefaultScaling() || c.Range.Contains(s, rangeTol)
}

// Discrete responds by the paper's model on a table of supported clocks.
type Discrete struct {
	Params Params
	Table  *Table
	At     Point // the default clocks; only the setting is used
}

// Default returns the point at the default clocks.
func (d *Discrete) Default() Point { return evaluate(d.Params, d.At) }

// MinTime returns the shortest run time over the table.
func (d *Discrete) MinTime() float64 { return d.Table.MinTime(d.Params) }

// Optimum is [Table.Optimum].
func (d *Discrete) Optimum(o Objective, limit float64) (Point, error) {
	return d.Table.Optimum(d.Params, o, limit)
}

// Model returns the paper's form with this workload's coefficients.
func (d *Discrete) Model() Model { return d.Params }

// Allows reports whether the table has the setting, voltage included.
func (d *Discrete) Allows(s Scaling) bool { return tableAllows(d.Table, d.At, s) }

// tableAllows reports whether a setting is that of at, or one of the table's.
func tableAllows(t *Table, at Point, s Scaling) bool {
	return sameScaling(s, at.Scaling) || sameScaling(s, t.Nearest(t.Clocks(s)).Scaling)
}

// sameScaling reports whether two scalings are equal up to rangeTol.
func sameScaling(a, b Scaling) bool {
	same := func(x, y float64) bool { return math.Abs(x-y) <= rangeTol*y }
	return same(float64(a.V), float64(b.V)) && same(a.Fc, b.Fc) && same(a.Fm, b.Fm)
}

// Frontier responds by any model on a table: the settings that no other one
// beats in both time and energy, fastest first.
type Frontier struct {
	model  Model
	table  *Table
	caps   []Watt // that may be set beside clocks
	at     Point
	points []Point
	plain  *Frontier // without caps; nil: itself
	// measured tells that the model was fitted to the table's settings: it is believed if lower clocks are
	// faster than the default ones.
	measured bool
}

// NewFrontier evaluates the model at every setting of the table. The default
// clocks are at: lower ones are no faster ([NoFaster]).
func NewFrontier(m Model, t *Table, at Point) *Frontier {
	return newFrontier(NoFaster(m, at.Scaling), t, at, nil)
}

// NewCappedFrontier is [NewFrontier] of settings with power caps, too: those of the table under each
// of the caps, and under the limit that the model predicts for, which is the default one.
func NewCappedFrontier(m *Fitted, t *Table, at Point, caps []Watt) *Frontier {
	return newCappedFrontier(NoFaster(m, at.Scaling), m.IsCapped(), t, at, caps)
}

// NewMeasuredFrontier is [NewCappedFrontier] of a table of which all settings were measured: lower clocks may
// be faster than the default ones.
func NewMeasuredFrontier(m *Fitted, t *Table, at Point, caps []Watt) *Frontier {
	f := newCappedFrontier(m, m.IsCapped(), t, at, caps)
	f.measured = true
	return f
}

func newCappedFrontier(m Model, knowsCaps bool, t *Table, at Point, caps []Watt) *Frontier {
	plain := newFrontier(m, t, at, nil)
	if !knowsCaps || len(caps) == 0 {
		return plain
	}
	f := newFrontier(m, t, at, caps)
	f.plain = plain
	return f
}

func newFrontier(m Model, t *Table, at Point, caps []Watt) *Frontier {
	all := make([]Point, 0, t.Len()*(1+len(caps)))
	for _, limit := range append([]Watt{0}, caps...) {
		under, _ := modelUnder(m, limit)
		for i := range t.rows {
			for j := range t.rows[i].core {
				pt := t.rows[i].at(j)
				pt.Cap = limit
				all = append(all, evaluate(under, pt))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Energy, b.Energy))
	})
	f := &Frontier{model: m, table: t, caps: caps, at: evaluate(m, at)}
	for _, pt := range all {
		if n := len(f.points); n == 0 || pt.Energy < f.points[n-1].Energy {
			f.points = append(f.points, pt)
		}
	}
	return f
}

// Default returns the point at the default clocks.
func (f *Frontier) Default() Point { return f.at }

// MinTime returns the shortest run time over the table.
func (f *Frontier) MinTime() float64 {
	if len(f.points) == 0 {
		return math.Inf(1)
	}
	return f.points[0].Time
}

// Optimum searches the frontier: cost grows with both time and energy, so the
// best setting is on it.
func (f *Frontier) Optimum(o Objective, limit float64) (Point, error) {
	best, cost := -1, math.Inf(1)
	for i := range f.points {
		if !MeetsLimit(f.points[i].Time, limit) {
			break
		}
		if c := o.Cost(f.points[i]); c < cost {
			best, cost = i, c
		}
	}
	if best < 0 {
		return Point{}, &InfeasibleError{Limit: limit, MinTime: f.MinTime()}
	}
	return f.points[best], nil
}

// AppendOptima appends [Response.Optimum] under each of some objectives, which are sums of energy and time
// with prices of time that all rise or all fall; nothing where no point meets the limit, seconds.
func AppendOptima(to []Point, r Response, goals []Objective, limit float64) []Point {
	f, ok := r.(*Frontier)
	if !ok {
		for _, o := range goals {
			if pt, err := r.Optimum(o, limit); err == nil {
				to = append(to, pt)
			}
		}
		return to
	}
	// Optima are corners of the convex hull of the frontier, and go along it as the price goes.
	var hull [64]int32
	corners := hull[:0]
	for i := range f.points {
		if !MeetsLimit(f.points[i].Time, limit) {
			break
		}
		for n := len(corners); n > 1 && !f.isCorner(int(corners[n-2]), int(corners[n-1]), i); n-- {
			corners = corners[:n-1]
		}
		corners = append(corners, int32(i))
	}
	if len(corners) == 0 {
		return to
	}
	at := 0
	for _, o := range goals {
		cost := func(corner int) float64 { return o.Cost(f.points[corners[corner]]) }
		for at+1 < len(corners) && cost(at+1) < cost(at) {
			at++
		}
		for at > 0 && cost(at-1) <= cost(at) {
			at--
		}
		to = append(to, f.points[corners[at]])
	}
	return to
}

// isCorner reports whether point b is below the line from a to c, so that it costs least at some price.
func (f *Frontier) isCorner(a, b, c int) bool {
	x, y, z := &f.points[a], &f.points[b], &f.points[c]
	return float64(y.Energy-x.Energy)*(z.Time-x.Time) < float64(z.Energy-x.Energy)*(y.Time-x.Time)
}

// Model returns the model that was evaluated.
func (f *Frontier) Model() Model { return f.model }

// Allows reports whether the table has the setting, voltage included.
func (f *Frontier) Allows(s Scaling) bool { return tableAllows(f.table, f.at, s) }

// Fixed is a workload without a model: default clocks and the run time that
// was given.
type Fixed struct{ At Point }

// Default returns the only point.
func (f *Fixed) Default() Point { return f.At }

// MinTime returns the given run time.
func (f *Fixed) MinTime() float64 { return f.At.Time }

// Optimum returns the only point, if it meets the limit.
func (f *Fixed) Optimum(_ Objective, limit float64) (Point, error) {
	if !MeetsLimit(f.At.Time, limit) {
		return Point{}, &InfeasibleError{Limit: limit, MinTime: f.At.Time}
	}
	return f.At, nil
}

// Model predicts the same time and power everywhere.
func (f *Fixed) Model() Model {
	return Params{P0: f.At.Power, T0: f.At.Time}
}

// Allows reports whether the setting is the default one.
func (f *Fixed) Allows(s Scaling) bool { return s == f.At.Scaling }

// Repeat returns the response of a workload repeated k times: times and energies
// grow k-fold, powers stay.
func Repeat(r Response, k float64) Response { return scaleResponse(r, k, 1) }

// ScaledTo returns a response of the same shape that has such a run time, seconds, and
// power at the default clocks.
func ScaledTo(r Response, time float64, power Watt) Response {
	at := r.Default()
	return scaleResponse(r, time/at.Time, float64(power/at.Power))
}

// scaleResponse multiplies the times and the powers of a response.
func scaleResponse(r Response, time, power float64) Response {
	switch r := r.(type) {
	case *Continuous:
		return &Continuous{Params: r.Params.scaled(time, power), Range: r.Range}
	case *Discrete:
		return &Discrete{Params: r.Params.scaled(time, power), Table: r.Table, At: r.At}
	case *Frontier:
		if r.plain != nil && power != 1 {
			r = r.plain // nobody knows what caps do to a run that draws more or less
		}
		other := &Frontier{
			model: scaledModel{r.model, time, power}, table: r.table, caps: r.caps, at: r.at.scaled(time, power),
			points: make([]Point, len(r.points)), measured: r.measured,
		}
		if r.plain != nil {
			other.plain, _ = scaleResponse(r.plain, time, 1).(*Frontier)
		}
		for i := range r.points {
			other.points[i] = r.points[i].scaled(time, power)
		}
		return other
	case *Fixed:
		return &Fixed{At: r.At.scaled(time, power)}
	}
	return &rescaled{original: r, time: time, power: power}
}

func (p Point) scaled(time, power float64) Point {
	p.Time *= time
	p.Power *= Watt(power)
	p.Energy = p.Power.Over(p.Time)
	return p
}

type scaledModel struct {
	Model
	time, power float64
}

// Time is part of [Model].
func (m scaledModel) Time(fc, fm float64) float64 { return m.time * m.Model.Time(fc, fm) }

// Power is part of [Model].
func (m scaledModel) Power(s Scaling) Watt { return Watt(m.power) * m.Model.Power(s) }

// rescaled is a response whose times and powers are multiplied, of a kind that
// only its author knows.
type rescaled struct {
	original    Response
	time, power float64
}

// Default returns the point at the default clocks.
func (r *rescaled) Default() Point { return r.original.Default().scaled(r.time, r.power) }

// MinTime returns the shortest run time.
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

// Model returns the original's with times and powers multiplied.
func (r *rescaled) Model() Model { return scaledModel{r.original.Model(), r.time, r.power} }

// Allows reports whether the setting may be set.
func (r *rescaled) Allows(s Scaling) bool { return r.original.Allows(s) }

// RestrictedTo returns a response on a table of clocks with those of them that may be set, and with the
// default ones, which always may; any other response as it is.
func RestrictedTo(r Response, mayBeSet func(Setting) bool) Response {
	standard := r.Default()
	keeps := func(pair Setting) bool {
		return pair == Setting{Core: standard.Core, Mem: standard.Mem} || mayBeSet(pair)
	}
	var table *Table
	switch r := r.(type) {
	case *Discrete:
		table = r.Table.within(keeps)
	case *Frontier:
		table = r.table.within(keeps)
	default:
		return r
	}
	if len(table.rows) == 0 {
		return &Fixed{At: standard}
	}
	if d, ok := r.(*Discrete); ok {
		return &Discrete{Params: d.Params, Table: table, At: d.At}
	}
	if f, ok := r.(*Frontier); ok && f.measured {
		narrowed := newFrontier(f.model, table, standard, nil)
		narrowed.measured = true
		return narrowed
	}
	return NewFrontier(r.Model(), table, standard)
}
