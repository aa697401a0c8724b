package livetest_test

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// TestWhereClocksChangeNothingNothingIsSaved is an A/A trial: what the jobs of both arms
// take doesn't depend on the core clock that epd chooses, only scatters, so that whatever
// their comparison calls saved is an error of the comparison: of the lot, of what counts,
// or of measuring.
func TestWhereClocksChangeNothingNothingIsSaved(t *testing.T) {
	slurmlab.AnySlurm(t)
	// Of a workload jobs count once there are some in both arms: a few of six always are.
	const workloads, jobs, shorter = 20, 120, 0.4
	random := rand.New(rand.NewPCG(19, 4))
	l := newLab(t, inCompressedTime(
		"[live]\nmode = \"enforce\"\nhold_out = 0.4\nmax_slowdown = 1.5\nmin_gain = 0\n", compressedGPU, 2))
	acts := drawActs(random, workloads)
	for i := range acts {
		// The core clock costs nothing and gives nothing; the memory clock of this model is fixed.
		acts[i].truth.C, acts[i].truth.Delta = 1e-6, 0
		acts[i].truth.D *= shorter
	}
	s := newStage(l, acts, workScatter, random)
	defer s.close()
	submitted := 0
	said := savingsAfter(s, jobs, &submitted)
	// How many jobs start before their workload has a model depends on how fast the machine is.
	for said.GPU.Runs < jobs/8 || said.GPU.Against < jobs/8 {
		if submitted >= 4*jobs {
			break
		}
		said = savingsAfter(s, jobs/4, &submitted)
	}
	for _, of := range []struct {
		what string
		epdapi.Saving
	}{{"GPUs", said.GPU}, {"nodes", said.Node}} {
		t.Logf("%s: saved %+.2f %% of %d runs against %d, the interval is %+.2f %% to %+.2f %%", of.what,
			100*of.SavedJ/of.BaselineJ, of.Runs, of.Against, 100*of.LowJ/of.BaselineJ,
			100*of.HighJ/of.BaselineJ)
		if of.Runs < jobs/8 || of.Against < jobs/8 {
			t.Errorf("%s: %d runs against %d are no trial", of.what, of.Runs, of.Against)
		}
		// One interval in twenty doesn't cover the truth: twice as wide, one in ten thousand.
		if width := of.HighJ - of.LowJ; of.SavedJ < -width || of.SavedJ > width {
			t.Errorf("%s: %+v J saved, where nothing can be", of.what, of.SavedJ)
		}
	}
}

// savingsAfter has so many more jobs run, and returns the savings then.
func savingsAfter(s *stage, jobs int, submitted *int) (said epdapi.Savings) {
	s.Helper()
	for range jobs {
		s.submit(&s.acts[*submitted%len(s.acts)])
		*submitted++
		s.within(patience, "jobs end", func() bool { return *submitted-s.play() < ahead })
	}
	s.within(patience, "all jobs end", func() bool { return s.play() == *submitted })
	s.within(patience, "all is recorded", func() bool {
		st := s.status(controller)
		return st != nil && st.Totals != nil && st.Totals.Outcomes >= int64(*submitted)
	})
	out, err := exec.CommandContext(s.Context(), filepath.Join(s.bin, "epplan"), "savings", "--json",
		"--socket", s.socket(controller)).Output()
	if err != nil {
		s.Fatal(err)
	}
	if err := json.Unmarshal(out, &said); err != nil {
		s.Fatal(err)
	}
	return said
}
