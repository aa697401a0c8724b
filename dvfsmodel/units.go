package dvfsmodel

// MHz is a clock frequency in megahertz.
type MHz float64

// Volt is a voltage. Inside a [Setting] it is normalised to the GPU's default
// core voltage, like the clocks.
type Volt float64

// Watt is a power.
type Watt float64

// Joule is an energy.
type Joule float64

// Over is the energy that power p takes in the given number of seconds.
func (p Watt) Over(seconds float64) Joule { return Joule(float64(p) * seconds) }
