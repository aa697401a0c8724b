// Package gpu reads GPUs and sets their clocks, power limit and power profile: a [Device] is a GPU
// behind NVML (built with cgo), one that a package below this one finds, a simulated one that follows a
// DVFS model and can be made to fail ([Sim]), or one that a test makes. All keep one contract. An
// [EnergyMeter] sums the energy of a device's readings.
//
// The package keeps no record of what it set. A lock outlives the process, so a caller writes down
// what it sets before it does, and releases what an earlier process left.
package gpu
