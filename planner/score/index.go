package score

import (
	"iter"
	"math/bits"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// maxParts is how many parts a rule may have for an Index.
const maxParts = 8

// Index applies a rule as [FullScan] does, and finds the same node, at a cost
// that grows little with the number of nodes. For each distinct demand it
// keeps a [rankedNodes] with what the rule's scorers said of every node. Before a
// choice the shelf catches up with the nodes that changed since its last one.
type Index struct {
	changeTracker
	mix     activeRule
	limits  limits
	ranked  map[fleet.Demand]rankedNodes
	memo    scoreCache
	classes nodeClasses
	class   []uint32   // by node
	own     demandView // how far class has read the journal
	shapes  map[fleet.Demand]uint32
	epoch   int // counts the times that scorers changed their minds
}

// rankedNodes is the nodes that a demand fits on, sorted by score.
type rankedNodes interface {
	view() *demandView
	// restart comes before all nodes are put anew.
	restart()
	// put notes a node's scores; none: it doesn't fit any more.
	put(m *activeRule, node int32, scores []float64)
	// best is the node to choose; below 0 if there is none.
	best(m *activeRule) int32
}

// NewIndex returns a chooser for a cluster, which it owns from now on.
func NewIndex(r Rule, s *fleet.State) Chooser {
	if len(r.Parts) > maxParts {
		return NewFullScan(r, s)
	}
	nodes := s.Len()
	return newIndex(r, s, limits{
		ranked: 64 + 1<<24/max(nodes, 1), classes: 2*nodes + 1<<14,
		memo: 1 << min(8+bits.Len(uint(nodes)), 15),
	})
}

// limits are how much an Index remembers before it starts afresh.
type limits struct{ ranked, classes, memo int }

func newIndex(r Rule, s *fleet.State, l limits) *Index {
	return &Index{
		changeTracker: newChangeTracker(s), mix: newActiveRule(r), limits: l,
		ranked: make(map[fleet.Demand]rankedNodes), shapes: make(map[fleet.Demand]uint32),
		memo: newScoreCache(len(r.Parts), l.memo), classes: newNodeClasses(l.classes),
		class: make([]uint32, s.Len()),
	}
}

// classify brings the classes that nodes are in up to date.
func (c *Index) classify() {
	if c.classes.isFull() {
		c.classes = newNodeClasses(c.limits.classes)
		c.memo.reset()
		c.own.filled = false
	}
	for i := range c.changed(&c.own, 0) {
		c.class[i] = c.classes.numberOf(&c.nodes[i])
	}
}

// Choose looks again at the nodes that changed since a task like this one was
// last asked about.
func (c *Index) Choose(d *fleet.Demand) (node int, gpus planner.GPUSet, ok bool) {
	if c.mix.adapt(c.state) {
		c.epoch++
		c.memo.reset()
	}
	c.classify()
	s := c.ranked[*d]
	if s == nil {
		if len(c.ranked) >= c.limits.ranked {
			clear(c.ranked)
			clear(c.shapes)
			c.memo.reset()
		}
		s = c.newRankedNodes(d)
		c.ranked[*d] = s
	}
	c.refresh(s)
	best := s.best(&c.mix)
	if best < 0 {
		return 0, 0, false
	}
	node = int(best)
	return node, c.mix.chooseGPUs(d, c.state.Node(node)), true
}

// newRankedNodes returns an empty shelf for a demand: a ranking where totals of nodes don't depend on other
// nodes, else a grouping.
func (c *Index) newRankedNodes(d *fleet.Demand) rankedNodes {
	v := c.newDemandView(d)
	shape := *d
	shape.Mem = 0
	v.shape = c.shapes[shape]
	if v.shape == 0 {
		v.shape = uint32(len(c.shapes) + 1)
		c.shapes[shape] = v.shape
	}
	if c.mix.ranked {
		return newTotalRanking(v, len(c.nodes))
	}
	return newScoreGroups(v, len(c.nodes), len(c.mix.parts))
}

func (c *Index) refresh(s rankedNodes) {
	v := s.view()
	if !v.filled || v.epoch != c.epoch {
		s.restart()
	}
	for i := range c.changed(v, c.epoch) {
		c.scoreNode(s, v, i)
	}
}

func (c *Index) scoreNode(s rankedNodes, v *demandView, node int32) {
	n := &c.nodes[node]
	if !v.canFit(n, c.kinds[node]) {
		s.put(&c.mix, node, nil)
		return
	}
	scores, known := c.memo.lookup(v.shape, c.class[node])
	if !known {
		c.mix.score(&v.demand, n, scores)
	}
	s.put(&c.mix, node, scores)
}

// changeTracker keeps the state, the nodes with their GPUs sorted, and the journal
// of changes.
type changeTracker struct {
	stateForwarder
	journal recentChanges
	nodes   []fleet.Node
	kinds   []int32 // by node: its kind
	all     []*fleet.Kind
}

func newChangeTracker(s *fleet.State) changeTracker {
	t := changeTracker{
		stateForwarder: stateForwarder{s}, journal: newRecentChanges(s.Len()), nodes: make([]fleet.Node, s.Len()),
		kinds: make([]int32, s.Len()),
	}
	numbers := make(map[*fleet.Kind]int32)
	for i := range t.nodes {
		t.nodes[i] = s.Node(i).WithSortedGPUs()
		k := t.nodes[i].Kind
		number, known := numbers[k]
		if !known {
			number = int32(len(t.all))
			numbers[k] = number
			t.all = append(t.all, k)
		}
		t.kinds[i] = number
	}
	return t
}

func (t *changeTracker) touch(node int) {
	t.nodes[node] = t.state.Node(node).WithSortedGPUs()
	t.journal.touch(node)
}

// Place puts a task on GPUs of a node.
func (t *changeTracker) Place(node int, d *fleet.Demand, gpus planner.GPUSet) error {
	if err := t.state.Place(node, d, gpus); err != nil {
		return err
	}
	t.touch(node)
	return nil
}

// Release takes a task away again.
func (t *changeTracker) Release(node int, d *fleet.Demand, gpus planner.GPUSet) {
	t.state.Release(node, d, gpus)
	t.touch(node)
}

// Sleep switches an empty node off.
func (t *changeTracker) Sleep(node int) {
	t.state.Sleep(node)
	t.touch(node)
}

// Wake switches a node on.
func (t *changeTracker) Wake(node int) {
	t.state.Wake(node)
	t.touch(node)
}

// demandView is a demand, and how far who serves it has read the journal.
type demandView struct {
	demand  fleet.Demand
	shape   uint32 // the demand without its memory
	accepts []bool // by kind
	seen    uint64
	epoch   int
	filled  bool
}

// changed returns the nodes to look at again; all at first and in a new epoch.
func (t *changeTracker) changed(v *demandView, epoch int) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		if v.filled && v.epoch == epoch {
			for i := t.journal.head; i >= 0 && t.journal.stamps[i] > v.seen; i = t.journal.next[i] {
				if !yield(i) {
					return
				}
			}
		} else {
			for i := range t.nodes {
				if !yield(int32(i)) {
					return
				}
			}
		}
		v.epoch, v.filled, v.seen = epoch, true, t.journal.now
	}
}

// newDemandView returns the view of a demand that has read nothing yet.
func (t *changeTracker) newDemandView(d *fleet.Demand) demandView {
	v := demandView{demand: *d, accepts: make([]bool, len(t.all))}
	for i, k := range t.all {
		v.accepts[i] = d.Accepts(k.Model) && k.GPUs >= d.GPUs
	}
	return v
}

// canFit is [fleet.Node.Fits] for a node with sorted GPUs.
func (v *demandView) canFit(n *fleet.Node, kind int32) bool {
	d := &v.demand
	if d.CPU > n.CPU || d.Mem > n.Mem || !v.accepts[kind] {
		return false
	}
	return d.GPUs == 0 || int(n.GPU[n.Kind.GPUs-d.GPUs]) >= d.Milli
}
