package consolidate

// subproblemQueue is a queue of parts by bound, deep ones first.
type subproblemQueue []*subproblem

func (q subproblemQueue) Len() int { return len(q) }

func (q subproblemQueue) Less(i, j int) bool {
	if q[i].bound != q[j].bound {
		return q[i].bound < q[j].bound
	}
	return q[i].depth > q[j].depth
}

func (q subproblemQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds a part.
func (q *subproblemQueue) Push(x any) {
	if n, ok := x.(*subproblem); ok {
		*q = append(*q, n)
	}
}

// Pop takes the last part.
func (q *subproblemQueue) Pop() any {
	old := *q
	n := old[len(old)-1]
	*q = old[:len(old)-1]
	return n
}
