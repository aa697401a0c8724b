package daemon_test

import (
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/slurm/hooks"
)

// The controller is told of the profiles that can be put in force on all of a job's GPUs, and the one that
// it names is requested while the job runs, whether clocks are set or not.
func TestAPowerProfileIsRequestedWhileAJobRuns(t *testing.T) {
	j := &judge{setting: dvfsmodel.Setting{Profile: dvfsmodel.MaxQ}}
	h := open(t, t.TempDir(), "sim:3,profiles", "", j)
	others := []gpu.ProfileSet{
		0, gpu.ProfilesOf(dvfsmodel.MaxQ, dvfsmodel.MemoryBound), gpu.ProfilesOf(dvfsmodel.MaxP),
	}
	for i, set := range others {
		if err := h.sims[i].RequestProfiles(set); err != nil {
			t.Fatal(err)
		}
	}
	state := func(when string, want ...gpu.ProfileSet) {
		t.Helper()
		for i, set := range want {
			if now, err := h.sims[i].Profiles(); err != nil || now.Requested != set {
				t.Errorf("%s: GPU %d has %v, %v; want %v", when, i, now.Requested, err, set)
			}
		}
	}
	h.hook(t, hooks.Prolog, 1, 0, 1)
	if want := []string{"Max-P", "Max-Q", "Memory-Bound"}; !slices.Equal(h.request.Profiles, want) {
		t.Errorf("told of %q, want %q", h.request.Profiles, want)
	}
	state("while it runs", gpu.ProfilesOf(dvfsmodel.MaxQ), others[1], others[2])
	h.hook(t, hooks.Epilog, 1, 0, 1)
	state("afterwards", others...)
	h.hook(t, hooks.Prolog, 2, 2) // where Max-P excludes it
	state("where another one excludes it", others...)
	if want := []string{"Max-P", "Compute", "Memory-Bound"}; !slices.Equal(h.request.Profiles, want) {
		t.Errorf("told of %q, want %q", h.request.Profiles, want)
	}
	plain := open(t, t.TempDir(), "sim:1", "", j)
	plain.hook(t, hooks.Prolog, 1, 0)
	if len(plain.request.Profiles) > 0 {
		t.Errorf("a GPU without profiles: %q", plain.request.Profiles)
	}
}
