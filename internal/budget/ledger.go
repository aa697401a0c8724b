package budget

import (
	"maps"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Scope is a set of nodes with a budget.
type Scope struct {
	Name     string
	Schedule Schedule
	// Includes reports whether a node is one of them.
	Includes func(node string) bool
}

// GPU is what an agent tells of one, and what is known of it.
type GPU struct {
	UUID string
	// Min and Max bound the power limit; both are 0 where it can't be set. Board is what the GPU
	// takes at most whatever its limit is.
	Min, Max, Board dvfsmodel.Watt
	// InForce is the limit that its driver keeps now, Prior the one that it is given back to.
	InForce, Prior dvfsmodel.Watt
	Power          dvfsmodel.Watt // measured; 0: not known
	// Need and Curve are those of [Demand].
	Need  dvfsmodel.Watt
	Curve []Slowdown
}

// Exchange is what an agent tells of its node.
type Exchange struct {
	Node     string
	Stopping bool // the agent wants all its limits given back
	Host     dvfsmodel.Watt
	GPUs     []GPU
}

// Lease is the power limit that a GPU may have until its lease ends, and then.
type Lease struct {
	UUID        string
	Watts, Safe dvfsmodel.Watt
}

// Times are how long leases hold and how far apart exchanges are.
type Times struct{ Lease, Every time.Duration }

// horizon is how long ahead limits are lowered: a lease that was just given can't be taken back sooner, and
// when a node turns out to be silent others must be lowered in its stead.
func (t Times) horizon() time.Duration { return t.Lease + t.Every*3 }

// Ledger knows the highest power limit that each GPU may have, and leases what is left of budgets. A raise
// is granted only out of watts that no other GPU may have any more.
type Ledger struct {
	times   Times
	scopes  []Scope
	unheard map[string]dvfsmodel.Watt // of nodes of which no agent told, what they take at most
	nodes   map[string]*node
	divided time.Time // when targets were set last
	short   []dvfsmodel.Watt
	unmet   int
}

// node is what is known of a node with an agent.
type node struct {
	name     string
	seen     time.Time
	host     dvfsmodel.Watt
	stopping bool
	gpus     map[string]*account
}

// account is what is known of a GPU.
type account struct {
	GPU

	// atMost is the highest limit that may be in force: as seen, or as leased since.
	atMost       dvfsmodel.Watt
	target, safe dvfsmodel.Watt
	over         int // exchanges in a row with more than the limit measured
	// floor is what the GPU was seen to take while its limit was lower, and found when; 0: it keeps its limits.
	// Some boards can't get below a power at their lowest clocks, others keep no limit at all.
	floor dvfsmodel.Watt
	found time.Time
}

// NewLedger makes a ledger that knows no node.
func NewLedger(times Times) *Ledger {
	return &Ledger{times: times, nodes: make(map[string]*node), unheard: make(map[string]dvfsmodel.Watt)}
}

// SetTimes puts other times in force. What is known of nodes stays.
func (l *Ledger) SetTimes(times Times) { l.times, l.divided = times, time.Time{} }

// SetScopes puts budgets in force in place of those before.
func (l *Ledger) SetScopes(scopes []Scope) { l.scopes, l.divided = scopes, time.Time{} }

// Expect names the nodes that there are at a time, with what they take at most as long as no agent has told
// of them, and those that are off. Nodes that aren't named are forgotten once they are silent.
func (l *Ledger) Expect(now time.Time, nodes map[string]dvfsmodel.Watt, isOff func(node string) bool) {
	maps.DeleteFunc(l.nodes, func(name string, n *node) bool {
		_, is := nodes[name]
		return isOff(name) || !is && l.isSilent(now, n)
	})
	l.unheard = nodes
	l.divided = time.Time{}
}

// Exchange takes what an agent tells at a time, and returns the leases of its GPUs; none where the node is
// under no budget. An agent asks once at a time, and sets no answer for which it has given up waiting.
func (l *Ledger) Exchange(now time.Time, told *Exchange) []Lease {
	n := l.noteExchange(now, told)
	if !slices.ContainsFunc(l.scopes, func(s Scope) bool { return s.Includes(told.Node) }) {
		return nil
	}
	if now.Sub(l.divided) >= l.times.Every/2 || now.Before(l.divided) {
		l.divide(now)
	}
	return l.lease(now, n)
}

// noteExchange keeps what an agent tells.
func (l *Ledger) noteExchange(now time.Time, told *Exchange) *node {
	n := l.nodes[told.Node]
	if n == nil {
		n = &node{name: told.Node, gpus: make(map[string]*account)}
		l.nodes[told.Node] = n
		l.divided = time.Time{}
	}
	if n.stopping != told.Stopping || l.isSilent(now, n) {
		l.divided = time.Time{}
	}
	n.seen, n.host, n.stopping = now, told.Host, told.Stopping
	for i := range told.GPUs {
		g := &told.GPUs[i]
		a := n.gpus[g.UUID]
		if a == nil {
			a = &account{target: g.InForce}
			n.gpus[g.UUID] = a
			l.divided = time.Time{}
		}
		a.GPU = *g
		a.confirm(now)
	}
	return n
}

// confirm works out the highest limit that a GPU may have, now that it was seen: an agent that asks anew
// doesn't set what it was answered before any more.
func (a *account) confirm(now time.Time) {
	if a.atMost = a.InForce; !a.canLimit() {
		a.atMost = a.Board
	}
	switch {
	case a.canLimit() && a.Power > overdrawn*a.InForce:
		if a.over++; a.over >= overReadings {
			a.floor, a.found = a.Power*overdrawn, now
		}
	case a.InForce*overdrawn < a.floor: // a lower limit that it keeps
		a.over, a.floor = 0, 0
	default:
		a.over = 0
	}
	a.atMost = max(a.atMost, a.floor)
}

// A GPU that draws so much more than its limit in so many exchanges in a row doesn't keep it. Every so often its
// limit is lowered again to see whether it does.
const (
	overdrawn    = 1.05
	overReadings = 4
	tryAgain     = 2 * time.Minute
)

// isIgnoring reports whether the GPU doesn't keep lower limits than its floor.
func (a *account) isIgnoring() bool { return a.floor > 0 }

// canLimit reports whether the GPU's power limit can be set.
func (a *account) canLimit() bool { return a.Max > 0 }

// highestLimit returns the highest limit that the GPU may be given: what it had before, if that is known.
func (a *account) highestLimit() dvfsmodel.Watt {
	if a.Prior <= 0 {
		return a.Max
	}
	return max(a.Min, min(a.Max, a.Prior))
}

// isSilent reports whether a node's agent should have been heard of: nobody knows whether it lowers limits.
func (l *Ledger) isSilent(now time.Time, n *node) bool { return now.Sub(n.seen) > l.times.Every*3/2 }

// divide sets the target of each GPU, and its share for when its lease ends.
func (l *Ledger) divide(now time.Time) {
	l.divided = now
	var accounts []*account
	var demands, alike []Demand
	for _, name := range slices.Sorted(maps.Keys(l.nodes)) {
		n := l.nodes[name]
		of := l.scopesOf(name)
		for _, uuid := range slices.Sorted(maps.Keys(n.gpus)) {
			a := n.gpus[uuid]
			d := Demand{Min: a.Min, Max: a.highestLimit(), Need: a.Need, Curve: a.Curve, Budgets: of}
			switch {
			case l.isSilent(now, n), !a.canLimit():
				d.Min, d.Max = a.atMost, a.atMost
			case a.isIgnoring():
				d.Min = max(d.Min, a.floor)
				d.Max = max(d.Max, d.Min)
			case n.stopping:
				d.Min = d.Max
			}
			accounts = append(accounts, a)
			demands = append(demands, d)
			d.Curve, d.Need = nil, 0
			alike = append(alike, d)
		}
	}
	end := now.Add(l.times.horizon())
	division := Divide(demands, l.headrooms(func(s *Schedule) dvfsmodel.Watt { return s.Least(now, end) }))
	safe := Divide(alike, l.headrooms(func(s *Schedule) dvfsmodel.Watt { return s.LeastEver(now) }))
	for i, a := range accounts {
		a.target, a.safe = division.Watts[i], safe.Watts[i]
		if !a.isIgnoring() {
			continue
		}
		a.target = a.limitUnlessShort(&division, demands[i].Budgets, a.target)
		a.safe = a.limitUnlessShort(&safe, demands[i].Budgets, a.safe)
		if a.target <= a.floor && now.Sub(a.found) > tryAgain {
			a.target = a.Min
		}
	}
	l.short, l.unmet = division.Short, division.Unmet
}

// limitUnlessShort returns the limit of a GPU that ignores those below its floor: its share, or its least
// limit if a budget lacks watts. A limit between these would only slow it, as its floor is counted anyway.
func (a *account) limitUnlessShort(of *Division, scopes []int, share dvfsmodel.Watt) dvfsmodel.Watt {
	if slices.ContainsFunc(scopes, func(scope int) bool { return of.Short[scope] > 0 }) {
		return a.Min
	}
	return max(a.Min, min(share, a.highestLimit()))
}

// headrooms returns what each scope's budget leaves for GPUs of which agents told.
func (l *Ledger) headrooms(budget func(*Schedule) dvfsmodel.Watt) []dvfsmodel.Watt {
	rooms := make([]dvfsmodel.Watt, len(l.scopes))
	for i := range l.scopes {
		rooms[i] = budget(&l.scopes[i].Schedule) - l.overhead(&l.scopes[i])
	}
	return rooms
}

// overhead returns what a scope's nodes take beside GPUs of which agents told.
func (l *Ledger) overhead(s *Scope) (watts dvfsmodel.Watt) {
	for name, most := range l.unheard {
		if l.nodes[name] == nil && s.Includes(name) {
			watts += most
		}
	}
	for name, n := range l.nodes {
		if s.Includes(name) {
			watts += n.host
		}
	}
	return watts
}

// scopesOf returns the scopes of a node, by their index.
func (l *Ledger) scopesOf(node string) (of []int) {
	for i := range l.scopes {
		if l.scopes[i].Includes(node) {
			of = append(of, i)
		}
	}
	return of
}

// lease gives the GPUs of a node their targets, as far as other GPUs have left them.
func (l *Ledger) lease(now time.Time, n *node) []Lease {
	var leases []Lease
	end := now.Add(l.times.horizon())
	left := make(map[int]dvfsmodel.Watt)
	for _, b := range l.scopesOf(n.name) {
		left[b] = l.scopes[b].Schedule.Least(now, end) - l.maxDraw(&l.scopes[b])
	}
	for _, uuid := range slices.Sorted(maps.Keys(n.gpus)) {
		a := n.gpus[uuid]
		if !a.canLimit() {
			continue
		}
		watts := min(a.target, a.atMost)
		if more := a.target - a.atMost; more > 0 {
			for _, room := range left {
				more = min(more, room)
			}
			watts = a.atMost + max(0, more)
		}
		if a.isIgnoring() && slices.ContainsFunc(slices.Collect(maps.Values(left)), isNegative) {
			watts = min(watts, a.InForce) // until others are lowered
		}
		watts = max(watts, a.Min)
		for b := range left {
			left[b] -= max(0, watts-a.atMost)
		}
		a.atMost = max(a.atMost, watts)
		leases = append(leases, Lease{uuid, watts, min(watts, a.safe)})
	}
	return leases
}

func isNegative(w dvfsmodel.Watt) bool { return w < 0 }

// maxDraw returns what a scope's nodes may take at most.
func (l *Ledger) maxDraw(s *Scope) dvfsmodel.Watt {
	watts := l.overhead(s)
	for name, n := range l.nodes {
		if !s.Includes(name) {
			continue
		}
		for _, a := range n.gpus {
			watts += a.atMost
		}
	}
	return watts
}

// Shortfall returns by how much the least limits of GPUs exceed the budgets that a node is under, at most.
func (l *Ledger) Shortfall(node string) (watts dvfsmodel.Watt) {
	for _, scope := range l.scopesOf(node) {
		if scope < len(l.short) {
			watts = max(watts, l.short[scope])
		}
	}
	return watts
}

// ScopeStatus is how a scope fares.
type ScopeStatus struct {
	Name string
	// Budget is what there is now, +Inf where there is no budget; Taken what its nodes may take at most by
	// the limits in force, and Measured what those of which agents told take, both with hosts.
	Budget, Taken, Measured dvfsmodel.Watt
	// Short is by how much the least limits that there are exceed the budget.
	Short dvfsmodel.Watt
	GPUs  int
	// Slowed counts GPUs whose jobs take longer under their limits, and Times sums up how many times as long.
	Slowed int
	Times  float64
	// Unlimited are the GPUs whose limits can't be set, Ignoring those that draw more than theirs,
	// Silent the nodes whose agents don't tell.
	Unlimited, Ignoring, Silent []string
}

// Status returns how each scope fares at a time.
func (l *Ledger) Status(now time.Time) []ScopeStatus {
	all := make([]ScopeStatus, len(l.scopes))
	for i := range l.scopes {
		scope, s := &l.scopes[i], &all[i]
		s.Name, s.Budget, s.Taken = scope.Name, scope.Schedule.At(now), l.maxDraw(scope)
		if i < len(l.short) {
			s.Short = l.short[i]
		}
		for _, name := range slices.Sorted(maps.Keys(l.unheard)) {
			if l.nodes[name] == nil && scope.Includes(name) {
				s.Silent = append(s.Silent, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(l.nodes)) {
			if n := l.nodes[name]; scope.Includes(name) {
				n.addTo(s)
				if l.isSilent(now, n) {
					s.Silent = append(s.Silent, name)
				}
			}
		}
	}
	return all
}

// addTo adds a node's GPUs to how its scope fares.
func (n *node) addTo(s *ScopeStatus) {
	s.Measured += n.host
	for _, uuid := range slices.Sorted(maps.Keys(n.gpus)) {
		a := n.gpus[uuid]
		s.GPUs++
		s.Measured += a.Power
		if len(a.Curve) > 0 {
			d := Demand{Curve: a.Curve}
			if times := d.slowdownAt(a.InForce) / d.slowdownAt(unlimited); times > 1 {
				s.Slowed++
				s.Times += times
			}
		}
		if !a.canLimit() {
			s.Unlimited = append(s.Unlimited, uuid)
		}
		if a.isIgnoring() && a.InForce <= a.floor { // above its floor it keeps its limit
			s.Ignoring = append(s.Ignoring, uuid)
		}
	}
}
