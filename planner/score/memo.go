package score

import "github.com/epplan/epplan/planner/fleet"

// nodeClass is all of a node's state that a scorer may look at: many nodes of a
// cluster are in the same.
type nodeClass struct {
	kind      *fleet.Kind
	cpu       int64
	gpu       [fleet.MaxGPUs]uint16 // ascending
	asleep    bool
	residents uint32
}

// nodeClasses numbers the classes that nodes are in.
type nodeClasses struct {
	numbers map[nodeClass]uint32
	most    int
}

func newNodeClasses(most int) nodeClasses {
	return nodeClasses{numbers: make(map[nodeClass]uint32), most: most}
}

// numberOf returns the number of a node's class. The node's GPUs are sorted.
func (c *nodeClasses) numberOf(n *fleet.Node) uint32 {
	key := nodeClass{n.Kind, n.CPU, n.GPU, n.Asleep, n.TaskKinds()}
	number, known := c.numbers[key]
	if !known {
		number = uint32(len(c.numbers))
		c.numbers[key] = number
	}
	return number
}

// isFull tells that it is time to forget classes in which no node is any more.
func (c *nodeClasses) isFull() bool { return len(c.numbers) >= c.most }

// scoreCache remembers the scores of a shape of task on a class of nodes: as many as
// there is room for, the latest.
type scoreCache struct {
	parts  int
	keys   []uint64  // as many as a power of two
	scores []float64 // parts for each key
}

func newScoreCache(parts, size int) scoreCache {
	return scoreCache{parts: parts, keys: make([]uint64, size), scores: make([]float64, size*parts)}
}

// lookup returns the place for the scores of a shape, counted from 1, and a class, and
// whether they are there. If not, the caller fills them in.
func (m *scoreCache) lookup(shape, class uint32) (scores []float64, known bool) {
	key := uint64(shape)<<32 | uint64(class)
	slot := int(key * 0x9e3779b97f4a7c15 >> 32 & uint64(len(m.keys)-1))
	known = m.keys[slot] == key
	m.keys[slot] = key
	return m.scores[slot*m.parts : (slot+1)*m.parts], known
}

func (m *scoreCache) reset() { clear(m.keys) }
