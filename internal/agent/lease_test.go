package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
)

// leases returns leases of one size for both GPUs.
func (h *host) leases(watts, safe dvfsmodel.Watt) []agent.Lease {
	list := make([]agent.Lease, len(h.uuids))
	for i, uuid := range h.uuids {
		list[i] = agent.Lease{UUID: uuid, Watts: watts, Safe: safe}
	}
	return list
}

// lease puts leases in force.
func (h *host) lease(a *agent.Agent, watts, safe dvfsmodel.Watt, lasts time.Duration) {
	h.t.Helper()
	if err := a.Leases().Set(h.t.Context(), h.leases(watts, safe), time.Now().Add(lasts)); err != nil {
		h.t.Fatal(err)
	}
}

func TestALeaseHoldsWhoeverRunsAndIsGivenBackWhenTheBudgetEnds(t *testing.T) {
	h := newHost(t, twoGPUs)
	if err := h.sims[0].LimitPower(200); err != nil { // the administrator's, 250 as delivered
		t.Fatal(err)
	}
	a := h.started()
	h.lease(a, 180.7, 120, time.Hour)
	h.wantLimits("without runs", 180, 180)
	apply(h, a, "r1", 1, dvfsmodel.Setting{Core: 1600, Cap: 150}, 0, 1)
	h.wantLimits("under a run's own limit", 150, 150)
	h.lease(a, 130, 120, time.Hour)
	h.wantLimits("lowered under a run", 130, 130)
	if got := h.locked(0); got.Core != 1600 {
		t.Errorf("locked at %v", got)
	}
	h.lease(a, 220, 120, time.Hour)
	h.wantLimits("raised above the administrator's limit", 150, 150)
	end(a, 1)
	h.wantLimits("after the run", 200, 220)
	apply(h, a, "r2", 2, dvfsmodel.Setting{}, 0)
	h.lease(a, 140, 120, time.Hour)
	h.wantLimits("under a run at default clocks", 140, 140)
	if err := a.Leases().Set(t.Context(), nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	h.wantLimits("after the budget", 200, 250)
	h.wantFree()
	end(a, 2)
}

func TestALeaseThatEndsFallsToTheSafeShareAndNeverRises(t *testing.T) {
	watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
		h.lease(a, 200, 150, time.Minute)
		sleep(time.Minute + time.Millisecond)
		h.wantLimits("after the lease", 150, 150)
		h.lease(a, 120, 150, time.Minute)
		sleep(time.Minute + time.Millisecond)
		h.wantLimits("below the safe share", 120, 120)
	})
}

func TestAfterACrashARestartOrABootTheSafeShareIsInForce(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	h.lease(a, 200, 150, time.Hour)
	apply(h, a, "r1", 1, dvfsmodel.Setting{Core: 1600, Cap: 180}, 0)
	b := h.started() // the first one was killed
	h.wantLimits("after a crash", 150, 150)
	if got := h.locked(0); got.Core != 0 {
		t.Errorf("locked at %v", got)
	}
	h.lease(b, 200, 150, time.Hour)
	h.wantLimits("with a lease anew", 200, 200)
	if _, err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantLimits("after a stop", 250, 250)
	c := h.started()
	h.wantLimits("after a restart", 150, 150)
	c.Close()
	h.reboot(true)
	d := h.started()
	var err error
	if h.sims, err = h.library.Sims(); err != nil {
		t.Fatal(err)
	}
	h.wantLimits("after a boot", 150, 150)
	if _, err := d.Restore(t.Context(), "by hand"); err != nil {
		t.Fatal(err)
	}
	h.wantLimits("given back by hand", 250, 250)
	h.started()
	h.wantLimits("given back by hand, after a restart", 250, 250)
}

func TestWithoutAnAgentARestoreGivesABudgetsLimitsBackForGood(t *testing.T) {
	h := newHost(t, twoGPUs)
	h.claims = &claims{owners: make(map[string]*fuse)}
	h.lease(h.started(), 200, 150, time.Hour)
	clear(h.claims.owners) // it was killed
	if report := h.restoreBeside(); !report.Clean() {
		t.Fatalf("%+v", report)
	}
	h.wantLimits("after epd restore", 250, 250)
	h.started()
	h.wantLimits("after a restart", 250, 250)
}

// limitedByOthers returns a host under a budget on whose first GPU somebody else has set 220 W, above the
// lease.
func limitedByOthers(t *testing.T) (*host, *agent.Agent) {
	t.Helper()
	h := newHost(t, twoGPUs)
	a := h.started()
	h.lease(a, 150, 120, time.Hour)
	h.limit(0, 220)
	h.lease(a, 140, 120, time.Hour)
	return h, a
}

func TestSomebodyElsesLimitStays(t *testing.T) {
	h, a := limitedByOthers(t)
	h.wantLimits("with somebody else's", 220, 140)
	if err := h.sims[0].LimitPower(250); err != nil { // as it was before
		t.Fatal(err)
	}
	h.lease(a, 130, 120, time.Hour)
	h.wantLimits("once it is ours again", 130, 130)
	h.lease(a, 250, 120, time.Hour)
	h.wantLimits("with a lease as high as before", 250, 250)
	if err := h.sims[0].LimitPower(200); err != nil { // the administrator's
		t.Fatal(err)
	}
	h.lease(a, 220, 120, time.Hour)
	h.wantLimits("with the administrator's", 200, 220)
}

func TestSomebodyElsesLimitAboveTheLeaseIsSaidUntilTheBudgetEnds(t *testing.T) {
	h, a := limitedByOthers(t)
	if got := a.State().GPUs; !strings.Contains(got[0].Unsure, "220 W") || got[1].Unsure != "" {
		t.Errorf("said of the GPUs: %q and %q", got[0].Unsure, got[1].Unsure)
	}
	if err := a.Leases().Set(t.Context(), nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := a.State().GPUs; got[0].Unsure != "" {
		t.Errorf("said after the budget: %q", got[0].Unsure)
	}
	h.wantLimits("after the budget", 220, 250)
}

// A process that is killed at any step leaves no limit above the leases that it was told of last, the safe
// share and what was there before; and once the budget is over, everything is given back.
func TestNoCrashLeavesALimitAboveTheBudget(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 9))
		h := newHost(t, twoGPUs)
		f := &fuse{at: 40 + rng.IntN(400), after: rng.IntN(2) == 0}
		most, told := h.playLeases(h.agent(f), f, rng)
		if told {
			h.site = most // at any moment from now on
		}
		b := h.started()
		h.checkLimits()
		h.site = nil
		if err := b.Leases().Set(t.Context(), nil, time.Time{}); err != nil {
			t.Fatal(err)
		}
		h.wantLimits(fmt.Sprint("seed ", seed, ": after the budget"), 250, 250)
		h.wantFree()
	}
}

// playLeases has an agent open and close runs and take leases until it dies, and returns the highest limits
// that there may be then, and whether any lease was in force.
func (h *host) playLeases(a *agent.Agent, f *fuse, rng *rand.Rand) (most []dvfsmodel.Watt, told bool) {
	ctx := h.t.Context()
	_, _ = a.Start(ctx)
	all := dvfsmodel.Watt(250)
	for step := range 12 {
		if f.dead {
			break
		}
		switch rng.IntN(3) {
		case 0:
			run := h.run(fmt.Sprint("r", step), uint32(step+1), dvfsmodel.Setting{Core: 1600, Cap: 160}, rng.IntN(2))
			_, _ = a.Apply(ctx, run)
		case 1:
			_, _ = a.End(ctx, uint32(1+rng.IntN(step+1)), "n1")
		default:
			watts := dvfsmodel.Watt(110 + rng.IntN(130))
			list := h.leases(watts, 100+dvfsmodel.Watt(rng.IntN(int(watts)-100)))
			if err := a.Leases().Set(ctx, list, time.Now().Add(time.Hour)); err == nil {
				told, all = true, watts
			} else {
				all = max(all, watts)
			}
		}
		for _, limit := range h.limits() {
			if limit > all {
				h.t.Fatalf("step %d: limits %v, at most %v", step, h.limits(), all)
			}
		}
	}
	return []dvfsmodel.Watt{all, all}, told
}

// budgeted is a host under a budget, what it was told last, and who looks after it.
type budgeted struct {
	*host
	agent   *agent.Agent
	fuse    *fuse
	stop    func() // ends its watch
	told    agent.Lease
	ends    time.Time
	unknown bool // the agent may know no share: it didn't hear of one, or its files are spoilt
}

// begin starts an agent and its watch.
func (b *budgeted) begin() {
	clear(b.claims.owners)
	b.fuse = &fuse{}
	b.agent = b.host.agent(b.fuse)
	_, _ = b.agent.Start(b.t.Context())
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	w := agent.WatchHooks{
		Slurm: alive, Processes: alive, OnClosed: func(agent.ClosedRun) {}, OnProblem: func(error) {},
	}
	go func() { b.agent.Watch(ctx, w); close(done) }()
	b.stop = func() { cancel(); <-done }
}

// most returns the limit that no GPU may rise above now.
func (b *budgeted) most() dvfsmodel.Watt {
	switch {
	case b.unknown:
		return 250
	case time.Now().Before(b.ends):
		return b.told.Watts
	}
	return b.told.Safe
}

// bound has every call of the driver checked from now on: no limit is above what is allowed now or later, or
// what it is already, or a limit that was allowed before.
func (b *budgeted) bound(also dvfsmodel.Watt) {
	b.site = b.limits()
	for i := range b.site {
		b.site[i] = max(b.site[i], b.most(), b.told.Safe, also)
	}
}

// lease tells the agent of leases. Ones that it didn't hear of whole may be in force or not.
func (b *budgeted) lease(rng *rand.Rand) {
	before, unheard := b.most(), b.unknown
	watts := dvfsmodel.Watt(110 + rng.IntN(130))
	b.told = agent.Lease{Watts: watts, Safe: 100 + dvfsmodel.Watt(rng.IntN(int(watts)-100))}
	b.ends, b.unknown = time.Now().Add(time.Duration(1+rng.IntN(20))*time.Second), false
	b.bound(before)
	if b.fuse.dead = b.fuse.dead || rng.IntN(8) == 0; !b.fuse.dead && rng.IntN(4) == 0 {
		b.fuse.at, b.fuse.after = b.fuse.steps+1+rng.IntN(30), rng.IntN(2) == 0
	}
	_ = b.agent.Leases().Set(b.t.Context(), b.leases(b.told.Watts, b.told.Safe), b.ends)
	b.fuse.mu.Lock()
	b.fuse.at = 0
	b.fuse.mu.Unlock()
	if b.fuse.dead { // it may have heard or not
		b.told.Watts, b.told.Safe = max(before, b.told.Watts), max(before, b.told.Safe)
		b.unknown = unheard
	}
}

// faults has drivers fail for a while.
func (b *budgeted) fail(rng *rand.Rand) {
	ops := []gpu.Op{gpu.OpSet, gpu.OpRelease, gpu.OpRead, gpu.OpClocks}
	kinds := []gpu.FaultKind{gpu.FaultPermission, gpu.FaultUnsupported, gpu.FaultTransient}
	b.faults.Add(gpu.Fault{
		GPU: rng.IntN(3) - 1, Op: ops[rng.IntN(len(ops))], Kind: kinds[rng.IntN(len(kinds))],
		After: rng.IntN(4), Count: 1 + rng.IntN(4),
	})
}

// crash has another agent begin where the last one was killed, some of whose files can't be read.
func (b *budgeted) crash(rng *rand.Rand) {
	b.fuse.dead = true
	b.stop()
	b.ends = time.Time{}
	spoilt := 0
	for _, uuid := range b.uuids {
		for _, ending := range []string{".json", ".baseline"} {
			if name := uuid + ending; rng.IntN(6) == 0 && len(b.journal.files(name)) > 0 {
				b.journal.put(name, `{"schema":1,"uu`)
				spoilt++
			}
		}
		entries := b.journal.files(uuid + ".json")
		b.unknown = b.unknown || spoilt > 1 || spoilt > 0 && len(entries) == 0
	}
	b.bound(0)
	b.begin()
}

// Whatever fails, no limit rises above its lease or, once that has ended, the safe share; and as soon as
// drivers do as they are told, all are there.
func TestNoFaultRaisesALimitAboveItsLease(t *testing.T) {
	fell := 0
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 11))
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			b := &budgeted{host: newHost(t, twoGPUs), unknown: true}
			b.claims = &claims{owners: make(map[string]*fuse)}
			b.begin()
			b.lease(rng)
			for step := range 25 {
				b.bound(0)
				id, job := fmt.Sprint("r", step), uint32(step+1)
				switch rng.IntN(6) {
				case 0:
					want := dvfsmodel.Setting{Core: 1600, Cap: dvfsmodel.Watt(100 + rng.IntN(100))}
					_, _ = b.agent.Apply(t.Context(), b.run(id, job, want, rng.IntN(2)))
				case 1:
					_, _ = b.agent.End(t.Context(), uint32(1+rng.IntN(step+1)), "n1")
				case 2, 3:
					b.fail(rng)
				case 4:
					b.lease(rng)
				default:
					sleep(time.Duration(rng.IntN(30_000)) * time.Millisecond)
				}
				if b.fuse.dead {
					b.crash(rng)
				}
			}
			b.faults.Clear()
			sleep(2 * time.Minute)
			for i, limit := range b.limits() {
				if most := b.most(); limit > most {
					t.Errorf("seed %d: GPU %d has a power limit of %v W, its share is %v", seed, i, limit, most)
				} else if most < 250 {
					fell++
				}
			}
			b.stop()
		})
	}
	if fell < 150 {
		t.Errorf("%d GPUs came to their shares: too few to tell", fell)
	}
}

func TestALimitThatTheDriverRefusesIsTriedAgainAMinuteLater(t *testing.T) {
	watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
		sleep(time.Second) // the first sweep is over, which would try, too
		h.faults.Add(gpu.Fault{GPU: 0, Op: gpu.OpSet, Kind: gpu.FaultPermission, Count: 1})
		lease := func() error {
			return a.Leases().Set(h.t.Context(), h.leases(150, 120), time.Now().Add(time.Hour))
		}
		if err := lease(); !errors.Is(err, gpu.ErrPermission) {
			h.t.Errorf("the first lease: %v", err)
		}
		h.wantLimits("with one that is refused", 250, 150)
		writes := a.State().GPUs[0].Writes + a.State().GPUs[1].Writes
		sleep(30 * time.Second)
		if err := lease(); err != nil {
			h.t.Errorf("half a minute later: %v", err)
		}
		if again := a.State().GPUs[0].Writes + a.State().GPUs[1].Writes; again != writes {
			h.t.Errorf("%d writes half a minute later, before %d", again, writes)
		}
		sleep(31 * time.Second)
		if err := lease(); err != nil {
			h.t.Errorf("a minute later: %v", err)
		}
		h.wantLimits("a minute later", 150, 150)
	})
}
