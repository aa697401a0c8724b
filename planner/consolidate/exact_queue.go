package consolidate

// parts is a queue of parts by bound, deep ones first.
type parts []*part

func (q parts) Len() int { return len(q) }

func (q parts) Less(i, j int) bool {
	if q[i].bound != q[j].bound {
		return q[i].bound < q[j].bound
	}
	return q[i].depth > q[j].depth
}

func (q parts) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds a part.
func (q *parts) Push(x any) {
	if n, ok := x.(*part); ok {
		*q = append(*q, n)
	}
}

// Pop takes the last part.
func (q *parts) Pop() any {
	old := *q
	n := old[len(old)-1]
	*q = old[:len(old)-1]
	return n
}
