package agent_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/agent"
)

// Hooks come at the same time, and sweeps between them. What the runs that are
// left come to is what the GPUs are locked at.
func TestHooksAndSweepsAtTheSameTimeEndInAnAgreement(t *testing.T) {
	const jobs = 6
	h := newHost(t, twoGPUs)
	a := h.started()
	var hooks, sweeps sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	sweeps.Go(func() {
		for ctx.Err() == nil {
			_, _ = a.Sweep(ctx, alive, alive)
			_ = a.Sample(ctx)
		}
	})
	for job := range uint32(jobs) {
		last := slow
		if job == 0 {
			last = quick
		}
		hooks.Go(func() {
			if err := h.comeAndGo(a, job+1, last); err != nil {
				t.Error(err)
			}
		})
	}
	hooks.Wait()
	cancel()
	sweeps.Wait()
	h.wantLocked(quick, quick)
	for job := range uint32(jobs) {
		end(a, job+1)
	}
	h.wantFree()
}

// comeAndGo runs a job many times and leaves its last run open.
func (h *host) comeAndGo(a *agent.Agent, job uint32, last dvfsmodel.Setting) error {
	const rounds = 40
	for i := range rounds {
		id := fmt.Sprintf("r%d-%d", job, i)
		got, err := a.Apply(context.Background(), h.run(id, job, slow, 0, 1))
		if err != nil || !got.Locked {
			return fmt.Errorf("%s: %+v: %w", id, got, err)
		}
		_, err = a.End(context.Background(), job, "n1")
		if err := errors.Join(err, a.Runs().Forget(id)); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	_, err := a.Apply(context.Background(), h.run(fmt.Sprintf("r%d-last", job), job, last, 0, 1))
	return err
}
