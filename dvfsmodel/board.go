package dvfsmodel

// Board describes a GPU model, whatever runs on it. What isn't known is zero.
type Board struct {
	Name    string
	Default Setting   // clocks
	Clocks  []Setting // all that it supports
	Planned []Setting // those of them that plans choose
	// Voltage returns the normalised core voltage of a normalised core clock; nil means [VoltageFor].
	Voltage func(fc float64) Volt
	// IdleW is drawn without work, BusyW with any.
	IdleW, BusyW Watt
	// The bounds of the driver's power limit, and its value as delivered.
	LimitMin, LimitDefault, LimitMax Watt
	// CoreLock and MemoryLock say whether the driver locks that clock; nil: not known.
	CoreLock, MemoryLock *bool
	// EnergyScope says which parts the driver's energy counter covers; none: there is no counter.
	EnergyScope string
	// Estimate lists the keys of a [[gpu]] table whose values nobody measured.
	Estimate []string
}
