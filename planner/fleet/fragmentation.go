package fleet

// Fragmentation computes F_n(M): how much of a node's free GPU capacity a task
// drawn from the target workload is expected to be unable to use, milli-GPU
// (PWR+FGD paper, equation 4; cases in data/openb/SEMANTICS.md, section 5).
type Fragmentation struct {
	classes []TaskClass
}

// NewFragmentation prepares F for a target workload.
func NewFragmentation(m Workload) *Fragmentation { return &Fragmentation{classes: m} }

// OfNode is F_n(M) of a node. The order in which it adds up is part of its
// meaning: the FGD score truncates, so that the last bit decides.
func (f *Fragmentation) OfNode(n *Node) float64 {
	var sums [6]float64
	for i := range f.classes {
		c := &f.classes[i]
		fragment, why := n.unusableMilli(&c.Demand)
		sums[why] += float64(c.P * float64(fragment))
	}
	total := 0.0
	for _, s := range sums {
		total += s
	}
	return total
}

// unusableReason tells why a class can't use a node, or that it can't use all of it.
type unusableReason int

// The reasons in the order in which their sums are added up.
const (
	lacksBoth unusableReason = iota
	lacksGPU
	lacksCPU
	noGPUTask
	noGPUTaskLacksCPU
	wrongModel
)

// unusableMilli is F_n(m): the milli-GPU of the node that a task of the class can't
// use.
func (n *Node) unusableMilli(d *Demand) (int, unusableReason) {
	left := n.FreeMilli()
	switch enough := d.CPU <= n.CPU; {
	case d.GPUs == 0 && enough:
		return left, noGPUTask
	case d.GPUs == 0:
		return left, noGPUTaskLacksCPU
	case !d.Accepts(n.Kind.Model):
		return left, wrongModel
	default:
		return n.unusableOf(d, left, enough)
	}
}

// unusableOf returns the milli-GPU that a task of a fitting model can't use of a node, of which so much is
// left, and what it lacks.
func (n *Node) unusableOf(d *Demand, left int, enoughCPU bool) (int, unusableReason) {
	usable, lost := 0, 0
	for _, g := range n.GPU[:n.Kind.GPUs] {
		if int(g) >= d.Milli {
			usable++
		} else {
			lost += int(g)
		}
	}
	switch enough := usable >= d.GPUs; {
	case enough && enoughCPU:
		return lost, lacksGPU
	case enough:
		return left, lacksCPU
	case enoughCPU:
		return left, lacksGPU
	}
	return left, lacksBoth
}
