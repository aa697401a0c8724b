package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/nodepower"
	"github.com/epplan/epplan/live"
)

// learnEvery is how often the GPUs of a run are read that is to be learnt from.
const learnEvery = sampleEvery / 10

// poller reads GPUs and what the node uses beside them, tells the runs, and acts on what
// it finds.
type poller struct {
	gpus       *GPUSet
	runs       *RunSet
	reconciler *reconciler
	host       *nodepower.Meter // nil: what the node uses isn't measured
	// opened wakes its loop when a run begins, as the run's energy counts from its start.
	opened chan struct{}

	meterMu sync.Mutex // held while the node's energy is read and shared

	mu        sync.Mutex           // guards what follows; nothing is locked after it
	last      map[string]time.Time // when a GPU was read last because its time had come, by UUID
	unmetered bool                 // the last sample of the node's energy failed
}

// begin has the GPUs of a run that begins read at once, however lately they were for
// another run.
func (p *poller) begin(uuids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, uuid := range uuids {
		delete(p.last, uuid)
	}
	notify(p.opened)
}

// notify tells a loop that there is news, unless it is told already.
func notify(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}

// interval returns how long until the next sample: as often as the run that learns
// needs.
func (p *poller) interval() time.Duration {
	if len(p.runs.open(func(r *openRun) bool { return r.Learning })) > 0 {
		return learnEvery
	}
	return sampleEvery
}

// sampleDue samples the GPUs whose time has come.
func (p *poller) sampleDue(ctx context.Context, trouble func(error)) {
	due := p.takeDue(time.Now())
	if len(due) == 0 {
		return
	}
	if err := errors.Join(p.revertAtRisk(ctx, p.sample(due)), p.meterHostReporting()); err != nil {
		trouble(err)
	}
}

// takeDue returns the GPUs whose time has come, which are taken as read.
func (p *poller) takeDue(now time.Time) []*managedGPU {
	every := make(map[string]time.Duration) // by UUID, of those with runs
	p.runs.eachOpen(func(r *openRun) {
		for _, uuid := range r.GPUs {
			switch _, known := every[uuid]; {
			case r.Learning:
				every[uuid] = learnEvery
			case !known:
				every[uuid] = sampleEvery
			}
		}
	})
	cards := p.gpus.byUUIDs(slices.Collect(maps.Keys(every)))
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(cards, func(c *managedGPU) bool {
		if now.Sub(p.last[c.uuid]) < every[c.uuid]-learnEvery/2 {
			return true
		}
		p.last[c.uuid] = now
		return false
	})
}

// sampleResult is what a sample says about a card; a nil error says nothing.
type sampleResult struct {
	gpu  *managedGPU
	util float64 // 0 where it couldn't be read
	err  error
}

// sample reads cards side by side and hands the readings to the runs on them.
func (p *poller) sample(cards []*managedGPU) []sampleResult {
	found := make([]sampleResult, len(cards))
	p.gpus.inParallel(cards, func(i int, c *managedGPU) {
		util, err := p.sampleOne(c)
		found[i] = sampleResult{c, util, err}
	})
	return found
}

// sampleOne reads a card for the runs on it. The error says that it couldn't be
// read, or that somebody else sets its clocks.
func (p *poller) sampleOne(c *managedGPU) (util float64, err error) {
	reading, err := call(c, gpu.Device.Read)
	p.runs.addReading(c, reading, err)
	if err != nil {
		return 0, err
	}
	return reading.Utilisation, c.checkLock(&reading)
}

// revertAtRisk puts the runs on cards to default clocks where a sample says so.
func (p *poller) revertAtRisk(ctx context.Context, found []sampleResult) error {
	var errs []error
	for _, f := range found {
		switch {
		case f.err == nil:
			continue
		case errors.Is(f.err, gpu.ErrReloaded):
			errs = append(errs, p.gpus.open())
		case isLockError(f.err):
			errs = append(errs, p.reconciler.reactToLock(ctx, f.gpu, f.err))
			continue
		case errors.Is(f.err, gpu.ErrLost):
		default:
			errs = append(errs, f.err) // the next sample may go well
			continue
		}
		errs = append(errs, p.reconciler.reconcile(ctx,
			p.reconciler.giveUp([]*managedGPU{f.gpu}, notLockedReason(f.err))))
	}
	return errors.Join(errs...)
}

// meterHost shares what the node's CPUs and memory used since the last call
// among the runs that are open. It is called before a run opens or closes, and
// again and again in between.
func (p *poller) meterHost() error {
	if p.host == nil {
		return nil
	}
	p.meterMu.Lock()
	defer p.meterMu.Unlock()
	now := time.Now()
	step, err := p.host.Next(now)
	if err != nil {
		return fmt.Errorf("the node's energy isn't measured: %w", err)
	}
	p.runs.addHost(now, step)
	return nil
}

// meterHostReporting meters the host and says what fails, once for many failures in a
// row.
func (p *poller) meterHostReporting() error {
	err := p.meterHost()
	p.mu.Lock()
	defer p.mu.Unlock()
	again := p.unmetered
	if p.unmetered = err != nil; again {
		return nil
	}
	return err
}

// counters returns the energy counters of a run's GPUs, read side by side, by UUID; those
// that aren't known are left out.
func (p *poller) counters(run *live.Run) map[string]dvfsmodel.Joule {
	cards := p.gpus.byUUIDs(run.GPUs)
	readings := make([]dvfsmodel.Joule, len(cards))
	p.gpus.inParallel(cards, func(i int, c *managedGPU) {
		readings[i] = -1
		if r, err := call(c, gpu.Device.Read); err == nil && gpu.IsMeasured(r.Energy) {
			readings[i] = r.Energy
		}
	})
	energy := make(map[string]dvfsmodel.Joule)
	for i, c := range cards {
		if readings[i] >= 0 {
			energy[c.uuid] = readings[i]
		}
	}
	return energy
}
