package control

import "sync"

// maxNodes is of how many nodes the GPU model is kept that an agent named.
const maxNodes = 100_000

// nodeModels are the GPU models of nodes, as agents named them.
type nodeModels struct {
	mu sync.Mutex
	of map[string]string // by node
}

// put remembers the GPU model of a node.
func (n *nodeModels) put(node, gpuModel string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = make(map[string]string)
	}
	if _, known := n.of[node]; gpuModel != "" && (known || len(n.of) < maxNodes) {
		n.of[node] = gpuModel
	}
}

// get is the GPU model of a node; "" if no agent named it.
func (n *nodeModels) get(node string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of[node]
}
