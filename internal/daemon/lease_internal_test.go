package daemon

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/budget"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// leaseGiver is a controller that gives leases of a budget of the cluster, and can be out of reach.
type leaseGiver struct {
	ledger // does the rest

	mu     sync.Mutex
	of     *budget.Ledger
	watts  dvfsmodel.Watt // 0: there is no budget
	before dvfsmodel.Watt // until it was changed
	since  time.Time
	cut    map[string]time.Time // nodes that don't reach it until then
	heard  map[string]time.Time
}

var leaseTimes = budget.Times{Lease: 3 * time.Second, Every: time.Second}

func (l *leaseGiver) Report(context.Context, *epdapi.NodeReport) (epdapi.ReportAnswer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return epdapi.ReportAnswer{EveryS: 1, Budget: l.watts > 0}, nil
}

var errCut = errors.New("out of reach")

func (l *leaseGiver) Lease(_ context.Context, r *epdapi.LeaseRequest) (epdapi.LeaseAnswer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.cut[r.Node]) {
		return epdapi.LeaseAnswer{}, errCut
	}
	l.heard[r.Node] = time.Now()
	answer := epdapi.LeaseAnswer{EveryS: 1, ForS: leaseTimes.Lease.Seconds()}
	if l.watts == 0 {
		return answer, nil
	}
	told := &budget.Exchange{Node: r.Node, Stopping: r.Stopping}
	for i := range r.GPUs {
		g := &r.GPUs[i]
		told.GPUs = append(told.GPUs, budget.GPU{
			UUID: g.UUID, Min: g.Min, Max: g.Max, Board: 300, InForce: g.InForce, Prior: g.Prior,
		})
	}
	for _, lease := range l.of.Exchange(time.Now(), told) {
		answer.Leases = append(answer.Leases, epdapi.Lease(lease))
	}
	return answer, nil
}

// set changes the budget.
func (l *leaseGiver) set(watts dvfsmodel.Watt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.watts, l.since = l.watts, watts, time.Now()
	l.scopes()
}

func (l *leaseGiver) scopes() {
	l.of.SetScopes([]budget.Scope{{
		Name: "cluster", Schedule: budget.Schedule{Steps: []budget.Step{{Watts: l.watts}}},
		Includes: func(string) bool { return true },
	}})
}

// restart forgets all.
func (l *leaseGiver) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of = budget.NewLedger(leaseTimes)
	l.of.Expect(time.Now(), map[string]dvfsmodel.Watt{"n0": 600, "n1": 600, "n2": 600},
		func(string) bool { return false })
	l.scopes()
}

// leased is a node with two GPUs of 120 to 300 W.
type leased struct {
	daemon *AgentServer
	sims   []*gpu.Sim
	stop   func()
}

func openLeased(t *testing.T, dir, name string, l *leaseGiver) *leased {
	t.Helper()
	library, err := gpu.OpenSim("sim:2,model=V100,busy", config.BuiltinProfiles().Board, &gpu.SimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := &leased{}
	if n.sims, err = library.Sims(); err != nil {
		t.Fatal(err)
	}
	var folders [2]statedir.FS
	for i, folder := range []string{"journal", "runs"} {
		if folders[i], err = statedir.OpenFolder(filepath.Join(dir, name+folder)); err != nil {
			t.Fatal(err)
		}
	}
	outbox, err := spool.Open(filepath.Join(dir, name+"spool"), nil)
	if err != nil {
		t.Fatal(err)
	}
	n.daemon = NewAgentServer(Options{
		Node: name, Controller: l, Lease: l.Lease, Spool: outbox, Simulated: true,
		Agent: agent.New(agent.Options{Journal: folders[0], Runs: folders[1], Library: library, Boot: "boot"}),
	})
	n.daemon.Start(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { n.daemon.Run(ctx); close(done) }()
	n.stop = func() { cancel(); <-done }
	return n
}

// limits are those that the drivers keep.
func (n *leased) limits(t *testing.T) (sum dvfsmodel.Watt) {
	t.Helper()
	for _, s := range n.sims {
		limit, err := s.PowerLimit()
		if err != nil {
			t.Fatal(err)
		}
		sum += limit
	}
	return sum
}

// Real agents with simulated GPUs, whose drivers' limits are looked at ten times a second while budgets
// change, nodes are cut off, the controller begins anew and jobs come and go. Five seconds after a change
// nothing is above the budget but what nobody can lower.
func TestAgentsKeepABudgetWhateverIsCutOffAndGiveLimitsBack(t *testing.T) {
	for seed := range uint64(2) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 6))
			l := &leaseGiver{cut: make(map[string]time.Time), heard: make(map[string]time.Time)}
			l.restart()
			nodes := make(map[string]*leased)
			for i := range 3 {
				name := fmt.Sprint("n", i)
				nodes[name] = openLeased(t, dir, name, l)
			}
			l.set(1500)
			for event := range 30 {
				l.disturb(t, rng, nodes, event)
				for range 20 + rng.IntN(80) {
					time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in a bubble
					l.check(t, nodes)
				}
			}
			l.set(0)
			wantAllLimits(t, "after the budget", nodes)
			l.set(1000)
			time.Sleep(20 * time.Second) //nolint:forbidigo // in a bubble
			for _, n := range nodes {
				n.stop()
			}
			wantAllLimits(t, "after the stop", nodes)
		})
	}
}

// wantAllLimits demands that soon all limits are as before.
func wantAllLimits(t *testing.T, when string, nodes map[string]*leased) {
	t.Helper()
	time.Sleep(20 * time.Second) //nolint:forbidigo // in a bubble
	for name, n := range nodes {
		if got := n.limits(t); got != 600 {
			t.Errorf("%s: %s: limits of %v W together, want 600", name, when, got)
		}
	}
}

// disturb draws another budget, a node that is cut off, a controller that begins anew, or a job.
func (l *leaseGiver) disturb(t *testing.T, rng *rand.Rand, nodes map[string]*leased, event int) {
	t.Helper()
	name := fmt.Sprint("n", rng.IntN(3))
	until := time.Now().Add(time.Duration(1+rng.IntN(15)) * time.Second)
	switch rng.IntN(5) {
	case 0, 1:
		l.set(dvfsmodel.Watt(750 + rng.IntN(1100)))
	case 2:
		l.mu.Lock()
		l.cut[name] = until
		l.mu.Unlock()
	case 3:
		l.restart()
	default:
		a := nodes[name].daemon.options.Agent
		ids := a.GPUs().Identities()
		run := live.Run{
			ID: fmt.Sprint("r", event), Job: uint32(event + 1), Node: name, Started: time.Now(),
			Setting: dvfsmodel.Setting{Core: 945}, GPUs: []string{ids[0].UUID, ids[1].UUID},
		}
		if _, err := a.Apply(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
}

// check compares the limits in force with the budget, and with what can't be lowered: nodes out of reach.
func (l *leaseGiver) check(t *testing.T, nodes map[string]*leased) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var taken, floor dvfsmodel.Watt
	for name, n := range nodes {
		limits := n.limits(t)
		taken += limits
		if time.Since(l.heard[name]) > leaseTimes.Lease/2 {
			floor += limits
		} else {
			floor += 240
		}
	}
	allowed := max(l.watts, floor)
	const settle = 5 * time.Second
	if time.Since(l.since) <= settle && (l.before == 0 || l.before > allowed) {
		return
	}
	if taken > allowed {
		t.Fatalf("%v W are allowed by limits, the budget is %v, nobody can lower %v", taken, l.watts, floor)
	}
}
