package dvfsmodel

import (
	"errors"
	"fmt"
	"math"
)

// Validator validates many responses. Most share a range, which is looked at once.
type Validator struct{ sound *Range }

// Validate reports what makes no sense of a response: what it says itself, where it can,
// or else what its default point shows.
func (v *Validator) Validate(r Response) error {
	switch r := r.(type) {
	case *Continuous:
		if r.Range != nil && r.Range == v.sound {
			return r.Params.Validate()
		}
		err := r.Validate()
		if err == nil {
			v.sound = r.Range
		}
		return err
	case interface{ Validate() error }:
		return r.Validate()
	}
	at := r.Default()
	if err := at.Validate(); err != nil {
		return fmt.Errorf("at default clocks: %w", err)
	}
	return nil
}

// Validate reports coefficients or a range that can't be, or a range that was
// left out.
func (c *Continuous) Validate() error {
	if c.Range == nil {
		return errors.New("a continuous response has no range")
	}
	if err := c.Range.Validate(); err != nil {
		return err
	}
	return c.Params.Validate()
}

// Validate reports coefficients that can't be, or a table that was left out.
func (d *Discrete) Validate() error {
	if d.Table == nil || d.Table.Len() == 0 {
		return errors.New("a discrete response has no table of clocks")
	}
	if err := d.At.Scaling.validate(); err != nil {
		return err
	}
	return d.Params.Validate()
}

// Validate reports a frontier without a setting, and a model that gave it times
// and energies that can't be.
func (f *Frontier) Validate() error {
	if len(f.points) == 0 {
		return errors.New("a frontier has no settings: its table is empty, or it wasn't made by NewFrontier")
	}
	// Times rise and energies fall, and what can't be compared comes first.
	for _, pt := range [...]*Point{&f.points[0], &f.points[len(f.points)-1]} {
		if err := pt.Validate(); err != nil {
			return fmt.Errorf("at %v/%v MHz: %w", pt.Core, pt.Mem, err)
		}
	}
	return nil
}

// Validate reports a point that can't be.
func (f *Fixed) Validate() error {
	if err := f.At.Scaling.validate(); err != nil {
		return err
	}
	return f.At.Validate()
}

// Validate reports a run time, power or energy that isn't finite or is below 0.
func (p *Point) Validate() error {
	for _, f := range [...]struct {
		name, unit string
		value      float64
	}{
		{"run time", "s", p.Time},
		{"power", "W", float64(p.Power)},
		{"energy", "J", float64(p.Energy)},
	} {
		if !(f.value >= 0) || math.IsInf(f.value, 1) {
			return fmt.Errorf("%s %v %s, want a finite number of 0 or more", f.name, f.value, f.unit)
		}
	}
	return nil
}

// validate reports a setting that no GPU runs at.
func (s Scaling) validate() error {
	for _, x := range [...]float64{float64(s.V), s.Fc, s.Fm} {
		if !(x > 0) || math.IsInf(x, 1) {
			return fmt.Errorf("setting %+v, want positive numbers such as those of DefaultScaling", s)
		}
	}
	return nil
}
