package fleet

// StateCache remembers a value for each state of a node that was met, memory and the order
// of GPUs aside: as many as there is room for, the latest. It is not safe for concurrent
// use.
type StateCache[V any] struct {
	seeds map[*Kind]uint64 // for the hash of each
	last  *Kind
	seed  uint64           // of the last
	slots []CachedState[V] // as many as a power of two
}

// CachedState is a state and its value.
type CachedState[V any] struct {
	Kind   *Kind
	CPU    int64
	GPU    [MaxGPUs]uint16 // ascending
	Asleep bool
	Value  V
}

// NewStateCache returns a cache of a size, a power of two.
func NewStateCache[V any](size int) StateCache[V] {
	return StateCache[V]{seeds: make(map[*Kind]uint64), slots: make([]CachedState[V], size)}
}

// Lookup returns the place for the value of a node's state, and whether it is there. If not,
// the caller fills it in.
func (c *StateCache[V]) Lookup(n *Node) (s *CachedState[V], known bool) {
	if c.last != n.Kind {
		if c.seeds[n.Kind] == 0 {
			c.seeds[n.Kind] = uint64(len(c.seeds)+1) * 0x9e3779b97f4a7c15
		}
		c.last, c.seed = n.Kind, c.seeds[n.Kind]
	}
	sorted := n.GPU
	sortShares(sorted[:n.Kind.GPUs])
	hash := c.seed ^ uint64(n.CPU)*0xbf58476d1ce4e5b9
	for _, g := range sorted[:n.Kind.GPUs] {
		hash = (hash ^ uint64(g)) * 0x94d049bb133111eb
	}
	s = &c.slots[hash>>40&uint64(len(c.slots)-1)]
	if s.Kind == n.Kind && s.CPU == n.CPU && s.GPU == sorted && s.Asleep == n.Asleep {
		return s, true
	}
	s.Kind, s.CPU, s.GPU, s.Asleep = n.Kind, n.CPU, sorted, n.Asleep
	return s, false
}
