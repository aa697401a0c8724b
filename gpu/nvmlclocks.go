//go:build cgo && linux

package gpu

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

enum { functionNotFound = 13 };

typedef int (*epplan_handle)(const char *uuid, void **device);
typedef int (*epplan_mem)(void *device, unsigned int *count, unsigned int *mhz);
typedef int (*epplan_core)(void *device, unsigned int mem, unsigned int *count, unsigned int *mhz);

// epplan_clocks lists the core clocks of a memory clock, or the memory clocks
// when that is 0. The library is loaded already, with its names global.
static int epplan_clocks(const char *uuid, unsigned int mem, unsigned int *count, unsigned int *mhz) {
	void *device;
	epplan_handle handle = (epplan_handle)dlsym(RTLD_DEFAULT, "nvmlDeviceGetHandleByUUID");
	epplan_mem mems = (epplan_mem)dlsym(RTLD_DEFAULT, "nvmlDeviceGetSupportedMemoryClocks");
	epplan_core cores = (epplan_core)dlsym(RTLD_DEFAULT, "nvmlDeviceGetSupportedGraphicsClocks");
	if (!handle || !mems || !cores) return functionNotFound;
	int ret = handle(uuid, &device);
	if (ret != 0) return ret;
	return mem == 0 ? mems(device, count, mhz) : cores(device, mem, count, mhz);
}
*/
import "C"

import (
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/epplan/epplan/dvfsmodel"
)

// nvmlClocks asks the driver for a GPU's table of clocks. go-nvml's own
// functions for it offer NVML a list of length 0 and so never get one
// (github.com/NVIDIA/go-nvml/issues/134).
func nvmlClocks(uuid string) (Clocks, nvml.Return) {
	name := C.CString(uuid)
	defer C.free(unsafe.Pointer(name))
	mems, ret := clockList(name, 0)
	if ret != nvml.SUCCESS {
		return Clocks{}, ret
	}
	byMem := make(map[dvfsmodel.MHz][]dvfsmodel.MHz, len(mems))
	for _, mem := range mems {
		cores, ret := clockList(name, mem)
		if ret != nvml.SUCCESS {
			return Clocks{}, ret
		}
		for _, core := range cores {
			byMem[dvfsmodel.MHz(mem)] = append(byMem[dvfsmodel.MHz(mem)], dvfsmodel.MHz(core))
		}
	}
	return newClocks(byMem), nvml.SUCCESS
}

// clockList grows its list until the driver's fits.
func clockList(uuid *C.char, mem C.uint) ([]C.uint, nvml.Return) {
	const longest = 1 << 16
	for size := C.uint(256); size <= longest; size *= 4 {
		list := make([]C.uint, size)
		count := size
		ret := nvml.Return(C.epplan_clocks(uuid, mem, &count, &list[0]))
		if ret == nvml.ERROR_INSUFFICIENT_SIZE {
			continue
		}
		if ret != nvml.SUCCESS {
			return nil, ret
		}
		return list[:min(count, size)], ret
	}
	return nil, nvml.ERROR_INSUFFICIENT_SIZE
}
