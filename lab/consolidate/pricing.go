package consolidate

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// bundle is what [pricer] puts into groups: one piece, or pieces that have to
// stay together.
type bundle struct {
	piece
	pieces    []int
	value     float64
	weight    float64
	conflicts bitSet // items that may not share its group
}

// bitSet is a set of small numbers.
type bitSet []uint64

func newBitSet(n int) bitSet { return make(bitSet, (n+63)/64) }

func (b bitSet) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitSet) has(i int) bool { return b[i/64]>>(i%64)&1 == 1 }

// column is a group as the master problem knows it.
type column struct {
	pieces []int // ascending
	watts  float64
	class  int
}

// maxListed is how many groups a part may have listed.
const maxListed = 150_000

// pricer finds groups that are worth most by the values of their pieces, less
// what they take: a search over sets of items in the order of value by weight,
// bounded by the fractional knapsack of what can still be added. The overload
// of a set is at least its mean load, and grows by at least the sum of what
// each item alone adds to the part that is already there.
type pricer struct {
	p     *packing
	items []bundle
	share float64 // of the load in an item's weight; the rest is memory
	loads float64 // most overload of all, GPUs
	sizes float64 // largest memory, GB

	floor     []float64 // by class: groups have to be worth more
	top       []float64 // by class: the most that a group was found worth
	open      float64   // most that what was left out could be worth
	nodes     int       // still to be looked at
	nextCheck int       // nodes at which the context is looked at
	ctx       context.Context
	greed     float64 // 0: all groups above the floor are found; 1: only better and better ones
	found     []column
	levels    []searchLevel // by depth
	chosen    []int
}

// searchLevel is a part of a search: a set of items, and what can be added to it.
type searchLevel struct {
	load  []float64
	over  float64 // by load alone
	mean  float64
	memGB float64
	kappa int
	value float64
	// pieces is how many there are, and now and more what they, and they with
	// others, cost each other at least beside their work.
	pieces    int
	now, more float64
	next      []int     // items, in order
	extra     []float64 // by next: overload that it adds
	rank      []int     // places in next, by value by extra
}

// newPricer returns a search over items.
func newPricer(p *packing, items []bundle) *pricer {
	q := &pricer{
		p: p, items: items, top: make([]float64, len(p.hosts.sizes)),
		floor: make([]float64, len(p.hosts.sizes)),
	}
	load, mem := 0.0, 0.0
	q.loads = 1
	for _, tiers := range p.tiers {
		q.loads = max(q.loads, tiers[len(tiers)-1].overload)
	}
	q.sizes = p.hosts.sizes[len(p.hosts.sizes)-1]
	for i := range items {
		load += items[i].mean / q.loads
		mem += items[i].memGB / q.sizes
	}
	if load > 0 {
		a, b := math.Pow(load, 4), math.Pow(mem, 4)
		q.share = a / (a + b)
	}
	for i := range items {
		items[i].weight = 1e-9 + q.share*items[i].mean/q.loads + (1-q.share)*items[i].memGB/q.sizes
	}
	return q
}

// level returns the part of the search at a depth.
func (q *pricer) level(depth int) *searchLevel {
	for len(q.levels) <= depth {
		q.levels = append(q.levels, searchLevel{load: make([]float64, q.p.slots)})
	}
	return &q.levels[depth]
}

// search finds groups worth more than floors by class, and bounds what a group
// of each class can be worth (top).
func (q *pricer) search(ctx context.Context, values, floor []float64, nodes int, greed float64) {
	copy(q.floor, floor)
	q.nodes, q.nextCheck, q.greed, q.open = nodes, nodes-20000, greed, math.Inf(-1)
	q.found, q.ctx = q.found[:0], ctx
	for k := range q.top {
		q.top[k] = math.Inf(-1)
	}
	// An item that is worth nothing can only take a group to a larger class,
	// which matters where that is worth it.
	all := greed == 0 || !slices.IsSorted(q.floor)
	root := q.level(0)
	root.next = root.next[:0]
	clear(root.load)
	root.over, root.mean, root.memGB, root.value, root.pieces = 1, 0, 0, 0, 0
	root.kappa = len(q.p.kappas) - 1
	for i := range q.items {
		it := &q.items[i]
		it.value = 0
		for _, j := range it.pieces {
			it.value += values[j]
		}
		if it.value > 0 || all {
			root.next = append(root.next, i)
		}
	}
	slices.SortStableFunc(root.next, func(a, b int) int {
		return cmp.Compare(q.items[b].value*q.items[a].weight, q.items[a].value*q.items[b].weight)
	})
	q.chosen = q.chosen[:0]
	q.levels = slices.Grow(q.levels, len(q.items)+2)
	q.expand(0)
	for k := range q.top {
		q.top[k] = max(q.top[k], q.floor[k], q.open)
		if k > 0 && !all {
			q.top[k] = max(q.top[k], q.top[k-1])
		}
	}
}

// wasTruncated reports whether a part of the search was left out.
func (q *pricer) wasTruncated() bool { return !math.IsInf(q.open, -1) }

// targetValue returns what a group of a class has to be worth for the search to go on.
func (q *pricer) targetValue(class int) float64 {
	if q.top[class] <= q.floor[class] {
		return q.floor[class]
	}
	return q.floor[class] + q.greed*(q.top[class]-q.floor[class])
}

// lowTargetValue returns the least that a group of a class or a larger one has to be worth.
func (q *pricer) lowTargetValue(class int) float64 {
	bar := math.Inf(1)
	for k := class; k < len(q.floor); k++ {
		bar = min(bar, q.targetValue(k))
	}
	return bar
}

// expand adds each item that can be added, one at a time.
func (q *pricer) expand(depth int) {
	q.level(depth + 1)
	l, child := &q.levels[depth], &q.levels[depth+1]
	for at, i := range l.next {
		it := &q.items[i]
		if !q.join(l, child, it) {
			continue
		}
		class := q.p.hosts.smallestClass(child.memGB)
		q.chosen = append(q.chosen, i)
		q.offer(child, class)
		bar := q.lowTargetValue(class)
		if worth := q.bound(child, l.next[at+1:]); worth > bar {
			if q.nodes <= 0 {
				q.open = max(q.open, worth)
			} else if q.listExtensions(child, l.next[at+1:], it) && q.tightBound(child) > bar {
				q.expand(depth + 1)
			}
		}
		q.chosen = q.chosen[:len(q.chosen)-1]
	}
}

// join adds an item to a set; false where it can't.
func (q *pricer) join(l, child *searchLevel, it *bundle) bool {
	if q.nodes--; q.nodes <= q.nextCheck {
		q.nextCheck = q.nodes - 20000
		if q.ctx.Err() != nil {
			q.nodes = 0
		}
	}
	child.memGB = l.memGB + it.memGB
	if child.memGB > q.sizes+sharing.SlackGB {
		return false
	}
	child.kappa = min(l.kappa, it.kappa)
	child.mean = l.mean + it.mean
	child.value = l.value + it.value
	child.over = 1
	if n := len(it.load); n > 0 {
		sum := 0.0
		load := child.load[:n]
		for k, u := range l.load[:n] {
			u += it.load[k]
			load[k] = u
			sum += max(1, u)
		}
		child.over = sum / float64(n)
	}
	child.pieces = l.pieces + len(it.pieces)
	child.now, child.more = q.interferenceBounds(child)
	tiers := q.p.tiers[child.kappa]
	return child.over*child.now <= tiers[len(tiers)-1].overload
}

// offer takes the set as a group where it is worth enough.
func (q *pricer) offer(l *searchLevel, class int) {
	if q.p.curve != nil {
		q.offerSizes(l, class)
		return
	}
	q.addFound(l, class, q.p.tiers[l.kappa][q.p.lowestTier(l.kappa, l.over)].watts)
}

// addFound takes the set as a group of a class that takes so many watts.
func (q *pricer) addFound(l *searchLevel, class int, watts float64) {
	worth := l.value - watts
	if worth > q.targetValue(class) && worth > q.floor[class] {
		c := column{watts: l.value - worth, class: class}
		for _, i := range q.chosen {
			c.pieces = append(c.pieces, q.items[i].pieces...)
		}
		slices.Sort(c.pieces)
		q.found = append(q.found, c)
		switch {
		case len(q.found) >= maxListed:
			q.nodes = 0
		case len(q.found) > 20000 && q.greed > 0:
			q.greed = 1
		}
	}
	q.top[class] = max(q.top[class], worth)
}

// bound returns the most that a set can be worth once some of the items are added:
// by their weight, in fractions.
func (q *pricer) bound(l *searchLevel, next []int) float64 {
	tiers := q.p.tiers[l.kappa]
	k := q.p.lowestTier(l.kappa, l.over*l.more)
	if k < 0 {
		return math.Inf(-1)
	}
	free := (1 - q.share) * (q.sizes + sharing.SlackGB - l.memGB) / q.sizes
	room := func(k int) float64 {
		if q.p.slots == 0 {
			return free
		}
		return free + q.share*(tiers[k].overload/l.more-l.mean)/q.loads
	}
	value, weight, best := l.value, 0.0, l.value-tiers[k].watts
	capacity := room(k) + 1e-9*float64(len(next))
	for _, i := range next {
		it := &q.items[i]
		for weight+it.weight > capacity {
			worth := value + it.value*max(0, capacity-weight)/it.weight - tiers[k].watts
			best = max(best, worth)
			if k++; k == len(tiers) || q.p.slots == 0 {
				return best
			}
			capacity = room(k) + 1e-9*float64(len(next))
		}
		value += it.value
		weight += it.weight
	}
	return max(best, value-tiers[k].watts)
}

// listExtensions lists what can be added to a set beside an item; false: nothing.
func (q *pricer) listExtensions(child *searchLevel, next []int, it *bundle) bool {
	child.next, child.extra = child.next[:0], child.extra[:0]
	n := float64(len(child.load))
	for _, j := range next {
		other := &q.items[j]
		if child.memGB+other.memGB > q.sizes+sharing.SlackGB || it.conflicts.has(j) {
			continue
		}
		tiers := q.p.tiers[min(child.kappa, other.kappa)]
		most := tiers[len(tiers)-1].overload / child.more
		extra := 0.0
		q.nodes--
		if n > 0 {
			if child.mean+other.mean > most {
				continue
			}
			sum := 0.0
			for k, u := range other.load {
				sum += max(1, child.load[k]+u)
			}
			over := sum / n
			if over > most {
				continue
			}
			extra = over - child.over
		}
		child.next = append(child.next, j)
		child.extra = append(child.extra, extra)
	}
	return len(child.next) > 0
}

// tightBound returns the most that a set can be worth once some of what can be added is:
// by the overload that each adds at least, in fractions.
func (q *pricer) tightBound(l *searchLevel) float64 {
	if q.p.slots == 0 || len(l.next) == 1 {
		return math.Inf(1)
	}
	l.rank = l.rank[:0]
	for at := range l.next {
		l.rank = append(l.rank, at)
	}
	slices.SortFunc(l.rank, func(a, b int) int {
		return cmp.Compare(q.items[l.next[b]].value*l.extra[a], q.items[l.next[a]].value*l.extra[b])
	})
	tiers := q.p.tiers[l.kappa]
	k := q.p.lowestTier(l.kappa, l.over*l.more)
	value, weight, best := l.value, l.over-1e-9, math.Inf(-1)
	for _, at := range l.rank {
		v, w := q.items[l.next[at]].value, l.extra[at]
		for weight+w > tiers[k].overload/l.more {
			best = max(best, value+v*max(0, tiers[k].overload/l.more-weight)/w-tiers[k].watts)
			if k++; k == len(tiers) {
				return best
			}
		}
		value += v
		weight += w
	}
	return max(best, value-tiers[k].watts)
}

// interferenceBounds returns the least that pieces of a set cost each other beside their work
// on any GPU, and those of a set with more of them.
func (q *pricer) interferenceBounds(l *searchLevel) (now, more float64) {
	if q.p.curve == nil {
		return 1, 1
	}
	const rounding = 1e-12
	largest := len(q.p.hosts.sizes) - 1
	return q.p.interference(l.pieces, l.memGB, largest) * (1 - rounding),
		q.p.interference(l.pieces+1, l.memGB, largest) * (1 - rounding)
}

// offerSizes takes the set as groups on GPUs of the classes on which it takes
// less than on smaller ones, where that is worth enough.
func (q *pricer) offerSizes(l *searchLevel, class int) {
	tiers := q.p.tiers[l.kappa]
	most := l.value - tiers[q.p.lowestTier(l.kappa, l.over*l.now)].watts
	work, least := 0.0, math.Inf(1)
	for k := class; k < len(q.p.hosts.sizes); k++ {
		if most > q.targetValue(k) {
			if work == 0 {
				work = q.p.work(l.load)
			}
			if t := q.p.lowestTier(l.kappa, work*q.p.interference(l.pieces, l.memGB, k)); t >= 0 &&
				tiers[t].watts < least {
				least = tiers[t].watts
				q.addFound(l, k, least)
			}
		}
		if !q.p.sizeMatters() {
			return
		}
	}
}
