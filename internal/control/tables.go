package control

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/learn"
)

// table is the clocks of a GPU that may be set, under some settings.
type table struct {
	hash    uint64 // tells GPUs with other clocks apart
	base    dvfsmodel.Setting
	pairs   []dvfsmodel.Setting // that the device has
	allowed []dvfsmodel.Setting // of them, what the administrator allows
}

// supports reports whether the device has a pair of clocks.
func (t *table) supports(pair dvfsmodel.Setting) bool {
	_, found := slices.BinarySearchFunc(t.pairs, pair, comparePairs)
	return found
}

func comparePairs(a, b dvfsmodel.Setting) int {
	return cmp.Or(cmp.Compare(a.Mem, b.Mem), cmp.Compare(a.Core, b.Core))
}

// tables keeps tables: a cluster has few kinds of GPUs.
type tables struct {
	mu   sync.RWMutex
	seed maphash.Seed
	kept map[tableKey]*table
}

type tableKey struct {
	settings *Settings
	clocks   uint64
}

const maxTables = 256

// get is the table of a request's GPUs.
func (t *tables) get(s *Settings, r *DecideRequest) *table {
	key := tableKey{s, t.hash(r)}
	t.mu.RLock()
	found := t.kept[key]
	t.mu.RUnlock()
	if found != nil {
		return found
	}
	fresh := newTable(s, r)
	fresh.hash = key.clocks
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) >= maxTables {
		clear(t.kept)
	}
	t.kept[key] = fresh
	return fresh
}

// hash tells requests with different GPUs apart. Requests come from root, so
// that nobody tries to make two alike.
func (t *tables) hash(r *DecideRequest) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	_, _ = h.WriteString(r.GPUModel)
	var raw [8]byte
	add := func(f dvfsmodel.MHz) {
		binary.LittleEndian.PutUint64(raw[:], math.Float64bits(float64(f)))
		_, _ = h.Write(raw[:])
	}
	add(r.Default.Core)
	add(r.Default.Mem)
	for _, g := range r.Clocks {
		add(g.Mem)
		add(-dvfsmodel.MHz(len(g.Core)))
		for _, core := range g.Core {
			add(core)
		}
	}
	return h.Sum64()
}

// newTable works out the default clocks and what may be set. Without clocks it
// is empty.
func newTable(s *Settings, r *DecideRequest) *table {
	t := &table{}
	for _, g := range r.Clocks {
		for _, core := range g.Core {
			t.pairs = append(t.pairs, dvfsmodel.Setting{Core: core, Mem: g.Mem})
		}
	}
	if len(t.pairs) == 0 {
		return t
	}
	slices.SortFunc(t.pairs, comparePairs)
	t.pairs = slices.Compact(t.pairs)
	t.setBase(s, r)
	for _, pair := range t.pairs {
		if s.Live.Allows(pair.Core, pair.Mem, t.base) {
			t.allowed = append(t.allowed, pair)
		}
	}
	return t
}

// setBase finds the default clocks: those of the request, else of the profile,
// else the highest.
func (t *table) setBase(s *Settings, r *DecideRequest) {
	top := t.pairs[len(t.pairs)-1]
	t.base = top
	p, err := s.Profiles.Lookup(r.GPUModel)
	if err == nil && t.supports(dvfsmodel.Setting{Core: p.Default.Core, Mem: p.Default.Mem}) {
		t.base = p.Default
	}
	asked := dvfsmodel.Setting{
		Core: cmp.Or(r.Default.Core, t.base.Core), Mem: cmp.Or(r.Default.Mem, t.base.Mem),
	}
	if t.supports(asked) {
		t.base = asked
	}
}

// tableOf is the clocks of a GPU model as agents last said; nil: none did since the
// start.
func (c *Controller) tableOf(gpuModel string) *table {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clocks[gpuModel]
}

// gpu is what is known of a GPU model, for learning.
func (c *Controller) gpu(gpuModel string) learn.GPU {
	s := c.settings.Load()
	gpu := learn.GPU{HostW: s.hostPower(gpuModel)}
	if seen := c.tableOf(gpuModel); seen != nil {
		gpu.Base, gpu.Allowed = seen.base, seen.allowed
	}
	if p, err := s.Profiles.Lookup(gpuModel); err == nil {
		gpu.Default = p.Default
	}
	return gpu
}
