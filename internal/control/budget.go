package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/budget"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/statedir"
)

// Exchanges of leases are so many to a lease, and as far apart where there is no budget.
const (
	exchangesPerLease = 3
	withoutBudget     = 15 * time.Second
	// refreshEvery is how often it is looked which nodes there are, and where.
	refreshEvery = time.Second
)

// Events are at most so many, and begin within a year.
const (
	maxEvents   = 1000
	eventsAhead = 366 * 24 * time.Hour
	maxRamp     = 24 * time.Hour
	maxBudget   = 1e12 // W
)

// clusterScope is the name of the budget of all nodes.
const clusterScope = "cluster"

// PowerBudget keeps what the nodes may take within the configuration's budgets and the events that lower
// them. Its methods may be called by several goroutines.
type PowerBudget struct {
	controller *Controller
	file       string // of the events; "": they are lost at the end
	// Damage says why events of before are lost; nil: they aren't.
	Damage error

	mu        sync.Mutex
	ledger    *budget.Ledger
	times     budget.Times
	settings  *Settings // by which the scopes were made
	kinds     []string  // of the scopes
	refreshed time.Time
	began     time.Time // when the first agent asked
	knowsAll  bool      // nodes
	events    []epdapi.BudgetEvent
}

// read reads the events of before.
func (b *PowerBudget) read() error {
	if b.file == "" {
		return nil
	}
	text, err := os.ReadFile(b.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &b.events)
	}
	if err != nil {
		return fmt.Errorf("events that lower power budgets are lost, %s can't be read: %w", b.file, err)
	}
	return nil
}

// isEnforced reports whether a node's GPUs are under a budget that is kept.
func (b *PowerBudget) isEnforced(s *Settings) bool {
	return s.Budget.Mode == live.Enforce && s.Budget.IsSet()
}

// refresh makes scopes, and says which nodes there are, where that isn't known or may have changed. The
// caller has the lock.
func (b *PowerBudget) refresh(now time.Time, s *Settings) {
	lease := time.Duration(s.Budget.Lease * float64(time.Second))
	times := budget.Times{Lease: lease, Every: lease / exchangesPerLease}
	switch age := now.Sub(b.refreshed); {
	case b.ledger == nil:
		b.ledger, b.times = budget.NewLedger(times), times
	case times != b.times:
		b.ledger.SetTimes(times)
		b.times = times
	case b.settings == s && age >= 0 && age < refreshEvery:
		return
	}
	b.settings, b.refreshed = s, now
	nodes := b.nodes(s)
	b.ledger.Expect(now, nodes.most, func(node string) bool { return nodes.off[node] })
	var scopes []budget.Scope
	b.kinds = nil
	add := func(kind, name string, watts float64, includes func(string) bool) {
		b.kinds = append(b.kinds, kind)
		scope := budget.Scope{Name: name, Includes: includes, Schedule: b.eventsOf(name)}
		if watts > 0 {
			scope.Schedule.Steps = []budget.Step{{Watts: dvfsmodel.Watt(watts)}}
		}
		scopes = append(scopes, scope)
	}
	add("cluster", clusterScope, s.Budget.Cluster, func(string) bool { return true })
	if s.budgetSeries != nil {
		scopes[0].Schedule.Steps = s.budgetSeries.Steps(now, dvfsmodel.Watt(s.Budget.Cluster))
	}
	for _, partition := range slices.Sorted(maps.Keys(s.Budget.Partitions)) {
		add("partition", partition, s.Budget.Partitions[partition], func(node string) bool {
			return slices.Contains(nodes.partitions[node], partition)
		})
	}
	for _, list := range slices.Sorted(maps.Keys(s.Budget.Nodes)) {
		add("nodes", list, s.Budget.Nodes[list], func(node string) bool {
			return slices.Contains(s.Budget.NodesOf(list), node)
		})
	}
	b.ledger.SetScopes(scopes)
}

// eventsOf returns a schedule of a scope's events alone.
func (b *PowerBudget) eventsOf(scope string) (s budget.Schedule) {
	for i := range b.events {
		if e := &b.events[i]; e.Scope == scope {
			s.Events = append(s.Events, budget.Event{
				Watts: e.Watts, From: e.From, Until: e.Until, Ramp: time.Duration(e.RampS * float64(time.Second)),
			})
		}
	}
	return s
}

// knownNodes are the nodes that there are: what each takes at most until its agent tells, and its partitions.
type knownNodes struct {
	most       map[string]dvfsmodel.Watt
	partitions map[string][]string
	off        map[string]bool
}

// nodes returns the nodes with GPUs of which Slurm or an agent told, but for those that are powered down.
func (b *PowerBudget) nodes(s *Settings) knownNodes {
	known := knownNodes{make(map[string]dvfsmodel.Watt), make(map[string][]string), make(map[string]bool)}
	for node, report := range b.controller.reports.All() {
		known.most[node] = 0
		for i := range report.Message.GPUs {
			model := report.Message.GPUs[i].Model
			known.most[node] += s.HostPower(model) + boardPower(s, model)
		}
	}
	all := b.controller.Jobs.Nodes()
	for i := range all {
		n := &all[i]
		known.partitions[n.Name] = n.Partitions
		gpus := n.GPUCount()
		switch {
		case n.State.IsPoweredDown() && !n.State.Is("POWERING_UP"):
			known.off[n.Name] = true
			delete(known.most, n.Name)
		case gpus > 0 && known.most[n.Name] == 0:
			known.most[n.Name] = dvfsmodel.Watt(gpus) * (s.HostPower("") + boardPower(s, ""))
		}
	}
	return known
}

// unknownBoard is what a GPU of which nothing is known takes at most, W.
const unknownBoard dvfsmodel.Watt = 1000

// boardPower returns what a GPU of a model takes at most whatever its limit is.
func boardPower(s *Settings, model string) dvfsmodel.Watt {
	p := s.Profiles.Find(model)
	switch {
	case p == nil:
	case p.PowerLimit.Max > 0:
		return p.PowerLimit.Max
	case p.BusyW > 0:
		const above = 1.25
		return p.BusyW * above
	}
	return unknownBoard
}

// Lease takes what a node's agent tells of its GPUs, and returns the power limits that they may have. The
// error is [ErrRequest].
func (b *PowerBudget) Lease(_ context.Context, r *epdapi.LeaseRequest) (epdapi.LeaseAnswer, error) {
	if err := checkLease(r); err != nil {
		return epdapi.LeaseAnswer{}, err
	}
	c := b.controller
	s := c.settings.Load()
	answer := epdapi.LeaseAnswer{EveryS: withoutBudget.Seconds(), Leases: []epdapi.Lease{}}
	if !b.isEnforced(s) {
		return answer, nil
	}
	told := b.exchange(s, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := c.options.Clock()
	if !b.knowsAll && b.knowsNodes(now) {
		b.knowsAll, b.settings = true, nil // by which the ledger hears of them
	}
	b.refresh(now, s)
	leases := b.ledger.Exchange(now, told)
	if !b.knowsAll {
		return epdapi.LeaseAnswer{}, errUnknownNodes
	}
	for _, l := range leases {
		answer.Leases = append(answer.Leases, epdapi.Lease(l))
	}
	answer.EveryS, answer.ForS = b.times.Every.Seconds(), b.times.Lease.Seconds()
	return answer, nil
}

// errUnknownNodes keeps an agent at its safe shares: nodes that nobody knows of yet may take any part of the
// budget.
var errUnknownNodes = errors.New("no leases yet: this controller has just begun and doesn't know all nodes")

// knowsNodes reports whether all nodes are known: Slurm has listed them, or where there is no Slurm every
// agent has had the time to ask.
func (b *PowerBudget) knowsNodes(now time.Time) bool {
	if b.began.IsZero() {
		b.began = now
	}
	if b.controller.options.Resolve != nil {
		_, nodes := b.controller.Jobs.Status()
		return !nodes.At.IsZero()
	}
	return now.Sub(b.began) > b.times.Lease+b.times.Every
}

// exchange says what an agent tells in the ledger's words, with what is known of the jobs.
func (b *PowerBudget) exchange(s *Settings, r *epdapi.LeaseRequest) *budget.Exchange {
	told := &budget.Exchange{Node: r.Node, Stopping: r.Stopping}
	for i := range r.GPUs {
		g := &r.GPUs[i]
		told.Host += s.HostPower(g.Model)
		board := max(g.Max, g.Power)
		if board == 0 || g.Max == 0 {
			board = max(board, boardPower(s, g.Model))
		}
		out := budget.GPU{
			UUID: g.UUID, Min: g.Min, Max: g.Max, Board: board, InForce: g.InForce, Prior: g.Prior, Power: g.Power,
		}
		if g.Job != 0 {
			out.Curve, out.Need = decide.UnderLimits(b.controller.decider, slurm.JobID(g.Job), r.Node)
		}
		if g.Used && out.Curve == nil {
			out.Curve = usualCurve(g)
		}
		told.GPUs = append(told.GPUs, out)
	}
	return told
}

// usualCurve says how much longer a job takes under limits of which nothing is known: with the third root of
// what it lacks, as power rises with the third power of clocks. It wants what it draws, or, where its limit
// may hold it back, as much as there is.
func usualCurve(g *epdapi.LeaseGPU) (curve []budget.Slowdown) {
	const steps, atLimit, above = 16, 0.95, 1.05
	wants := g.Power * above
	if g.Power == 0 || g.Power > atLimit*g.InForce {
		wants = g.Max
	}
	wants = min(max(wants, g.Min), g.Max)
	for i := range steps + 1 {
		watts := g.Min + (wants-g.Min)*dvfsmodel.Watt(i)/steps
		if watts > 0 {
			curve = append(curve, budget.Slowdown{Watts: watts, Times: math.Cbrt(float64(wants / watts))})
		}
	}
	return curve
}

// checkLease reports whether an agent can have asked for leases so.
func checkLease(r *epdapi.LeaseRequest) error {
	if err := slurm.ValidNode(r.Node); err != nil {
		return fmt.Errorf("%w: leases are of a node: %w", ErrRequest, err)
	}
	if len(r.GPUs) > epdapi.MaxReportGPUs {
		return fmt.Errorf("%w: leases of %d GPUs, want at most %d", ErrRequest, len(r.GPUs), epdapi.MaxReportGPUs)
	}
	for i := range r.GPUs {
		g := &r.GPUs[i]
		for _, w := range []dvfsmodel.Watt{g.Min, g.Max, g.InForce, g.Prior, g.Power} {
			if !(w >= 0 && w <= maxGPUWatts) || g.Min > g.Max {
				return fmt.Errorf("%w: GPU %s tells of powers that no GPU has", ErrRequest,
					slurm.Printable(g.UUID, epdapi.MaxModelName))
			}
		}
	}
	return nil
}

// watch takes what a report tells of a node whose budget is only watched. The caller doesn't have the lock.
func (b *PowerBudget) watch(s *Settings, r *epdapi.NodeReport) {
	if !s.Budget.IsSet() || b.isEnforced(s) {
		return
	}
	told := &budget.Exchange{Node: r.Node}
	for i := range r.GPUs {
		g := &r.GPUs[i]
		told.Host += s.HostPower(g.Model)
		told.GPUs = append(told.GPUs, budget.GPU{
			UUID: g.UUID, Min: g.Cap, Max: g.Cap, Board: boardPower(s, g.Model), InForce: g.Cap, Prior: g.Cap,
			Power: dvfsmodel.Watt(g.Power),
		})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.controller.options.Clock()
	b.refresh(now, s)
	b.ledger.Exchange(now, told)
}

// Shortfall returns how many watts the budgets that a node is under lack, with all GPUs at their least
// limits.
func (b *PowerBudget) Shortfall(node string) (watts dvfsmodel.Watt) {
	s := b.controller.settings.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isEnforced(s) || !b.knowsAll {
		return 0
	}
	b.refresh(b.controller.options.Clock(), s)
	return b.ledger.Shortfall(node)
}

// List returns the budgets with what the nodes take, and the events to come.
func (b *PowerBudget) List() epdapi.BudgetList {
	c := b.controller
	s := c.settings.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := c.options.Clock()
	b.forget(now)
	list := epdapi.BudgetList{
		At: now, Mode: s.Budget.Mode, Scopes: []epdapi.BudgetScope{}, Events: slices.Clone(b.events),
	}
	if list.Events == nil {
		list.Events = []epdapi.BudgetEvent{}
	}
	if !s.Budget.IsSet() {
		return list
	}
	b.refresh(now, s)
	for i, scope := range b.ledger.Status(now) {
		if scope.Name == clusterScope && i == 0 && math.IsInf(float64(scope.Budget), 1) &&
			len(b.eventsOf(clusterScope).Events) == 0 {
			continue // the site has budgets of parts alone
		}
		list.Scopes = append(list.Scopes, scopeOf(b.kinds[i], &scope))
	}
	return list
}

// budgetList returns the budgets, nil where there are none.
func (b *PowerBudget) budgetList() *epdapi.BudgetList {
	if list := b.List(); len(list.Scopes) > 0 {
		return &list
	}
	return nil
}

// scopeOf returns a scope as it is told.
func scopeOf(kind string, s *budget.ScopeStatus) epdapi.BudgetScope {
	out := epdapi.BudgetScope{
		Scope:     s.Name,
		Kind:      kind,
		InForce:   s.Taken,
		Measured:  s.Measured,
		Short:     s.Short,
		GPUs:      s.GPUs,
		Slowed:    s.Slowed,
		Unlimited: emptyIfNil(s.Unlimited),
		Ignoring:  emptyIfNil(s.Ignoring),
		Silent:    emptyIfNil(s.Silent),
	}
	if !math.IsInf(float64(s.Budget), 1) {
		out.Budget, out.Spare = live.Known(float64(s.Budget)), live.Known(float64(s.Budget-s.Taken))
	}
	if s.Slowed > 0 {
		out.Slowdown = live.Known(s.Times / float64(s.Slowed))
	}
	return out
}

func emptyIfNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Set adds an event. The error is [ErrRequest] for one that can't be.
func (b *PowerBudget) Set(e *epdapi.BudgetEvent, by string) (epdapi.BudgetEvent, error) {
	c := b.controller
	s := c.settings.Load()
	now := c.options.Clock()
	set := *e
	set.Scope = cmp.Or(set.Scope, clusterScope)
	if set.From.IsZero() {
		set.From = now
	}
	if err := checkEvent(&set, &s.Budget, now); err != nil {
		return set, err
	}
	set.ID, set.By, set.Set = strings.ToLower(rand.Text()[:8]), by, now
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(now)
	if len(b.events) >= maxEvents {
		return set, fmt.Errorf("%w: there are %d events already", ErrRequest, len(b.events))
	}
	return set, b.putEvents(append(slices.Clone(b.events), set))
}

// Cancel takes an event back. The error is [store.ErrNotFound] where there is none of that name.
func (b *PowerBudget) Cancel(id string) (epdapi.BudgetEvent, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.events, func(e epdapi.BudgetEvent) bool { return e.ID == id })
	if at < 0 {
		return epdapi.BudgetEvent{}, fmt.Errorf("%w: no event %s", store.ErrNotFound, slurm.Printable(id, 100))
	}
	gone := b.events[at]
	return gone, b.putEvents(slices.Delete(slices.Clone(b.events), at, at+1))
}

// checkEvent reports whether there can be an event.
func checkEvent(e *epdapi.BudgetEvent, c *config.Budget, now time.Time) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrRequest, fmt.Sprintf(format, args...))
	}
	known := append(slices.Sorted(maps.Keys(c.Partitions)), slices.Sorted(maps.Keys(c.Nodes))...)
	switch {
	case !c.IsSet():
		return wrong("the configuration has no [budget]: state one there, which holds when no event does")
	case e.Scope != clusterScope && !slices.Contains(known, e.Scope):
		return wrong("there is no budget of %s, want %s", slurm.Printable(e.Scope, 100),
			strings.Join(append([]string{clusterScope}, known...), ", "))
	case !(e.Watts > 0 && e.Watts <= maxBudget):
		return wrong("a budget of %v W, want more than 0", float64(e.Watts))
	case !e.Until.After(e.From):
		return wrong("the event ends at %s, want a time after its beginning, %s",
			e.Until.Format(time.RFC3339), e.From.Format(time.RFC3339))
	case !e.Until.After(now):
		return wrong("the event was over at %s", e.Until.Format(time.RFC3339))
	case e.From.Sub(now) > eventsAhead:
		return wrong("the event begins at %s, want a time within a year", e.From.Format(time.RFC3339))
	case !(e.RampS >= 0 && e.RampS <= maxRamp.Seconds()):
		return wrong("a ramp of %v s, want 0 to %v", e.RampS, maxRamp.Seconds())
	}
	return nil
}

// putEvents puts events in force once they are on file. The caller has the lock.
func (b *PowerBudget) putEvents(events []epdapi.BudgetEvent) error {
	slices.SortStableFunc(events, func(x, y epdapi.BudgetEvent) int { return x.From.Compare(y.From) })
	if b.file != "" {
		text, err := json.MarshalIndent(events, "", "  ")
		if err == nil {
			err = statedir.WriteFile(b.file, text, 0o600)
		}
		if err != nil {
			return fmt.Errorf("keep the event of the power budget: %w", err)
		}
	}
	b.events, b.settings = events, nil // the scopes are made anew
	return nil
}

// forget drops events that are over. The caller has the lock.
func (b *PowerBudget) forget(now time.Time) {
	b.events = slices.DeleteFunc(b.events, func(e epdapi.BudgetEvent) bool {
		return now.Sub(e.Until).Seconds() > e.RampS
	})
}
