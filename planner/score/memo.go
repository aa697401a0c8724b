package score

import "github.com/epplan/epplan/planner/fleet"

// class is all of a node's state that a scorer may look at: many nodes of a
// cluster are in the same.
type class struct {
	kind      *fleet.Kind
	cpu       int64
	gpu       [fleet.MaxGPUs]uint16 // ascending
	asleep    bool
	residents uint32
}

// classes numbers the classes that nodes are in.
type classes struct {
	numbers map[class]uint32
	most    int
}

func newClasses(most int) classes {
	return classes{numbers: make(map[class]uint32), most: most}
}

// of is the number of a node's class. The node's GPUs are sorted.
func (c *classes) of(n *fleet.Node) uint32 {
	key := class{n.Kind, n.CPU, n.GPU, n.Asleep, n.TaskKinds()}
	number, known := c.numbers[key]
	if !known {
		number = uint32(len(c.numbers))
		c.numbers[key] = number
	}
	return number
}

// full tells that it is time to forget classes in which no node is any more.
func (c *classes) full() bool { return len(c.numbers) >= c.most }

// memo remembers the scores of a shape of task on a class of nodes: as many as
// there is room for, the latest.
type memo struct {
	parts  int
	keys   []uint64  // as many as a power of two
	scores []float64 // parts for each key
}

func newMemo(parts, size int) memo {
	return memo{parts: parts, keys: make([]uint64, size), scores: make([]float64, size*parts)}
}

// at is the place for the scores of a shape, counted from 1, and a class, and
// whether they are there. If not, the caller fills them in.
func (m *memo) at(shape, class uint32) (scores []float64, known bool) {
	key := uint64(shape)<<32 | uint64(class)
	slot := int(key * 0x9e3779b97f4a7c15 >> 32 & uint64(len(m.keys)-1))
	known = m.keys[slot] == key
	m.keys[slot] = key
	return m.scores[slot*m.parts : (slot+1)*m.parts], known
}

// forget makes room for all.
func (m *memo) forget() { clear(m.keys) }
