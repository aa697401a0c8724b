package score

// recentChanges lists the nodes of a cluster by when they last changed, the latest
// first, each once. Who remembers when it last looked finds what changed since
// without looking at anything else.
type recentChanges struct {
	now        uint64
	stamps     []uint64 // by node: when it last changed
	next, prev []int32  // by node: its neighbours; none: -1
	head       int32
}

func newRecentChanges(nodes int) recentChanges {
	j := recentChanges{
		stamps: make([]uint64, nodes), next: make([]int32, nodes), prev: make([]int32, nodes), head: -1,
	}
	for i := range nodes {
		j.next[i], j.prev[i] = int32(i)+1, int32(i)-1
	}
	if nodes > 0 {
		j.head, j.next[nodes-1] = 0, -1
	}
	return j
}

func (j *recentChanges) touch(node int) {
	j.now++
	j.stamps[node] = j.now
	i := int32(node)
	if j.head == i {
		return
	}
	j.next[j.prev[i]] = j.next[i]
	if j.next[i] >= 0 {
		j.prev[j.next[i]] = j.prev[i]
	}
	j.prev[j.head], j.next[i], j.prev[i] = i, j.head, -1
	j.head = i
}
