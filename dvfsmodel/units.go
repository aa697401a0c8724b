package dvfsmodel

// MHz is a clock frequency in megahertz.
type MHz float64

// Volt is a core voltage, normalised to the GPU's default one like the clocks of a
// [Scaling].
type Volt float64

// Watt is a power.
type Watt float64

// Joule is an energy.
type Joule float64

// Over returns the energy that power p takes in the given number of seconds.
func (p Watt) Over(seconds float64) Joule { return Joule(float64(p) * seconds) }

// JoulesPerKWh is how many joules a kilowatt-hour has.
const JoulesPerKWh = 3.6e6

// KWh returns the energy in kilowatt-hours.
func (e Joule) KWh() float64 { return float64(e) / JoulesPerKWh }
