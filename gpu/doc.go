// Package gpu is what epd knows of GPUs: a [Device] that can be read and whose
// clocks can be locked. Devices are a GPU behind NVML (built with
// cgo), a simulated one that follows a DVFS curve and can be made to fail
// ([Sim]), what packages below this one find, and whatever a test makes. All keep the
// contract of package gputest. An [EnergyMeter] sums the energy of a device's readings.
//
// Only epd uses devices. Nothing that epplan links reaches this package.
package gpu
