package decide

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/spelling"
)

// Of so many nodes, and of so many GPU models of each, it is kept what agents said.
const (
	maxNodesSeen    = 100_000
	maxModelsOfNode = 4
)

// SeenGPUs is what agents said of their nodes' GPUs since the start, the last of each. What counts of a GPU
// model is what most nodes say of it: one node alone has no say in what the others have. Its methods may be
// called by several goroutines.
type SeenGPUs struct {
	mu      sync.Mutex
	byNode  map[string][]string // GPU models of a node, the one that was named last first
	byModel map[string]*modelSeen
	named   int // models, so far
	// suspects are the clocks at which somebody else seems to hold a node's GPUs, of nodes that have such.
	suspects map[string]dvfsmodel.MHz
}

// modelSeen is what nodes said of one GPU model.
type modelSeen struct {
	first  int // among the models
	nodes  int // that named it last
	clocks nodeReports[uint64, *ClockTable]
	limits nodeReports[limitKey, limitSeen]
}

// limitSeen is what an agent said of the power limit of a GPU model, of its power profiles, and whether its
// core clock can't be locked.
type limitSeen struct {
	limit     epdapi.PowerLimit
	coreFixed bool
	profiles  []string // workload power profiles
}

type limitKey struct {
	limit     epdapi.PowerLimit
	coreFixed bool
	profiles  string
}

// See notes which GPU model a node has, as its agent says, and at which clock somebody else seems to hold its
// GPUs; 0: nobody does.
func (g *SeenGPUs) See(node, gpuModel string, suspected dvfsmodel.MHz) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.modelOn(node, gpuModel)
	if delete(g.suspects, node); suspected > 0 && g.byNode[node] != nil {
		if g.suspects == nil {
			g.suspects = make(map[string]dvfsmodel.MHz)
		}
		g.suspects[node] = suspected
	}
}

// Suspects returns the nodes of which a GPU model seems to be held down by somebody else, with the clock.
func (g *SeenGPUs) Suspects() map[string]Suspect {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make(map[string]Suspect, len(g.suspects))
	for node, at := range g.suspects {
		all[node] = Suspect{GPUModel: g.byNode[node][0], At: at}
	}
	return all
}

// Suspect is a GPU model of a node that seems to be held at a clock.
type Suspect struct {
	GPUModel string
	At       dvfsmodel.MHz
}

// suspected returns the clock at which somebody else seems to hold a node's GPUs; 0: nobody does.
func (g *SeenGPUs) suspected(node string) dvfsmodel.MHz {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.suspects[node]
}

// note notes what a request says of a node's GPUs, whose clocks are a table.
func (g *SeenGPUs) note(gpuModel string, t *ClockTable, r *epdapi.DecideRequest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.modelOn(r.Node, gpuModel)
	if m == nil || len(t.Pairs) == 0 {
		return
	}
	m.clocks.put(r.Node, t.hash, t)
	if !r.Shared { // else another run may have set a limit
		m.limits.put(r.Node, limitKey{r.PowerLimit, r.CoreFixed, strings.Join(r.Profiles, "\x00")},
			limitSeen{r.PowerLimit, r.CoreFixed, r.Profiles})
	}
}

// modelOn returns what is known of the GPU model that a node names; nil: it names none, or there are too many
// nodes. The caller holds g.mu.
func (g *SeenGPUs) modelOn(node, gpuModel string) *modelSeen {
	named := g.byNode[node]
	if gpuModel == "" || named == nil && len(g.byNode) >= maxNodesSeen {
		return nil
	}
	if g.byNode == nil {
		g.byNode, g.byModel = make(map[string][]string), make(map[string]*modelSeen)
	}
	switch at := slices.Index(named, gpuModel); {
	case at == 0:
		return g.byModel[gpuModel]
	case at > 0:
		named = slices.Delete(named, at, at+1)
	default:
		if len(named) == maxModelsOfNode {
			g.forget(node, named[maxModelsOfNode-1])
			named = named[:maxModelsOfNode-1]
		}
		if g.byModel[gpuModel] == nil {
			g.named++
			g.byModel[gpuModel] = &modelSeen{first: g.named}
		}
		g.byModel[gpuModel].nodes++
	}
	g.byNode[node] = slices.Insert(named, 0, gpuModel)
	return g.byModel[gpuModel]
}

// forget drops what a node said of a GPU model. The caller holds g.mu.
func (g *SeenGPUs) forget(node, gpuModel string) {
	m := g.byModel[gpuModel]
	m.clocks.drop(node)
	m.limits.drop(node)
	if m.nodes--; m.nodes == 0 {
		delete(g.byModel, gpuModel)
	}
}

// Clocks returns those of a GPU model; nil: no agent said since the start.
func (g *SeenGPUs) Clocks(gpuModel string) *ClockTable {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.byModel[gpuModel]; m != nil {
		return m.clocks.most()
	}
	return nil
}

// limit returns the power limit of a GPU model, and what is said with it.
func (g *SeenGPUs) limit(gpuModel string) limitSeen {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.byModel[gpuModel]; m != nil {
		return m.limits.most()
	}
	return limitSeen{}
}

// PowerLimit returns the power limit of a GPU model; zero: no agent said since the start, or none can be set.
func (g *SeenGPUs) PowerLimit(gpuModel string) epdapi.PowerLimit { return g.limit(gpuModel).limit }

// HighestLimit returns the highest power limit that boards of a GPU model take, as any agent says; 0: none
// says.
func (g *SeenGPUs) HighestLimit(gpuModel string) (highest dvfsmodel.Watt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.byModel[gpuModel]; m != nil {
		for key := range m.limits.values {
			highest = max(highest, key.limit.Max)
		}
	}
	return highest
}

// Of returns the GPU model that a node's agent named last; "": it named none since the start.
func (g *SeenGPUs) Of(node string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if named := g.byNode[node]; len(named) > 0 {
		return named[0]
	}
	return ""
}

// Nodes returns how many nodes name a GPU model.
func (g *SeenGPUs) Nodes(gpuModel string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.byModel[gpuModel]; m != nil {
		return m.nodes
	}
	return 0
}

// Models returns the GPU models that nodes name and further ones, in order. Of several spellings of one it
// has the one that most nodes use, of those the one that was used first, and no further ones.
func (g *SeenGPUs) Models(further map[string]bool) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	spellings := make(map[string]string, len(g.byModel)+len(further))
	for _, name := range slices.SortedFunc(maps.Keys(g.byModel), func(a, b string) int {
		x, y := g.byModel[a], g.byModel[b]
		return cmp.Or(cmp.Compare(y.nodes, x.nodes), cmp.Compare(x.first, y.first))
	}) {
		if folded := spelling.Fold(name); spellings[folded] == "" {
			spellings[folded] = name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(further)) {
		if folded := spelling.Fold(name); spellings[folded] == "" {
			spellings[folded] = name
		}
	}
	return slices.Sorted(maps.Values(spellings))
}

// nodeReports is what nodes say of one thing, each of them one value, which a key tells from others.
type nodeReports[K comparable, V any] struct {
	byNode map[string]K
	values map[K]*reportedValue[V]
	count  int // of values, so far
}

type reportedValue[V any] struct {
	last  V
	nodes int
	first int // among the values
}

// put has a node say a value, in place of what it said before.
func (s *nodeReports[K, V]) put(node string, key K, value V) {
	if s.byNode == nil {
		s.byNode, s.values = make(map[string]K), make(map[K]*reportedValue[V])
	}
	if before, known := s.byNode[node]; !known || before != key {
		s.drop(node)
		s.byNode[node] = key
		if s.values[key] == nil {
			s.count++
			s.values[key] = &reportedValue[V]{first: s.count}
		}
		s.values[key].nodes++
	}
	s.values[key].last = value
}

// drop has a node say nothing any more.
func (s *nodeReports[K, V]) drop(node string) {
	key, known := s.byNode[node]
	if !known {
		return
	}
	delete(s.byNode, node)
	if s.values[key].nodes--; s.values[key].nodes == 0 {
		delete(s.values, key)
	}
}

// most returns what most nodes say, of several such values the one that was said first; the zero value: none
// says anything.
func (s *nodeReports[K, V]) most() (value V) {
	var best *reportedValue[V]
	for _, v := range s.values {
		if best == nil || v.nodes > best.nodes || v.nodes == best.nodes && v.first < best.first {
			best = v
		}
	}
	if best != nil {
		value = best.last
	}
	return value
}
