// Package amdgpu finds AMD GPUs by the files of the kernel's driver amdgpu below /sys,
// reads them, and limits their clocks, without any library of AMD's. A GPU is a [gpu.Device] with the same
// contract as one behind NVML.
//
// The kernel has no lock of a clock. What there is instead are limits within which the
// GPU's firmware moves the clock, and they hold while its performance level is
// "manual". So to set a clock is to set that level and the upper limit; the level and the limits from
// before can be read, are noted in a file that outlives the process, and are given back.
//
// What is said here of files is from the kernel's documentation and source
// (Documentation/gpu/amdgpu, drivers/gpu/drm/amd/pm, kgd_pp_interface.h). It was never run on a real GPU.
package amdgpu
