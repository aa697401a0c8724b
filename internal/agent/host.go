package agent

import (
	"fmt"
	"time"
)

// meterHost shares what the node's CPUs and memory used since the last call
// among the runs that are open. It is called before a run opens or closes, and
// again and again in between.
func (a *Agent) meterHost() error {
	if a.options.Host == nil {
		return nil
	}
	a.meterMu.Lock()
	defer a.meterMu.Unlock()
	now := time.Now()
	step, err := a.options.Host.Next(now)
	if err != nil {
		return fmt.Errorf("the node's energy isn't measured: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for run, part := range a.hostParts() {
		run.sampler.AddHost(now, step, part)
	}
	return nil
}

// meterHostReporting meters the host and says what fails, once for many failures in a
// row.
func (a *Agent) meterHostReporting() error {
	err := a.meterHost()
	a.mu.Lock()
	defer a.mu.Unlock()
	again := a.unmetered
	if a.unmetered = err != nil; again {
		return nil
	}
	return err
}

// hostParts are the parts of the node that open runs have: its GPUs among those
// that are in use. A GPU that several runs share is shared by them alike. The
// caller holds mu.
func (a *Agent) hostParts() map[*openRun]float64 {
	on := make(map[string]int)
	for _, r := range a.runs {
		for _, uuid := range r.GPUs {
			if !r.ended {
				on[uuid]++
			}
		}
	}
	parts := make(map[*openRun]float64)
	for _, r := range a.runs {
		if r.ended {
			continue
		}
		part := 0.0
		for _, uuid := range r.GPUs {
			part += 1 / float64(on[uuid]*len(on))
		}
		parts[r] = part
	}
	return parts
}
