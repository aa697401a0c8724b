package config

import "github.com/epplan/epplan/dvfsmodel"

// Records says what is kept of jobs that ended.
type Records struct {
	KeepDays   int // 0: for ever
	DetailDays int // 0: as long as they are kept
}

// Factors turn energy into what it costs. A factor of 0 is one that wasn't
// stated.
type Factors struct {
	CarbonPerKWh float64 // grams of CO2 equivalent
	WaterPerKWh  float64 // litres
	CostPerKWh   float64 // in Currency
	Currency     string  // such as EUR; empty: not stated
	// PUE is the energy of the whole site over that of its computers, at least 1.
	PUE float64
	// Series is a file with factors over time, see internal/factors; "": there is none.
	Series string
}

// Footprint is what an amount of energy costs, by [Factors].
type Footprint struct {
	KWh    float64 // of the site: with PUE
	Carbon float64 // grams of CO2 equivalent
	Water  float64 // litres
	Cost   float64 // in the factors' currency
}

// Footprint returns what an amount of energy of the computers costs, or saves if it is
// below 0. What no factor was stated for is 0.
func (f *Factors) Footprint(energy dvfsmodel.Joule) Footprint {
	kWh := energy.KWh() * max(1, f.PUE)
	return Footprint{
		KWh: kWh, Carbon: kWh * f.CarbonPerKWh, Water: kWh * f.WaterPerKWh, Cost: kWh * f.CostPerKWh,
	}
}

// Plus returns the sum of two.
func (f Footprint) Plus(g Footprint) Footprint {
	return Footprint{
		KWh: f.KWh + g.KWh, Carbon: f.Carbon + g.Carbon, Water: f.Water + g.Water, Cost: f.Cost + g.Cost,
	}
}

// StatedFootprint is a [Footprint] that tells factors of 0 apart: nil is unknown.
type StatedFootprint struct {
	Cost   *float64 // in the factors' currency
	Carbon *float64 // grams of CO2 equivalent
	Water  *float64 // litres
}

// StatedFootprint returns the footprint of an energy, as far as factors are stated.
func (f *Factors) StatedFootprint(energy dvfsmodel.Joule) (s StatedFootprint) {
	all := f.Footprint(energy)
	if f.CostPerKWh != 0 { // prices are below 0 at times
		s.Cost = &all.Cost
	}
	if f.CarbonPerKWh != 0 {
		s.Carbon = &all.Carbon
	}
	if f.WaterPerKWh != 0 {
		s.Water = &all.Water
	}
	return s
}

func (r *Records) fields() []field {
	const most = 36_500
	return []field{
		intField("keep_days", "Days for which epd keeps ended jobs; 0: for ever.",
			&r.KeepDays, 0, most),
		intField("detail_days",
			"Days for which epd keeps a run in full detail; 0: as long as keep_days. Older runs take a third\n"+
				"of the room: curves and reasons for clocks go; savings, models and lists of jobs stay.",
			&r.DetailDays, 0, most),
	}
}

func (f *Factors) fields() []field {
	factor := numberRange{max: 1e6}
	return []field{
		numberField("carbon_g_per_kwh", "Grams of CO2 equivalent per kilowatt-hour; 0: not stated.",
			&f.CarbonPerKWh, factor),
		numberField("water_l_per_kwh", "Litres of water per kilowatt-hour; 0: not stated.",
			&f.WaterPerKWh, factor),
		numberField("cost_per_kwh", "Price per kilowatt-hour, in currency; 0: not stated.",
			&f.CostPerKWh, factor),
		textField("currency", "Currency of the price, such as \"EUR\".", &f.Currency),
		numberField("pue", "Energy of the whole site over that of its computers (PUE); 1: not stated.",
			&f.PUE, numberRange{min: 1, max: 10}),
		textField("series",
			"File (CSV) with factors over time: columns time (RFC 3339) and any of carbon_g_per_kwh,\n"+
				"water_l_per_kwh and cost_per_kwh.", &f.Series),
	}
}

// checkTogether notes a price without a currency: nobody could tell what it is.
func (f *Factors) checkTogether(d *document) {
	if f.CostPerKWh > 0 && f.Currency == "" {
		d.faultAt("factors.cost_per_kwh", "factors.cost_per_kwh is %v, want currency with it", f.CostPerKWh)
	}
}
