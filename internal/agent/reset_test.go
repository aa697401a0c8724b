package agent_test

import (
	"errors"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
)

var atCeiling = dvfsmodel.Setting{Core: 1700}

func TestTheSitesClocksAreSetAgainAfterAReset(t *testing.T) {
	for name, reset := range map[string]func(h *host, a *agent.Agent) error{
		"the driver is reloaded": func(h *host, _ *agent.Agent) error {
			return h.sims[0].InjectFault(gpu.FaultReload)
		},
		"somebody resets clocks": func(h *host, a *agent.Agent) error {
			apply(h, a, "r1", 1, free, 0) // a job that opted out
			return errors.Join(h.sims[0].Run(anyWork), h.sims[0].Release(gpu.CoreClock))
		},
		"the GPU is lost and back": func(h *host, _ *agent.Agent) error {
			if err := h.sims[0].InjectFault(gpu.FaultLost); err != nil {
				return err
			}
			sleep(time.Minute)
			return h.sims[0].Reboot()
		},
	} {
		t.Run(name, func(t *testing.T) {
			watchedHost(t, agent.WatchHooks{}, func(t *testing.T) *host {
				t.Helper()
				ceiling := atCeiling
				return siteHost(t, &ceiling)
			}, func(h *host, a *agent.Agent) {
				h.wantLocked(atCeiling, atCeiling)
				if err := reset(h, a); err != nil {
					t.Fatal(err)
				}
				sleep(2 * time.Minute)
				h.wantLocked(atCeiling, atCeiling)
			})
		})
	}
}
