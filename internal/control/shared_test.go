package control

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// partsOfGPUs are ways in which Slurm says that a job has parts of GPUs.
var partsOfGPUs = map[string]func(*slurm.Job){
	"a shard, as it was asked for": func(j *slurm.Job) { j.TRESPerNode = "gres:shard:1" },
	"a shard, as newer ones say":   func(j *slurm.Job) { j.TRESPerNode = "gres/shard:2" },
	"MPS":                          func(j *slurm.Job) { j.TRESPerNode = "gres:mps:50" },
	"a shard beside a whole GPU":   func(j *slurm.Job) { j.TRESPerNode = "gres:gpu:1,gres:shard:1" },
	"a shard that it was given":    func(j *slurm.Job) { j.Allocated = slurm.TRES{"gres/shard": 1} },
	"MPS that it was given": func(j *slurm.Job) {
		j.Gres = []slurm.NodeGres{{Node: "n1", Gres: []slurm.Gres{{Name: "mps", Count: 25, Index: []int{0}}}}}
	},
}

// A job with parts of GPUs runs at default clocks also while it is alone, whatever its user fixed, and is in
// no arm; its energy isn't known, is in no sum, and teaches nothing. A job with whole GPUs of the same
// workload is treated.
func TestAJobWithPartsOfGPUsIsntTreatedAndItsEnergyIsntKnown(t *testing.T) {
	for name, change := range partsOfGPUs {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			for id := range slurm.JobID(6) {
				r.run(id+1, memoryBound())
			}
			r.job(10, nil)
			if whole := r.decide(ask(10)); !whole.Apply || whole.Arm != live.ArmTreated || whole.Shared {
				t.Fatalf("the job with a whole GPU: %+v", whole)
			}
			for id, comment := range map[slurm.JobID]string{20: "", 21: "epplan:fixed=945"} {
				r.job(id, func(j *slurm.Job) {
					j.Allocated, j.Comment = nil, comment
					change(j)
				})
				d := r.decide(ask(id))
				if d.Apply || d.Core != 0 || d.Arm != live.ArmExcluded || !d.Shared ||
					!strings.HasSuffix(d.Reason, "the GPUs are shared: default clocks") ||
					strings.Contains(d.Reason, "945") != (comment != "") {
					t.Errorf("job %d: %+v", id, d)
				}
				o := r.ran(d, ask(id).RunID, memoryBound())
				o.Arm = live.ArmTreated // as an agent of before says
				r.recordUncounted(id, o)
			}
		})
	}
}

// recordUncounted records an outcome whose energy isn't known: it is in no arm and no sum.
func (r *rig) recordUncounted(id slurm.JobID, o *record.Outcome) {
	r.t.Helper()
	before := r.sums()
	r.record(o, store.Stored)
	all, err := r.store.OutcomesOfJob(r.t.Context(), "alpha", int64(id))
	if err != nil || len(all) != 1 {
		r.t.Fatal(all, err)
	}
	got := &all[0]
	if _, known := got.GPUEnergyJ.Get(); known || !got.Shared || got.Arm != live.ArmExcluded ||
		got.GPUSource != record.Unmeasured || got.NodeEnergyJ != (live.Number{}) ||
		got.MeanPowerW != (live.Number{}) {
		r.t.Errorf("job %d: recorded %+v", id, got)
	}
	if after := r.sums(); after != before {
		r.t.Errorf("job %d: sums of energy %v, were %v", id, after, before)
	}
}

// sums returns the energy of all runs by day, and the runs that are compared.
func (r *rig) sums() (s struct {
	joules float64
	runs   int64
},
) {
	r.t.Helper()
	strata, err := r.store.Strata(r.t.Context(), "alpha", start.Add(-1), start.AddDate(1, 0, 0))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range strata {
		s.joules += strata[i].GPU.Value * float64(strata[i].GPU.Runs)
		s.runs += strata[i].GPU.Runs
	}
	return s
}

func TestFixedClocksOnPartsOfGPUsAreAnsweredAtSubmission(t *testing.T) {
	r := newRig(t, nil)
	for gres, want := range map[hooks.Hex]bool{"gres:shard:1": true, "gres/mps:50": true, "gres:gpu:1": false} {
		answer, err := r.Submit(t.Context(), &hooks.Submission{
			Version: hooks.ProtocolVersion, UID: 1000, Name: "train", Partition: "gpu", MinNodes: 1,
			TRESPerNode: gres, Comment: "epplan:fixed=945",
		})
		if said := strings.Contains(string(answer.Message), "fixed clocks aren't set"); err != nil || said != want {
			t.Errorf("%s: %q, %v", gres, answer.Message, err)
		}
	}
}
