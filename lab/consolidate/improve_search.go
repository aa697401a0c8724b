package consolidate

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

const (
	// penaltyW is what a piece without a place counts as, watts.
	penaltyW = 1000
	// fullW is what a full group counts for beside what it takes: of answers
	// that take the same, those are sought that are about to empty a group.
	fullW = 6
	// hotW and coldW are the first and the last temperature, watts.
	hotW, coldW = 12, 0.4
	// skipChance is the chance that a place isn't looked at.
	skipChance = 0.03
)

// localSearch is one descent of [Improve]: groups at places, of which some are
// empty, and what a round changed of them.
type localSearch struct {
	p     *packing
	rng   *rand.Rand
	keep  func(*group)
	at    []group
	need  []int // groups by class of memory
	loose []int // pieces without a group
	watts float64
	score float64 // watts, penalties and how full the groups are

	saved []group // by place, as before the round
	dirty []int   // places saved in this round
	stale []bool  // by place: it is in dirty
	held  []int   // loose before the round

	best  []group
	bestW float64
}

func newLocalSearch(p *packing, rng *rand.Rand) *localSearch {
	places := min(len(p.pieces), len(p.in.GPUs()))
	s := &localSearch{
		p: p, rng: rng, bestW: math.Inf(1),
		need: make([]int, len(p.hosts.sizes)),
		at:   make([]group, places), saved: make([]group, places), stale: make([]bool, places),
	}
	for i := range s.at {
		s.at[i].load = make([]float64, p.slots)
	}
	return s
}

// start sets out from groups; where there are none, from all pieces put
// where they cost least.
func (s *localSearch) start(groups []group) {
	for i := range groups {
		copyGroup(&s.at[i], &groups[i])
		s.need[groups[i].class]++
	}
	if len(groups)+len(s.loose) == 0 {
		for i := range s.p.pieces {
			s.loose = append(s.loose, i)
		}
	}
	s.begin()
	s.recreate()
	s.recompute()
	s.noteBest()
}

func copyGroup(dst, src *group) {
	pieces, load := append(dst.pieces[:0], src.pieces...), append(dst.load[:0], src.load...)
	*dst = *src
	dst.pieces, dst.load = pieces, load
}

// run ruins and recreates, ever colder.
func (s *localSearch) run(ctx context.Context, rounds int, hot float64) {
	for round := range rounds {
		if round%64 == 0 && ctx.Err() != nil {
			return
		}
		s.round(hot * math.Pow(coldW/hot, float64(round)/float64(rounds)))
	}
}

// round takes some groups apart, puts their pieces somewhere, and keeps the
// outcome or goes back.
func (s *localSearch) round(heat float64) {
	watts, score := s.watts, s.score
	s.begin()
	s.ruin()
	s.recreate()
	s.recompute()
	if worse := s.score - score; worse > 0 && worse > -heat*math.Log(s.rng.Float64()) {
		s.undo()
		s.watts, s.score = watts, score
		return
	}
	s.noteBest()
}

// recompute works out what the groups take and score.
func (s *localSearch) recompute() {
	s.watts = s.p.hosts.watts(s.need)
	s.score = s.watts + penaltyW*float64(len(s.loose))
	for i := range s.at {
		if g := &s.at[i]; len(g.pieces) > 0 {
			s.watts += g.watts
			full := s.fullness(g)
			s.score += g.watts - fullW*full*full
		}
	}
}

// fullness returns how full a group is, as a fraction of the fullest.
func (s *localSearch) fullness(g *group) float64 {
	x := g.memGB / s.p.hosts.sizes[len(s.p.hosts.sizes)-1]
	if s.p.slots > 0 {
		x = max(x, sharing.MeanPct(g.load)/s.p.kappas[len(s.p.kappas)-1])
	}
	return x
}

func (s *localSearch) noteBest() {
	if len(s.loose) > 0 || s.watts >= s.bestW-1e-9 {
		return
	}
	s.best, s.bestW = s.best[:0], s.watts
	for i := range s.at {
		if len(s.at[i].pieces) == 0 {
			continue
		}
		var g group
		copyGroup(&g, &s.at[i])
		s.best = append(s.best, g)
		if s.keep != nil {
			s.keep(&s.at[i])
		}
	}
}

// begin notes where a round sets out.
func (s *localSearch) begin() {
	for _, i := range s.dirty {
		s.stale[i] = false
	}
	s.dirty = s.dirty[:0]
	s.held = append(s.held[:0], s.loose...)
}

func (s *localSearch) save(i int) {
	if !s.stale[i] {
		s.stale[i] = true
		s.dirty = append(s.dirty, i)
		copyGroup(&s.saved[i], &s.at[i])
	}
}

// undo goes back to where the round began.
func (s *localSearch) undo() {
	for _, i := range s.dirty {
		s.count(i, -1)
		copyGroup(&s.at[i], &s.saved[i])
		s.count(i, 1)
	}
	s.loose = append(s.loose[:0], s.held...)
}

func (s *localSearch) count(i, by int) {
	if len(s.at[i].pieces) > 0 {
		s.need[s.at[i].class] += by
	}
}

// ruin takes a few groups apart, and some pieces out of others.
func (s *localSearch) ruin() {
	groups, pieces := s.rng.IntN(4), s.rng.IntN(6)
	if groups == 0 {
		pieces++
	}
	for range groups {
		if i := s.randomUsed(); i >= 0 {
			s.save(i)
			s.loose = append(s.loose, s.at[i].pieces...)
			s.replacePieces(i, nil)
		}
	}
	for range pieces {
		if i := s.randomUsed(); i >= 0 {
			s.save(i)
			g := &s.at[i]
			k := s.rng.IntN(len(g.pieces))
			s.loose = append(s.loose, g.pieces[k])
			s.replacePieces(i, slices.Delete(slices.Clone(g.pieces), k, k+1))
		}
	}
}

// randomUsed returns a place with a group, by chance; -1 where luck is bad.
func (s *localSearch) randomUsed() int {
	for range 32 {
		if i := s.rng.IntN(len(s.at)); len(s.at[i].pieces) > 0 {
			return i
		}
	}
	return -1
}

// replacePieces makes a group one of those pieces, which are part of it.
func (s *localSearch) replacePieces(i int, pieces []int) {
	s.count(i, -1)
	s.at[i].setPieces(s.p, pieces, 0)
	s.count(i, 1)
}

// recreate puts the loose pieces where each costs least.
func (s *localSearch) recreate() {
	s.rng.Shuffle(len(s.loose), func(i, j int) { s.loose[i], s.loose[j] = s.loose[j], s.loose[i] })
	switch s.rng.IntN(4) {
	case 0: // in any order
	case 1:
		slices.SortStableFunc(s.loose, func(i, j int) int {
			return cmp.Compare(s.p.pieces[j].memGB, s.p.pieces[i].memGB)
		})
	default:
		slices.SortStableFunc(s.loose, func(i, j int) int {
			return cmp.Compare(s.p.pieces[j].mean, s.p.pieces[i].mean)
		})
	}
	left := s.loose[:0]
	for _, i := range s.loose {
		if !s.insert(i) {
			left = append(left, i)
		}
	}
	s.loose = left
}

// insert puts a piece where it costs least; false where it fits nowhere.
func (s *localSearch) insert(piece int) bool {
	place, least, empty, class := -1, math.Inf(1), -1, 0
	before := s.p.hosts.watts(s.need)
	for i := range s.at {
		if len(s.at[i].pieces) == 0 {
			empty = i
			continue
		}
		if s.rng.Float64() < skipChance {
			continue
		}
		if extra, on, ok := s.insertionCost(i, piece, before); ok && extra < least {
			place, least, class = i, extra, on
		}
	}
	if empty >= 0 {
		if extra, ok := s.costAlone(piece, before); ok && extra < least {
			place = empty
		}
	}
	if place < 0 {
		return false
	}
	s.save(place)
	s.add(place, piece, class)
	return true
}

// insertionCost returns what a piece costs in a group, by score, and on which class of GPU.
func (s *localSearch) insertionCost(i, piece int, hostW float64) (least float64, on int, ok bool) {
	g, x := &s.at[i], &s.p.pieces[piece]
	memGB := g.memGB + x.memGB
	class := s.p.hosts.smallestClass(memGB)
	if class < 0 {
		return 0, 0, false
	}
	for _, j := range g.pieces {
		if s.p.sameTask(j, piece) {
			return 0, 0, false
		}
	}
	work, kappa := s.p.workWith(g.load, x.load), min(g.kappa, x.kappa)
	for ; class < len(s.p.hosts.sizes); class++ {
		over := work * s.p.interference(len(g.pieces)+1, memGB, class)
		if k := s.p.lowestTier(kappa, over); k >= 0 {
			extra := s.p.tiers[kappa][k].watts - g.watts + s.serverCostChange(g.class, class, hostW) +
				s.tieBreak(g, x, over)
			if !ok || extra < least {
				least, on, ok = extra, class, true
			}
		}
		if !s.p.sizeMatters() {
			break
		}
	}
	return least, on, ok
}

// serverCostChange returns what servers take more for it if a group needs another class of GPU.
func (s *localSearch) serverCostChange(from, to int, hostW float64) float64 {
	if from == to {
		return 0
	}
	s.need[from]--
	s.need[to]++
	extra := s.p.hosts.watts(s.need) - hostW
	s.need[from]++
	s.need[to]--
	return extra
}

// tieBreak tells places apart that cost the same: rather a full group, and one
// whose overload rises little for what it gets.
func (s *localSearch) tieBreak(g *group, x *piece, over float64) float64 {
	if s.p.slots == 0 {
		return -g.memGB / 32
	}
	return 20*(over-g.over) - x.mean*fullW*2*s.fullness(g)
}

// costAlone returns what a piece costs in a group of its own.
func (s *localSearch) costAlone(piece int, hostW float64) (float64, bool) {
	x := &s.p.pieces[piece]
	class := s.p.hosts.smallestClass(x.memGB)
	s.need[class]++
	extra := s.p.hosts.watts(s.need) - hostW
	s.need[class]--
	if math.IsInf(extra, 1) || math.IsNaN(extra) {
		return 0, false
	}
	return extra + s.p.tiers[x.kappa][s.p.lowestTier(x.kappa, overload(x.load))].watts, true
}

// add puts a piece into a group that has room for it on a class of GPU, or an
// empty one.
func (s *localSearch) add(i, piece, class int) {
	s.count(i, -1)
	g, x := &s.at[i], &s.p.pieces[piece]
	if len(g.pieces) == 0 {
		g.setPieces(s.p, []int{piece}, 0)
		s.count(i, 1)
		return
	}
	g.pieces = append(g.pieces, piece)
	g.memGB += x.memGB
	for k, u := range x.load {
		g.load[k] += u
	}
	g.kappa = min(g.kappa, x.kappa)
	g.setPrice(s.p, class)
	s.count(i, 1)
}
