// Package gpuexec finds, reads and sets GPUs by a site's commands, where epd isn't let at
// the driver itself: a wrapper that sudo allows, say. A GPU is a [gpu.Device] with the same
// contract as one behind NVML.
//
// Commands are lists of words with the GPU and the value put in their places; no shell is asked. Each is
// ended, with all that it started, when it takes too long or prints too much, and what it prints is
// believed only where it is what its columns say.
package gpuexec
