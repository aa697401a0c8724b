package place

import (
	"cmp"
	"math"
	"slices"
)

// nodeTurn is a node of a schedule that could take its part of a gang: from when on behind
// what is planned there; in front of it, until when.
type nodeTurn struct {
	node int
	at   float64
}

// tryGang looks for the nodes of a class where a gang costs least. Of those that are free
// for it by a time it takes the ones that are on longest anyway, and it looks at each time
// at which one more is free; in front of what is planned it takes nodes that are idle for
// about as long.
func (l *listScheduler) tryGang(b *nodeRequest, best *reservation) {
	gaps := l.listFreeTimes(b)
	slices.SortFunc(l.turns, compareTurns)
	l.apt = l.apt[:0]
	for i, next := range l.turns {
		if b.wait*(next.at-l.p.v.Now)+b.least >= best.cost {
			break
		}
		if at, _ := slices.BinarySearchFunc(l.apt, next, l.compareApt); at < b.choice.nodes {
			l.apt = slices.Insert(l.apt, at, next)
			l.apt = l.apt[:min(len(l.apt), b.choice.nodes)]
		}
		if last := i+1 == len(l.turns) || l.turns[i+1].at > next.at; last && len(l.apt) == b.choice.nodes {
			l.tryTurns(b, l.apt, best)
		}
	}
	if !gaps {
		return
	}
	l.inFrontOfAll(b)
	slices.SortFunc(l.turns, compareTurns)
	for i := 0; i+b.choice.nodes <= len(l.turns); i++ {
		switch until := l.turns[i].at; {
		case math.IsInf(until, 1): // nothing is planned on any: it was looked at
			return
		case until >= l.p.v.Now+b.choice.quotes[0].Point.Time:
			l.tryTurns(b, l.turns[i:i+b.choice.nodes], best)
		}
	}
}

// listFreeTimes lists from when on each node of a class is free for a gang. It reports whether
// one of them has idle GPUs in front of what is planned.
func (l *listScheduler) listFreeTimes(b *nodeRequest) (gaps bool) {
	l.turns = l.turns[:0]
	fresh := b.choice.nodes
	for n := range l.to.nodes {
		node := &l.to.nodes[n]
		if node.class != b.choice.class || (!node.used && fresh == 0) {
			continue
		}
		if !node.used {
			fresh--
		}
		gaps = gaps || node.gaps
		free, _ := l.freeFrom(b, n)
		l.turns = append(l.turns, nodeTurn{n, free})
	}
	return gaps
}

// inFrontOfAll keeps of the nodes listed those that have idle GPUs for a gang, until when.
func (l *listScheduler) inFrontOfAll(b *nodeRequest) {
	t := &l.p.v.Problem.Tasks[b.job.task]
	kept := l.turns[:0]
	for _, at := range l.turns {
		node := &l.to.nodes[at.node]
		until, ok := idleUntil(l.to.gpus[node.first:node.first+node.count], b.choice.gpus)
		if ok && node.room.hasCPUsAndMemory(t, float64(b.choice.nodes)) {
			kept = append(kept, nodeTurn{at.node, until})
		}
	}
	l.turns = kept
}

// tryTurns is [listScheduler.tryNodes] for the nodes of some turns.
func (l *listScheduler) tryTurns(b *nodeRequest, turns []nodeTurn, best *reservation) {
	l.set = l.set[:0]
	for i := range turns {
		l.set = append(l.set, turns[i].node)
	}
	l.tryNodes(b, l.set, best)
}

func compareTurns(a, b nodeTurn) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node))
}

// compareApt orders nodes for a gang: those first that are on longest anyway, then those
// that wait least for the others.
func (l *listScheduler) compareApt(a, b nodeTurn) int {
	x, y := &l.to.nodes[a.node], &l.to.nodes[b.node]
	if x.used != y.used {
		if x.used {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(y.last, x.last), cmp.Compare(b.at, a.at), cmp.Compare(a.node, b.node))
}
