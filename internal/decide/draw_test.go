package decide

import (
	"testing"
	"time"

	"github.com/epplan/epplan/slurm"
)

func TestTheLotIsFairAndNobodyCanInfluenceIt(t *testing.T) {
	clock := func() time.Time { return start }
	dr, _ := newDecider(t, 7, clock)
	n := 0
	const jobs = 20_000
	for id := range slurm.JobID(jobs) {
		if drawUniform(&dr.armKey, id+1) < 0.05 {
			n++
		}
	}
	if part := float64(n) / jobs; part < 0.044 || part > 0.056 { // four standard deviations
		t.Errorf("%.2f %% were held out, want 5 %%", 100*part)
	}
	other, _ := newDecider(t, 8, clock)
	same := 0
	for id := range slurm.JobID(1000) {
		if (drawUniform(&dr.armKey, id+1) < 0.5) == (drawUniform(&other.armKey, id+1) < 0.5) {
			same++
		}
	}
	if same < 400 || same > 600 {
		t.Errorf("with another seed %d of 1000 draws are the same", same)
	}
	for id := range slurm.JobID(1000) {
		if x := drawUniform(&dr.armKey, id); x < 0 || x > 1 {
			t.Errorf("job %d draws %v", id, x)
		}
	}
}
