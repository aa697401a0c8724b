package boost

import "math"

// minGain is what rounding alone may gain.
const minGain = 1e-12

// node is a question, or a leaf where feature is -1.
type node struct {
	feature     int32
	bin         uint8 // goes left up to it
	missingLeft bool
	left, right int32
	cut         float64 // values up to it go left
	value       float64
}

type tree struct{ nodes []node }

// value returns the leaf's that a row of features falls in.
func (t *tree) value(x []float64) float64 {
	n := &t.nodes[0]
	for n.feature >= 0 {
		v := x[n.feature]
		if v <= n.cut || (n.missingLeft && math.IsNaN(v)) {
			n = &t.nodes[n.left]
		} else {
			n = &t.nodes[n.right]
		}
	}
	return n.value
}

func (t *tree) binnedValue(d *binnedRows, row int) float64 {
	n := &t.nodes[0]
	for n.feature >= 0 {
		if n.goesLeft(d.columns[n.feature][row]) {
			n = &t.nodes[n.left]
		} else {
			n = &t.nodes[n.right]
		}
	}
	return n.value
}

func (n *node) goesLeft(b uint8) bool {
	if b == 0 {
		return n.missingLeft
	}
	return b <= n.bin
}

// binSums is what a histogram knows of one bin of one feature.
type binSums struct {
	gradient, weight float64
	rows             int
}

// histogram has a cell for each bin of each feature that a tree may ask for.
type histogram [][maxBins + 1]binSums

// leaf is a leaf on its way: rows order[from:to], and its best split.
type leaf struct {
	node             int32
	from, to         int
	sums             histogram
	gradient, weight float64
	split            split
}

type split struct {
	gain        float64
	feature     int
	bin         uint8
	missingLeft bool
}

// grow grows a tree, the most promising leaf first, and gives leaves the quantile
// of their residuals.
func (g *treeGrower) grow() tree {
	t := tree{nodes: []node{{feature: -1}}}
	root := leaf{to: len(g.order), sums: g.histogram()}
	g.fillHistogram(&root)
	leaves := []leaf{root}
	for len(leaves) < g.s.Leaves {
		best := 0
		for i := range leaves {
			if leaves[i].split.gain > leaves[best].split.gain {
				best = i
			}
		}
		if leaves[best].split.gain <= 0 {
			break
		}
		left, right := g.splitLeaf(&t, &leaves[best])
		leaves[best] = left
		leaves = append(leaves, right)
	}
	for i := range leaves {
		l := &leaves[i]
		rows := g.order[l.from:l.to]
		n := float64(len(rows))
		t.nodes[l.node].value = g.s.Rate * g.quantile(rows) * n / (n + g.s.Smoothing)
		g.freeHistograms = append(g.freeHistograms, l.sums)
	}
	return t
}

func (g *treeGrower) histogram() histogram {
	if n := len(g.freeHistograms); n > 0 {
		h := g.freeHistograms[n-1]
		g.freeHistograms = g.freeHistograms[:n-1]
		return h
	}
	return make(histogram, len(g.features))
}

// fillHistogram fills a leaf's histogram and finds its best split.
func (g *treeGrower) fillHistogram(l *leaf) {
	clear(l.sums)
	rows := g.order[l.from:l.to]
	for k, f := range g.features {
		column, cells := g.data.columns[f], &l.sums[k]
		for _, i := range rows {
			c := &cells[column[i]]
			c.gradient += g.gradient[i]
			c.weight += g.weights[i]
			c.rows++
		}
	}
	g.total(l)
	g.findSplit(l)
}

func (g *treeGrower) total(l *leaf) {
	l.gradient, l.weight = 0, 0
	for i := range l.sums[0] {
		l.gradient += l.sums[0][i].gradient
		l.weight += l.sums[0][i].weight
	}
}

// splitLeaf carries a leaf's split out. The smaller part is counted, the other one is
// what remains of the whole.
func (g *treeGrower) splitLeaf(t *tree, l *leaf) (left, right leaf) {
	s := &l.split
	n := &t.nodes[l.node]
	n.feature, n.bin, n.missingLeft = int32(g.features[s.feature]), s.bin, s.missingLeft
	cuts := g.data.cuts[n.feature]
	n.cut = math.Inf(1)
	if int(s.bin) <= len(cuts) && s.bin > 0 {
		n.cut = cuts[s.bin-1]
	} else if s.bin == 0 {
		n.cut = math.Inf(-1)
	}
	n.left, n.right = int32(len(t.nodes)), int32(len(t.nodes)+1)
	left = leaf{node: n.left, from: l.from, to: g.partition(l, n)}
	right = leaf{node: n.right, from: left.to, to: l.to}
	t.nodes = append(t.nodes, node{feature: -1}, node{feature: -1})

	small, large := &left, &right
	if right.to-right.from < left.to-left.from {
		small, large = large, small
	}
	small.sums = g.histogram()
	g.fillHistogram(small)
	large.sums = l.sums
	for k := range large.sums {
		for b := range large.sums[k] {
			c, o := &large.sums[k][b], &small.sums[k][b]
			c.gradient -= o.gradient
			c.weight -= o.weight
			c.rows -= o.rows
		}
	}
	g.total(large)
	g.findSplit(large)
	return left, right
}

// partition brings a leaf's rows that go left before the others and says where
// those begin.
func (g *treeGrower) partition(l *leaf, n *node) int {
	column := g.data.columns[n.feature]
	rows := g.order[l.from:l.to]
	spare, k := g.scratch[:0], 0
	for _, i := range rows {
		if n.goesLeft(column[i]) {
			rows[k] = i
			k++
		} else {
			spare = append(spare, i)
		}
	}
	copy(rows[k:], spare)
	return l.from + k
}

// findSplit finds the split that gains most; gain 0 where none is worth it.
func (g *treeGrower) findSplit(l *leaf) {
	l.split = split{}
	if l.to-l.from < 2*g.s.MinLeaf {
		return
	}
	for k := range g.features {
		cells := l.sums[k][:len(g.data.cuts[g.features[k]])+2]
		g.findSplitIn(l, k, cells)
	}
}

// findSplitIn looks for a better split in one feature's bins, with the rows where it
// isn't known on either side.
func (g *treeGrower) findSplitIn(l *leaf, feature int, cells []binSums) {
	missing := cells[0]
	var sum binSums
	for b := range len(cells) - 1 {
		if b > 0 {
			sum.add(&cells[b])
		}
		g.considerSplit(l, &sum, split{feature: feature, bin: uint8(b)})
		if missing.rows > 0 {
			with := sum
			with.add(&missing)
			g.considerSplit(l, &with, split{feature: feature, bin: uint8(b), missingLeft: true})
		}
	}
}

func (c *binSums) add(other *binSums) {
	c.gradient += other.gradient
	c.weight += other.weight
	c.rows += other.rows
}

// considerSplit takes a split that sends some rows left, if it gains more than the best
// one so far.
func (g *treeGrower) considerSplit(l *leaf, left *binSums, s split) {
	if left.rows < g.s.MinLeaf || l.to-l.from-left.rows < g.s.MinLeaf {
		return
	}
	right := l.gradient - left.gradient
	s.gain = left.gradient*left.gradient/(left.weight+g.s.Smoothing) +
		right*right/(l.weight-left.weight+g.s.Smoothing) - l.gradient*l.gradient/(l.weight+g.s.Smoothing)
	if s.gain > l.split.gain+minGain {
		l.split = s
	}
}
