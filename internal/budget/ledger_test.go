package budget_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/budget"
)

// site plays a cluster whose GPUs each take all that their driver allows, against what a ledger
// leases: messages are lost, agents die and come back, the controller begins anew, nodes go off.
type site struct {
	rng    *rand.Rand
	now    time.Time
	times  budget.Times
	ledger *budget.Ledger
	nodes  map[string]*machine
	// plans are the budgets that were in force, each from when it was set.
	plans []plan
	away  time.Time // the controller answers from then on
}

type plan struct {
	at       time.Time
	schedule budget.Schedule
}

// machine is a node with its agent.
type machine struct {
	name    string
	host    dvfsmodel.Watt
	isOff   bool
	boots   time.Time // when a node that is off comes up; zero: it doesn't
	cut     time.Time // it reaches the controller from then on
	dead    time.Time // its agent runs from then on
	wasDead bool
	next    time.Time // the next exchange
	ends    time.Time // of its leases
	heard   time.Time // when it had an answer last
	chips   []*chip
}

// chip is a GPU.
type chip struct {
	min, max, prior, limit dvfsmodel.Watt
	safe                   dvfsmodel.Watt
	fixed                  bool           // its limit can't be set
	ignores                bool           // and isn't kept
	lowest                 dvfsmodel.Watt // what it takes at its lowest clocks, whatever its limit
	used                   float64
}

const tick = 100 * time.Millisecond

func newSite(rng *rand.Rand) *site {
	s := &site{
		rng: rng, now: time.Unix(1_800_000_000, 0), nodes: make(map[string]*machine),
		times: budget.Times{Lease: 3 * time.Second, Every: time.Second},
	}
	for i := range 2 + rng.IntN(10) {
		m := &machine{name: fmt.Sprintf("n%02d", i), host: dvfsmodel.Watt(100 + rng.IntN(300)), heard: s.now}
		for range 1 + rng.IntN(8) {
			least := dvfsmodel.Watt(60 + rng.IntN(100))
			most := least + dvfsmodel.Watt(rng.IntN(300))
			c := &chip{min: least, max: most, prior: most, limit: most, safe: most, used: rng.Float64()}
			if rng.IntN(4) == 0 { // the site has a limit of its own
				c.prior = least + (most-least)/2
				c.limit, c.safe = c.prior, c.prior
			}
			if c.fixed = rng.IntN(15) == 0; c.fixed {
				c.prior, c.limit, c.safe = most, most, most
			}
			if rng.IntN(6) == 0 {
				c.lowest = least + dvfsmodel.Watt(rng.Float64())*(c.prior-least)
			}
			m.chips = append(m.chips, c)
		}
		s.nodes[m.name] = m
	}
	s.restart()
	return s
}

// inRack reports whether a node is in the rack that has a budget of its own.
func inRack(name string) bool { return name < "n04" }

// restart begins with a controller that knows the nodes by Slurm alone.
func (s *site) restart() {
	s.ledger = budget.NewLedger(s.times)
	s.expect()
	s.ledger.SetScopes(s.scopes())
}

func (s *site) expect() {
	nodes := make(map[string]dvfsmodel.Watt)
	for _, m := range s.nodes {
		if m.isOff && m.boots.IsZero() {
			continue
		}
		nodes[m.name] = m.host
		for _, c := range m.chips {
			nodes[m.name] += c.max
		}
	}
	s.ledger.Expect(s.now, nodes, func(name string) bool {
		return s.nodes[name].isOff && s.nodes[name].boots.IsZero()
	})
}

// scopes are the cluster, whose budget the events change, and a rack.
func (s *site) scopes() []budget.Scope {
	all := budget.Scope{Name: "cluster", Includes: func(string) bool { return true }}
	if len(s.plans) > 0 {
		all.Schedule = s.plans[len(s.plans)-1].schedule
	}
	rack := budget.Scope{Name: "rack", Includes: inRack}
	rack.Schedule.Steps = []budget.Step{{Watts: s.rackBudget()}}
	return []budget.Scope{all, rack}
}

// rackBudget is three quarters of what the rack could take.
func (s *site) rackBudget() (watts dvfsmodel.Watt) {
	for _, m := range s.nodes {
		if !inRack(m.name) {
			continue
		}
		watts += m.host
		for _, c := range m.chips {
			watts += c.min + (c.max-c.min)*3/4
		}
	}
	return watts
}

// set puts another budget in force now.
func (s *site) set(schedule budget.Schedule) {
	s.plans = append(s.plans, plan{s.now, schedule})
	s.ledger.SetScopes(s.scopes())
}

// bounds returns what the nodes take at least and at most.
func (s *site) bounds() (least, most dvfsmodel.Watt) {
	for _, m := range s.nodes {
		least, most = least+m.host, most+m.host
		for _, c := range m.chips {
			most += c.prior
			if least += c.min; c.fixed {
				least += c.prior - c.min
			}
		}
	}
	return least, most
}

// step plays a tenth of a second.
func (s *site) step() {
	s.now = s.now.Add(tick)
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		m := s.nodes[name]
		if m.isOff && !m.boots.IsZero() && s.now.After(m.boots) {
			m.boot()
		}
		if !m.isOff && !s.now.Before(m.dead) {
			s.playAgent(m)
		}
	}
}

// playAgent does what an agent must: without a new lease its GPUs fall to their safe shares.
func (s *site) playAgent(m *machine) {
	if m.wasDead {
		m.wasDead = false
		m.fallToSafe()
		m.next = s.now
	}
	if s.now.After(m.ends) {
		m.fallToSafe()
	}
	if s.now.Before(m.next) {
		return
	}
	m.next = s.now.Add(s.times.Every)
	if s.now.Before(m.cut) || s.now.Before(s.away) || s.rng.IntN(30) == 0 {
		return // the request is lost
	}
	told := &budget.Exchange{Node: m.name, Host: m.host}
	for i, c := range m.chips {
		g := budget.GPU{
			UUID: fmt.Sprint(m.name, "/", i), Board: c.max, InForce: c.limit, Prior: c.prior,
			Power: c.draws(), Min: c.min, Max: c.max,
		}
		if c.fixed {
			g.Min, g.Max = 0, 0
		}
		if c.used > 0.3 {
			g.Curve = []budget.Slowdown{{c.min, 2}, {c.min + (c.max-c.min)/2, 1 + c.used}, {c.max, 1}}
		}
		told.GPUs = append(told.GPUs, g)
	}
	leases := s.ledger.Exchange(s.now, told)
	if s.rng.IntN(30) == 0 {
		return // the answer is lost
	}
	m.heard, m.ends = s.now, s.now.Add(s.times.Lease)
	byUUID := make(map[string]budget.Lease)
	for _, l := range leases {
		byUUID[l.UUID] = l
	}
	for i, c := range m.chips {
		if l, ok := byUUID[fmt.Sprint(m.name, "/", i)]; ok {
			c.limit, c.safe = min(l.Watts, c.prior), l.Safe
		}
	}
}

// boot brings a node up: its agent puts the safe shares in force before anything runs.
func (m *machine) boot() {
	m.isOff, m.boots, m.wasDead, m.dead = false, time.Time{}, true, time.Time{}
	for _, c := range m.chips {
		c.limit = min(c.prior, c.safe)
	}
}

func (m *machine) fallToSafe() {
	for _, c := range m.chips {
		if !c.fixed {
			c.limit = min(c.limit, c.safe)
		}
	}
}

// draws is what a GPU takes: all that it is allowed.
func (c *chip) draws() dvfsmodel.Watt {
	if c.ignores {
		return c.max
	}
	return max(c.limit, c.lowest)
}

// settle is how long after a budget was lowered without notice it may be exceeded.
const settle = 5 * time.Second

// excess returns by how much the GPUs' limits exceed what is allowed now: the budget, or what
// can't be lowered by anybody.
func (s *site) excess(includes func(string) bool, allowed dvfsmodel.Watt) dvfsmodel.Watt {
	var taken, floor dvfsmodel.Watt
	for _, m := range s.nodes {
		if m.isOff || !includes(m.name) {
			continue
		}
		taken, floor = taken+m.host, floor+m.host
		for _, c := range m.chips {
			taken += c.limit
			switch {
			case c.fixed, s.now.Sub(m.heard) > s.times.Lease/2:
				floor += c.limit
			default:
				floor += c.min
			}
		}
	}
	return taken - max(allowed, floor)
}

// allowed is the cluster's budget: the greatest of those in force during the time to settle.
func (s *site) allowed() dvfsmodel.Watt {
	allowed := dvfsmodel.Watt(math.Inf(1))
	for i := range slices.Backward(s.plans) {
		p := &s.plans[i]
		if watts := p.schedule.At(s.now); i == len(s.plans)-1 {
			allowed = watts
		} else {
			allowed = max(allowed, watts)
		}
		if s.now.Sub(p.at) > settle {
			return allowed
		}
	}
	return dvfsmodel.Watt(math.Inf(1))
}

// disturb draws something that goes wrong.
func (s *site) disturb() string {
	m := s.nodes[fmt.Sprintf("n%02d", s.rng.IntN(len(s.nodes)))]
	for0 := time.Duration(1+s.rng.IntN(20)) * time.Second
	switch s.rng.IntN(8) {
	case 0:
		m.cut = s.now.Add(for0)
		return m.name + " is cut off"
	case 1:
		m.dead, m.wasDead = s.now.Add(for0), true
		return m.name + "'s agent dies"
	case 2:
		s.away = s.now.Add(for0)
		return "the controller is away"
	case 3:
		s.restart()
		return "the controller begins anew"
	case 4:
		if m.isOff {
			m.boots = s.now.Add(10 * time.Second) // Slurm tells of it
		}
		m.isOff = true
		s.expect()
		return m.name + " goes off or on"
	case 5:
		c := m.chips[s.rng.IntN(len(m.chips))]
		c.ignores = !c.ignores
		return m.name + ": a GPU ignores its limit, or keeps it again"
	default:
		for _, c := range m.chips {
			c.used = s.rng.Float64()
		}
		return m.name + " has other jobs"
	}
}

// drawSchedule draws a standing budget and events to come, some at once.
func (s *site) drawSchedule() budget.Schedule {
	least, most := s.bounds()
	watts := func() dvfsmodel.Watt { return least + dvfsmodel.Watt(s.rng.Float64())*(most-least)*1.1 }
	schedule := budget.Schedule{Steps: []budget.Step{{From: s.now, Watts: watts()}}}
	if s.rng.IntN(2) == 0 {
		schedule.Steps = append(schedule.Steps,
			budget.Step{From: s.now.Add(time.Duration(s.rng.IntN(40)) * time.Second), Watts: watts()})
	}
	for range s.rng.IntN(3) {
		from := s.now.Add(time.Duration(s.rng.IntN(40)) * time.Second)
		schedule.Events = append(schedule.Events, budget.Event{
			Watts: watts(), From: from, Until: from.Add(time.Duration(1+s.rng.IntN(30)) * time.Second),
			Ramp: time.Duration(s.rng.IntN(20)) * time.Second,
		})
	}
	return schedule
}

// play plays drawn events and returns what exceeded a budget first; "" if nothing did.
func play(seed uint64, events int) (played int, fault string) {
	s := newSite(rand.New(rand.NewPCG(seed, 1)))
	s.set(s.drawSchedule())
	var log []string
	for range 100 { // until the first leases are in force
		s.step()
	}
	for n := range events {
		if s.rng.IntN(3) == 0 && s.now.After(s.away) {
			s.set(s.drawSchedule())
			log = append(log, s.now.Format("05.0")+": another budget")
		} else {
			log = append(log, s.now.Format("05.0")+": "+s.disturb())
		}
		for range 10 + s.rng.IntN(150) {
			s.step()
			all := s.excess(func(string) bool { return true }, s.allowed())
			rack := s.excess(inRack, s.rackBudget())
			if over := max(all, rack); over > 1e-6 {
				return n, fmt.Sprintf("seed %d: %.1f W above the budget at %s after %s", seed, float64(over),
					s.now.Format("05.0"), strings.Join(log[max(0, len(log)-5):], "; "))
			}
		}
	}
	return events, ""
}

// seeds is how many sites are drawn, each with twenty events.
const seeds = 60

func TestNoBudgetIsExceededWhateverIsLostDiesOrBeginsAnew(t *testing.T) {
	played := 0
	for seed := range uint64(seeds) {
		n, fault := play(seed, 20)
		if fault != "" {
			t.Error(fault)
		}
		played += n
	}
	t.Logf("%d events", played)
}

func TestWhatTheBudgetAllowsIsGivenOnceAllIsQuiet(t *testing.T) {
	for seed := range uint64(seeds) {
		s := newSite(rand.New(rand.NewPCG(seed, 2)))
		least, most := s.bounds()
		watts := least + dvfsmodel.Watt(s.rng.Float64())*(most-least)*1.2
		if seed%2 == 0 { // after a time in which some GPUs took more than their limits
			s.set(budget.Schedule{Steps: []budget.Step{{Watts: least}}})
			for range 200 {
				s.step()
			}
		}
		s.set(budget.Schedule{Steps: []budget.Step{{Watts: watts}}})
		for range 200 {
			s.step()
		}
		var all, rack, rackMost dvfsmodel.Watt
		for _, m := range s.nodes {
			of := m.host
			mostOf := m.host
			for _, c := range m.chips {
				of, mostOf = of+max(c.limit, 1.05*c.lowest), mostOf+c.prior // what it takes counts, with a margin
			}
			if all += of; inRack(m.name) {
				rack, rackMost = rack+of, rackMost+mostOf
			}
		}
		want := min(watts, most, most-rackMost+min(rackMost, s.rackBudget()))
		if all < 0.99*want {
			t.Errorf("seed %d: %.0f W of %.0f are given", seed, float64(all), float64(want))
		}
	}
}

func TestWithoutAControllerTheSafeSharesKeepEveryBudgetThatWasToldOf(t *testing.T) {
	for seed := range uint64(seeds) {
		s := newSite(rand.New(rand.NewPCG(seed, 5)))
		s.set(s.drawSchedule())
		for range 200 {
			s.step()
		}
		s.away = s.now.Add(time.Hour)
		for range 30 {
			s.step()
		}
		for range 1000 {
			s.step()
			var taken, least dvfsmodel.Watt
			for _, m := range s.nodes {
				taken, least = taken+m.host, least+m.host
				for _, c := range m.chips {
					if taken += c.limit; c.fixed {
						least += c.limit
					} else {
						least += c.min
					}
				}
			}
			if allowed := max(least, s.plans[0].schedule.At(s.now)); taken > allowed+1e-6 {
				t.Fatalf("seed %d: %.1f W of %.1f", seed, float64(taken), float64(allowed))
			}
		}
	}
}
