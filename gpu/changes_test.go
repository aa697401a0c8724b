package gpu_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// changes are all that is asked of NVML that changes a GPU. Application clocks, persistence, compute mode,
// ECC and MIG are an administrator's: they are neither set nor reset.
var changes = []string{
	"ResetGpuLockedClocks", "ResetMemoryLockedClocks", "SetGpuLockedClocks", "SetMemoryLockedClocks",
	"SetPowerManagementLimit", "WorkloadPowerProfileClearRequestedProfiles",
	"WorkloadPowerProfileSetRequestedProfiles", "WorkloadPowerProfileUpdateProfiles_v1",
}

func TestNothingElseOfAGPUIsChanged(t *testing.T) {
	files, err := filepath.Glob("nvml*.go")
	if err != nil {
		t.Fatal(err)
	}
	change := regexp.MustCompile(`\b(?:handle|api)\.(\w*(?:Set|Reset|Clear|Update|Freeze|Create|Destroy)[A-Z]\w*)\(`)
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, call := range change.FindAllStringSubmatch(string(text), -1) {
			found = append(found, call[1])
		}
	}
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, changes) {
		t.Errorf("NVML is asked for %q, want %q", found, changes)
	}
}
