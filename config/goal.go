package config

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// Goal is what plans and clocks are chosen for. Its fields are those of
// [planner.Problem].
type Goal struct {
	Objective  dvfsmodel.Objective
	WaitWeight float64
	Currency   string
	Tolerance  float64 // of the default policy for plans of jobs that are all there, see [policy.Params]
}

// ApplyTo makes it what a problem is planned for. A second that a job waits weighs as much as one that it
// holds its GPUs: if only the latter had a weight, all would wait for the fastest GPUs. In prices, as in
// energy × time, waiting costs nothing.
func (g *Goal) ApplyTo(p *planner.Problem) {
	p.Objective, p.WaitWeight, p.Currency = g.Objective, g.WaitWeight, g.Currency
	if g.Currency == "" && g.Objective.DelayPower == 0 {
		p.WaitWeight += g.Objective.TimeWeight
	}
}

// Goal returns what plans and clocks are chosen for.
func (c *Config) Goal() Goal {
	o := &c.objective
	g := Goal{
		Objective:  dvfsmodel.Objective{EnergyWeight: o.energyWeight, TimeWeight: o.timeWeight},
		WaitWeight: o.waitWeight, Tolerance: o.tolerance,
	}
	switch o.name {
	case nameEDP:
		g.Objective.DelayPower = 1
	case nameED2P:
		g.Objective.DelayPower = 2
	case nameCost:
		const hour = 3600
		g.Objective.EnergyWeight, g.Objective.TimeWeight = c.Factors.Footprint(1).Cost, o.costPerGPUHour/hour
		g.Currency, g.Tolerance = c.Factors.Currency, 0
	case nameCarbon:
		g.Objective.EnergyWeight = c.Factors.Footprint(1).Carbon
		g.Currency, g.Tolerance = "g of CO2", 0
	}
	return g
}

// CountsCost and CountsCarbon report whether plans and clocks are chosen for money, or for CO2.
func (c *Config) CountsCost() bool { return c.objective.name == nameCost }

// CountsCarbon is described with [Config.CountsCost].
func (c *Config) CountsCarbon() bool { return c.objective.name == nameCarbon }

// Names of objectives.
const (
	nameEnergy = "energy"
	nameEDP    = "edp"
	nameED2P   = "ed2p"
	nameTime   = "time"
	nameCost   = "cost"
	nameCarbon = "carbon"
)

// objective is [objective] as a file has it.
type objective struct {
	name                                 string
	energyWeight, timeWeight, waitWeight float64
	tolerance                            float64
	costPerGPUHour                       float64 // in the currency of the factors
}

func (o *objective) fields() []field {
	return []field{
		choiceField("name",
			"What plans and clocks minimise: energy, edp (energy × time), ed2p (energy × time²), time, cost\n"+
				"(money: cost_per_kwh of [factors] and cost_per_gpu_hour) or carbon (carbon_g_per_kwh of\n"+
				"[factors]).",
			&o.name, nameEnergy, nameEDP, nameED2P, nameTime, nameCost, nameCarbon),
		numberField("energy_weight", "Weight of a joule. Only the ratio to the other weights matters.",
			&o.energyWeight, nonNegativeRange),
		numberField("tolerance",
			"Fraction by which an offline plan may cost more than the best one found, for a shorter mean\n"+
				"turnaround. Jobs with a deadline only have to meet it. Not with cost or carbon.",
			&o.tolerance, numberRange{max: 1}),
		numberField("time_weight",
			"Weight of a second that a job holds a GPU or, in plans, waits for one. Above 0, faster clocks\n"+
				"are worth some energy.", &o.timeWeight, nonNegativeRange),
		numberField("wait_weight",
			"Further weight of a second that a job waits, for each of its GPUs or its share of one. Above 0,\n"+
				"an earlier start is worth some energy, and epd slows no job for less than others' waiting costs.\n"+
				"Only with energy.", &o.waitWeight, nonNegativeRange),
		numberField("cost_per_gpu_hour",
			"Cost of a GPU hour beside energy, in the currency of [factors]. Only with cost.",
			&o.costPerGPUHour, numberRange{max: 1e6}),
	}
}

// checkTogether notes values that don't go with the objective's name.
func (o *objective) checkTogether(d *document, f *Factors) {
	if o.name == nameTime {
		if _, set := d.offsets["objective.energy_weight"]; set && o.energyWeight != 0 {
			d.faultAt("objective.energy_weight", `objective.energy_weight is %v, want 0 when name is "time"`,
				o.energyWeight)
		}
		o.energyWeight = 0
		if _, set := d.offsets["objective.time_weight"]; !set {
			o.timeWeight = 1
		}
	}
	if o.name != nameEnergy && o.waitWeight > 0 {
		d.faultAt("objective.wait_weight", `objective.wait_weight is %v, want 0 unless name is "energy"`,
			o.waitWeight)
	}
	if o.name == nameCost {
		o.checkPrices(d, f)
		return
	}
	if o.name == nameCarbon {
		o.checkCarbon(d, f)
	}
	if o.costPerGPUHour > 0 {
		d.faultAt("objective.cost_per_gpu_hour",
			`objective.cost_per_gpu_hour is %v, want 0 unless name is "cost"`, o.costPerGPUHour)
	}
	if o.energyWeight == 0 && o.timeWeight == 0 {
		d.faultAt("objective", "the weights of energy and time are both 0, want one above 0")
	}
}

// checkPrices notes weights beside prices, and that there is no price of energy.
func (o *objective) checkPrices(d *document, f *Factors) {
	o.checkLeftOut(d, ": cost_per_kwh of [factors] weighs energy", ": cost_per_gpu_hour weighs time")
	if f.CostPerKWh == 0 {
		d.faultAt("objective.name",
			`objective.name is "cost", want a price of energy with it: set cost_per_kwh and currency in [factors]`)
	}
}

// checkCarbon notes weights beside grams, and that nobody says how many a joule is.
func (o *objective) checkCarbon(d *document, f *Factors) {
	o.checkLeftOut(d, "", "")
	if f.CarbonPerKWh == 0 {
		d.faultAt("objective.name", `objective.name is "carbon", want carbon_g_per_kwh in [factors] with it`)
	}
}

// checkLeftOut notes weights where the name of the objective says all of them, with what weighs energy and
// time instead.
func (o *objective) checkLeftOut(d *document, ofEnergy, ofTime string) {
	note := func(key string, is float64, instead string) {
		d.faultAt("objective."+key, `objective.%s is %v, want it left out when name is "%s"%s`, key, is, o.name, instead)
	}
	if o.energyWeight != 1 {
		note("energy_weight", o.energyWeight, ofEnergy)
	}
	if o.timeWeight != 0 {
		note("time_weight", o.timeWeight, ofTime)
	}
	if o.tolerance != 0 && o.tolerance != policy.DefaultTolerance {
		note("tolerance", o.tolerance, "")
	}
}
