package record

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// Digest tells what nodes measured apart: it is of a canonical outcome without
// what the controller adds to it (the decision, how the job ended, that it counts nowhere), without a node
// energy that was computed from the settings in force, and without its [Details]. These may differ when the
// same outcome is delivered again: Slurm has forgotten the job by then, or a controller that knew nothing of
// them acknowledged it first.
func (o *Outcome) Digest() ([sha256.Size]byte, error) {
	measured := *o
	if o.Restarted.IsComplete() { // the controller says so
		measured.TimeS, measured.GPUEnergyJ, measured.NodeEnergyJ = o.Restarted.TimeS, o.Restarted.GPUEnergyJ,
			o.Restarted.NodeEnergyJ
	}
	measured = measured.withImplausible()
	measured.GPUSource = measured.GPUSource.withoutModule() // the controller says which are modules
	measured.DecisionID, measured.Workload, measured.GPUModel, measured.Arm = 0, "", "", ""
	measured.Unmatched = false // of a job that Slurm has forgotten, the controller says so
	measured.Submitted, measured.Restart, measured.ExitState = time.Time{}, 0, ""
	measured.Details = Details{}
	if measured.NodeSource == Modelled {
		measured.NodeEnergyJ, measured.NodeSource = live.Number{}, Unmeasured
	}
	text, err := json.Marshal(&measured)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("%w: run %s: %w", ErrInvalid, o.RunID, err)
	}
	return sha256.Sum256(text), nil
}

// withImplausible returns the outcome with what was implausible of it.
func (o *Outcome) withImplausible() Outcome {
	p, sent := &o.Implausible, *o
	for _, n := range []struct{ to, from *live.Number }{
		{&sent.TimeS, &p.TimeS},
		{&sent.GPUEnergyJ, &p.GPUEnergyJ},
		{&sent.NodeEnergyJ, &p.NodeEnergyJ},
		{&sent.MeanPowerW, &p.MeanPowerW},
		{&sent.PeakPowerW, &p.PeakPowerW},
		{&sent.Utilisation, &p.Utilisation},
		{&sent.PeakMemoryBytes, &p.PeakMemoryBytes},
	} {
		*n.to = n.from.Else(*n.to)
	}
	if p.GPUSource != Unmeasured {
		sent.GPUSource = p.GPUSource
	}
	if p.NodeSource != Unmeasured {
		sent.NodeSource = p.NodeSource
	}
	for _, t := range []struct{ to, from *time.Time }{{&sent.Started, &p.Started}, {&sent.Ended, &p.Ended}} {
		if !t.from.IsZero() {
			*t.to = *t.from
		}
	}
	if p.GPUs != nil {
		sent.GPUs = p.GPUs
	}
	if p.Setting != (dvfsmodel.Setting{}) {
		sent.Setting = p.Setting
	}
	sent.Implausible = Implausible{}
	return sent
}
