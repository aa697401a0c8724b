// A driver library for tests: two GPUs, the first like an A100 and the second
// like a V100, that remember their locks. The variable FAKE_NVML makes
// functions return a code: "nvmlDeviceGetPowerUsage=15,nvmlInit_v2=9". Of a GPU it
// says: "second=15", opening it returns that code; "gone=1", the first one isn't
// counted any more; "renumbered=1", the device files of the two are swapped;
// "busy=1", locked core clocks are at the upper end of their range; "profiles=1", the first one has
// workload power profiles (Max-P, Max-Q, which it excludes, and Network), as a Blackwell; "late=N", a
// profile is in force after being asked for N times. The first GPU in the driver's order has the second device file.
// Functions that newer drivers have are left out on purpose.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	const char *uuid, *name, *bus;
	unsigned minor, arch, low, core, mem, idle_core, idle_mem, mems, list;
	unsigned long long energy;
	unsigned limit; // of power, mW
	unsigned requested, asked; // profiles, and how often they were asked for since
} gpu;

static gpu gpus[2] = {
	{"GPU-aaaaaaaa-0000-0000-0000-000000000000", "Fake A100", "00000000:3B:00.0", 1, 7, 0, 0, 0, 210, 1215, 2, 300, 1000, 400000},
	{"GPU-bbbbbbbb-0000-0000-0000-000000000000", "Fake V100", "00000000:86:00.0", 0, 5, 0, 0, 0, 135, 877, 1, 3, 5000, 250000},
};

static int fails(const char *fn) {
	const char *at = getenv("FAKE_NVML");
	size_t n = strlen(fn);
	while (at && *at) {
		if (strncmp(at, fn, n) == 0 && at[n] == '=') return atoi(at + n + 1);
		at = strchr(at, ',');
		if (at) at++;
	}
	return 0;
}

#define ENTER do { int ret = fails(__func__); if (ret) return ret; } while (0)

int nvmlInit_v2(void) { ENTER; return 0; }
int nvmlShutdown(void) { ENTER; return 0; }
const char *nvmlErrorString(int ret) { return ret == 999 ? "Unknown Error" : "some error"; }
int nvmlDeviceGetCount_v2(unsigned *n) { ENTER; *n = fails("gone") ? 1 : 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, gpu **d) {
	ENTER;
	if (fails("gone")) i++;
	if (i == 1 && fails("second")) return fails("second");
	*d = &gpus[i];
	return 0;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, gpu **d) {
	ENTER;
	for (int i = 0; i < 2; i++) if (strcmp(uuid, gpus[i].uuid) == 0) { *d = &gpus[i]; return 0; }
	return 6;
}
int nvmlDeviceGetUUID(gpu *d, char *out, unsigned n) { ENTER; snprintf(out, n, "%s", d->uuid); return 0; }
int nvmlDeviceGetName(gpu *d, char *out, unsigned n) { ENTER; snprintf(out, n, "%s", d->name); return 0; }
int nvmlDeviceGetMinorNumber(gpu *d, unsigned *minor) { ENTER; *minor = fails("renumbered") ? 1 - d->minor : d->minor; return 0; }
int nvmlDeviceGetArchitecture(gpu *d, unsigned *arch) { ENTER; *arch = d->arch == 7 && fails("profiles") ? 10 : d->arch; return 0; }

typedef struct { char legacy[16]; unsigned domain, bus, device, id, sub; char bus_id[32]; } pci;
int nvmlDeviceGetPciInfo_v3(gpu *d, pci *p) {
	ENTER;
	memset(p, 0, sizeof *p);
	snprintf(p->bus_id, sizeof p->bus_id, "%s", d->bus);
	return 0;
}

static int fill(unsigned have, unsigned *count, unsigned *mhz, unsigned top, unsigned step) {
	unsigned room = *count;
	*count = have;
	if (room < have) return 7;
	for (unsigned i = 0; i < have; i++) mhz[i] = top - i * step;
	return 0;
}
int nvmlDeviceGetSupportedMemoryClocks(gpu *d, unsigned *count, unsigned *mhz) {
	ENTER;
	return fill(d->mems, count, mhz, d->idle_mem, 405);
}
int nvmlDeviceGetSupportedGraphicsClocks(gpu *d, unsigned mem, unsigned *count, unsigned *mhz) {
	ENTER;
	(void)mem;
	return fill(d->list, count, mhz, d->idle_core + 5 * (d->list - 1), 5);
}

int nvmlDeviceSetGpuLockedClocks(gpu *d, unsigned lo, unsigned hi) { ENTER; if (lo > hi) return 2; d->low = lo; d->core = hi; return 0; }
int nvmlDeviceResetGpuLockedClocks(gpu *d) { ENTER; d->low = d->core = 0; return 0; }
int nvmlDeviceSetMemoryLockedClocks(gpu *d, unsigned lo, unsigned hi) { ENTER; if (lo != hi) return 2; d->mem = lo; return 0; }
int nvmlDeviceResetMemoryLockedClocks(gpu *d) { ENTER; d->mem = 0; return 0; }
int nvmlDeviceGetClockInfo(gpu *d, unsigned type, unsigned *mhz) {
	ENTER;
	if (type == 2) *mhz = d->mem ? d->mem : d->idle_mem;
	else if (d->core && fails("busy")) *mhz = d->core;
	else *mhz = d->low > d->idle_core ? d->low : d->idle_core;
	return 0;
}

// The V100's board has a second limit of 240 W, which nobody sets.
int nvmlDeviceGetEnforcedPowerLimit(gpu *d, unsigned *mw) {
	ENTER;
	*mw = d->arch == 5 && d->limit > 240000 ? 240000 : d->limit;
	return 0;
}
int nvmlDeviceGetPowerManagementLimit(gpu *d, unsigned *mw) { ENTER; *mw = d->limit; return 0; }
int nvmlDeviceGetPowerManagementDefaultLimit(gpu *d, unsigned *mw) { ENTER; *mw = d->arch == 7 ? 400000 : 250000; return 0; }
int nvmlDeviceGetPowerManagementLimitConstraints(gpu *d, unsigned *lo, unsigned *hi) {
	ENTER;
	*lo = 100000;
	*hi = d->arch == 7 ? 400000 : 250000;
	return 0;
}
int nvmlDeviceSetPowerManagementLimit(gpu *d, unsigned mw) {
	ENTER;
	if (mw < 100000 || mw > (d->arch == 7 ? 400000 : 250000)) return 2;
	d->limit = mw;
	return 0;
}
// Max-P goes before Max-Q, and each excludes the other.
typedef struct { unsigned mask[8]; } mask255;
typedef struct { unsigned version, id, priority; mask255 conflicts; } profile;
typedef struct { unsigned version; mask255 all; profile list[255]; } profiles_info;
typedef struct { unsigned version; mask255 all, requested, enforced; } profiles_now;
typedef struct { unsigned version; mask255 requested; } profiles_request;
int nvmlDeviceWorkloadPowerProfileGetProfilesInfo(gpu *d, profiles_info *info) {
	ENTER;
	if (d->arch != 7 || !fails("profiles")) return 3;
	if (info->version != (sizeof *info | 1 << 24)) return 25;
	info->all.mask[0] = 1 | 2 | 16;
	for (unsigned i = 0; i < 5; i++) { info->list[i].id = i; info->list[i].priority = 10 + i; }
	info->list[0].conflicts.mask[0] = 2;
	info->list[1].conflicts.mask[0] = 1;
	return 0;
}
int nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(gpu *d, profiles_now *now) {
	ENTER;
	if (d->arch != 7 || !fails("profiles")) return 3;
	if (now->version != (sizeof *now | 1 << 24)) return 25;
	now->all.mask[0] = 1 | 2 | 16;
	now->requested.mask[0] = now->enforced.mask[0] = d->requested;
	if (d->requested & 1) now->enforced.mask[0] &= ~2u;
	if (d->asked++ < (unsigned)fails("late")) now->enforced.mask[0] = 0;
	return 0;
}
int nvmlDeviceWorkloadPowerProfileSetRequestedProfiles(gpu *d, profiles_request *r) {
	ENTER;
	if (r->version != (sizeof *r | 1 << 24) || r->requested.mask[0] & ~(1 | 2 | 16)) return 2;
	d->requested |= r->requested.mask[0];
	d->asked = 0;
	return 0;
}
int nvmlDeviceWorkloadPowerProfileClearRequestedProfiles(gpu *d, profiles_request *r) {
	ENTER;
	if (r->version != (sizeof *r | 1 << 24)) return 2;
	d->requested &= ~r->requested.mask[0];
	return 0;
}
#ifdef NEWER
typedef struct { unsigned operation; mask255 profiles; } profiles_update;
int nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1(gpu *d, profiles_update *u) {
	ENTER;
	if (u->operation > 1) return 2;
	d->requested = u->operation ? d->requested | u->profiles.mask[0] : d->requested & ~u->profiles.mask[0];
	d->asked = 0;
	return 0;
}
#endif
int nvmlDeviceGetPowerUsage(gpu *d, unsigned *mw) { ENTER; (void)d; *mw = 61234; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(gpu *d, unsigned long long *mj) { ENTER; *mj = d->energy += 7; return 0; }
int nvmlDeviceGetUtilizationRates(gpu *d, unsigned *pair) { ENTER; (void)d; pair[0] = 37; pair[1] = 5; return 0; }
int nvmlDeviceGetMemoryInfo(gpu *d, unsigned long long *three) {
	ENTER;
	(void)d;
	three[0] = 1 << 30; three[1] = 1 << 29; three[2] = 123456789;
	return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(gpu *d, unsigned long long *bits) { ENTER; (void)d; *bits = 0x1 | 0x4; return 0; }
int nvmlDeviceGetMigMode(gpu *d, unsigned *now, unsigned *next) { ENTER; *now = *next = d->arch == 7; return d->arch == 7 ? 0 : 3; }

typedef struct { unsigned pid; unsigned long long mem; unsigned gi, ci; } proc;
int nvmlDeviceGetComputeRunningProcesses_v3(gpu *d, unsigned *n, proc *list) {
	ENTER;
	(void)d;
	unsigned room = *n;
	*n = 2;
	if (room < 2) return 7;
	list[0].pid = 4242; list[1].pid = 17;
	return 0;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(gpu *d, unsigned *n, proc *list) {
	ENTER;
	(void)d;
	list[0].pid = 17;
	*n = 1;
	return 0;
}
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned n) {
	ENTER;
	snprintf(name, n, "%s", pid == 17 && fails("mps") ? "/usr/bin/nvidia-cuda-mps-server" : "/usr/bin/python3");
	return 0;
}
