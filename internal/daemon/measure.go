package daemon

import (
	"context"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/metrics"
)

// Measure returns what the agent holds now, for metrics.
func (d *AgentServer) Measure(ctx context.Context) metrics.Agent {
	state := d.options.Agent.State()
	m := metrics.Agent{Waiting: d.options.Spool.Len(), Unnumbered: d.numbers.status(ctx).Trouble != ""}
	if aside, err := d.options.Spool.Aside(); err == nil {
		m.Aside = len(aside)
	}
	users := make(map[string]string) // partitions by GPU
	_, m.Trouble = d.problems.latestProblems()
	m.Steps, m.Guarded = state.Steps, state.Guarded
	for i := range state.Runs {
		r := &state.Runs[i]
		if r.Ended {
			m.Waiting++
			continue
		}
		m.Runs++
		if r.Adapted != nil {
			m.Adapted++
		}
		for _, uuid := range r.GPUs {
			users[uuid] = d.outbox.partition(r.ID)
		}
	}
	for i := range state.GPUs {
		m.GPUs = append(m.GPUs, d.measure(&state.GPUs[i], users))
		if state.GPUs[i].Entry != nil {
			m.Journal++
		}
	}
	return m
}

// measure returns one GPU with what it measures now, if it can.
func (d *AgentServer) measure(state *agent.GPUState, partitions map[string]string) metrics.GPU {
	id := state.Identity
	out := metrics.GPU{
		UUID: id.UUID, Model: id.Model, Partition: partitions[id.UUID], Stuck: state.Stuck,
		Alien: state.ExternalChange != "", Unsure: state.Unsure != "",
	}
	out.Share = float64(d.options.Agent.Leases().Share(id.UUID))
	if state.Entry != nil {
		out.Locked = state.Entry.Setting()
	}
	r, err := agent.CallGPU(d.options.Agent.GPUs(), id.UUID, gpu.Device.Read)
	if err != nil {
		return out
	}
	out.Read, out.Power = true, max(0, float64(r.Power))
	out.Limit = max(0, float64(measuredOrZero(r.Limit)))
	out.Clocks, out.Utilisation = readClocks(&r), max(0, r.Utilisation)
	return out
}
