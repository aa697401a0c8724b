package fleet

import "slices"

// FragmentationMeter computes F_n(M) as [Fragmentation] does, to the last bit and faster: it
// sorts out once per kind of node what each class can't use, and remembers
// states that it met. It is not safe for concurrent use.
type FragmentationMeter struct {
	workload Workload
	shares   []uint16                   // asked of one GPU, each once, ascending
	below    []struct{ count, sum int } // GPUs of the state at hand with less than each share
	charts   map[*Kind]*workloadView
	last     *workloadView
	memory   StateCache[float64]
}

// cacheSize is the number of states that a FragmentationMeter remembers.
const cacheSize = 1 << 13

// workloadView is the target workload as the nodes of a kind see it. Each list keeps
// the workload's order.
type workloadView struct {
	kind   *Kind
	cpu    []classNeed // classes without GPUs
	gpu    []classNeed
	others []float64 // probabilities of the classes that want other models
}

type classNeed struct {
	p     float64
	cpu   int64
	share int // place in FragmentationMeter.shares
	gpus  int
}

// NewFragmentationMeter prepares F for a target workload.
func NewFragmentationMeter(m Workload) *FragmentationMeter {
	f := &FragmentationMeter{
		workload: m, charts: make(map[*Kind]*workloadView), memory: NewStateCache[float64](cacheSize),
	}
	for i := range m {
		if m[i].GPUs > 0 {
			f.shares = append(f.shares, uint16(m[i].Milli))
		}
	}
	slices.Sort(f.shares)
	f.shares = slices.Compact(f.shares)
	f.below = make([]struct{ count, sum int }, len(f.shares))
	return f
}

func (f *FragmentationMeter) viewOf(k *Kind) *workloadView {
	if f.last != nil && f.last.kind == k {
		return f.last
	}
	c := f.charts[k]
	if c == nil {
		c = f.newView(k)
		f.charts[k] = c
	}
	f.last = c
	return c
}

func (f *FragmentationMeter) newView(k *Kind) *workloadView {
	c := &workloadView{kind: k}
	for i := range f.workload {
		m := &f.workload[i]
		switch {
		case m.GPUs == 0:
			c.cpu = append(c.cpu, classNeed{p: m.P, cpu: m.CPU})
		case m.Accepts(k.Model):
			share, _ := slices.BinarySearch(f.shares, uint16(m.Milli))
			c.gpu = append(c.gpu, classNeed{p: m.P, cpu: m.CPU, share: share, gpus: m.GPUs})
		default:
			c.others = append(c.others, m.P)
		}
	}
	return c
}

// OfNode is F_n(M) of a node, milli-GPU.
func (f *FragmentationMeter) OfNode(n *Node) float64 {
	s, known := f.memory.Lookup(n)
	if !known {
		s.Value = f.ofState(f.viewOf(n.Kind), s.CPU, s.GPU[:n.Kind.GPUs])
	}
	return s.Value
}

// ofState adds up in the order of [Fragmentation.OfNode]: the six sums are independent.
func (f *FragmentationMeter) ofState(c *workloadView, cpu int64, sorted []uint16) float64 {
	left := 0
	for _, g := range sorted {
		left += int(g)
	}
	if left == 0 {
		return 0
	}
	at, sum := 0, 0
	for i, share := range f.shares {
		for at < len(sorted) && sorted[at] < share {
			sum += int(sorted[at])
			at++
		}
		f.below[i].count, f.below[i].sum = at, sum
	}
	var sums [6]float64
	whole := float64(left)
	for i := range c.gpu {
		m := &c.gpu[i]
		b := &f.below[m.share]
		enoughGPU, enoughCPU := len(sorted)-b.count >= m.gpus, m.cpu <= cpu
		switch {
		case enoughGPU && enoughCPU:
			sums[lacksGPU] += float64(m.p * float64(b.sum))
		case enoughGPU:
			sums[lacksCPU] += float64(m.p * whole)
		case enoughCPU:
			sums[lacksGPU] += float64(m.p * whole)
		default:
			sums[lacksBoth] += float64(m.p * whole)
		}
	}
	for i := range c.cpu {
		m := &c.cpu[i]
		if m.cpu <= cpu {
			sums[noGPUTask] += float64(m.p * whole)
		} else {
			sums[noGPUTaskLacksCPU] += float64(m.p * whole)
		}
	}
	for _, p := range c.others {
		sums[wrongModel] += float64(p * whole)
	}
	total := 0.0
	for _, s := range sums {
		total += s
	}
	return total
}

// sortShares sorts a node's few GPU shares ascending.
func sortShares(shares []uint16) {
	for i := 1; i < len(shares); i++ {
		x := shares[i]
		j := i
		for ; j > 0 && shares[j-1] > x; j-- {
			shares[j] = shares[j-1]
		}
		shares[j] = x
	}
}

// WithSortedGPUs returns a node of which only the GPUs' order differs: ascending by what is
// left. Nodes that differ in nothing else have the same power and F.
func (n *Node) WithSortedGPUs() Node {
	sorted := *n
	sortShares(sorted.GPU[:n.Kind.GPUs])
	return sorted
}
