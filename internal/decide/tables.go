package decide

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
)

// ClockTable is the clocks of a GPU that may be set, under some settings. Its lists go
// up by memory clock and then by core clock, and nobody changes them.
type ClockTable struct {
	hash    uint64              // tells GPUs with other clocks, or under other ceilings, apart
	Base    dvfsmodel.Setting   // the default clocks: no higher than the site's
	Pairs   []dvfsmodel.Setting // that the device has
	Allowed []dvfsmodel.Setting // of them, what the administrator allows
	// Site are the site's clocks where they are below the device's own default ones or its highest; zero: the
	// site doesn't limit it.
	Site dvfsmodel.Setting
}

// isUnderSite reports whether clocks are no higher than the site's.
func (t *ClockTable) isUnderSite(pair dvfsmodel.Setting) bool { return pair.AtMost(t.Site) == pair }

// supports reports whether the device has a pair of clocks.
func (t *ClockTable) supports(pair dvfsmodel.Setting) bool {
	_, found := slices.BinarySearchFunc(t.Pairs, pair, comparePairs)
	return found
}

func comparePairs(a, b dvfsmodel.Setting) int {
	return cmp.Or(cmp.Compare(a.Mem, b.Mem), cmp.Compare(a.Core, b.Core))
}

// tableCache keeps tables: a cluster has few kinds of GPUs.
type tableCache struct {
	mu    sync.RWMutex
	seed  maphash.Seed
	byKey map[tableKey]*ClockTable
	pairs int // in all of them
}

type tableKey struct {
	settings *Settings
	clocks   uint64
	site     dvfsmodel.Setting
}

const (
	maxTables     = 256
	maxTablePairs = 100_000
)

// get returns the table of a request's GPUs under the site's clocks.
func (t *tableCache) get(s *Settings, r *epdapi.DecideRequest, site dvfsmodel.Setting) *ClockTable {
	key := tableKey{s, t.hash(r, site), site}
	t.mu.RLock()
	found := t.byKey[key]
	t.mu.RUnlock()
	if found != nil {
		return found
	}
	fresh := newTable(s, r, site)
	fresh.hash = key.clocks
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pairs += len(fresh.Pairs); len(t.byKey) >= maxTables || t.pairs > maxTablePairs {
		clear(t.byKey)
		t.pairs = len(fresh.Pairs)
	}
	t.byKey[key] = fresh
	return fresh
}

// hash tells requests with different GPUs, or ceilings, apart. Requests come from root, so
// that nobody tries to make two alike.
func (t *tableCache) hash(r *epdapi.DecideRequest, site dvfsmodel.Setting) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	_, _ = h.WriteString(r.GPUModel)
	var raw [8]byte
	add := func(f dvfsmodel.MHz) {
		binary.LittleEndian.PutUint64(raw[:], math.Float64bits(float64(f)))
		_, _ = h.Write(raw[:])
	}
	add(site.Core)
	add(site.Mem)
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

// newTable works out the default clocks and what may be set, both no higher than the site's clocks. Without
// clocks it is empty.
func newTable(s *Settings, r *epdapi.DecideRequest, site dvfsmodel.Setting) *ClockTable {
	t := &ClockTable{}
	for _, g := range r.Clocks {
		for _, core := range g.Core {
			t.Pairs = append(t.Pairs, dvfsmodel.Setting{Core: core, Mem: g.Mem})
		}
	}
	if len(t.Pairs) == 0 {
		return t
	}
	slices.SortFunc(t.Pairs, comparePairs)
	t.Pairs = slices.Compact(t.Pairs)
	t.setBase(s, r)
	t.limit(site)
	for _, pair := range t.Pairs {
		if t.isUnderSite(pair) && s.Live.AllowsClocks(pair.Core, pair.Mem, t.Base) {
			t.Allowed = append(t.Allowed, pair)
		}
	}
	return t
}

// setBase finds the default clocks: those of the request, else of the profile,
// else the highest.
func (t *ClockTable) setBase(s *Settings, r *epdapi.DecideRequest) {
	top := t.Pairs[len(t.Pairs)-1]
	t.Base = top
	p := s.Profiles.Find(r.GPUModel)
	if p != nil && t.supports(dvfsmodel.Setting{Core: p.Default.Core, Mem: p.Default.Mem}) {
		t.Base = p.Default
	}
	asked := dvfsmodel.Setting{
		Core: cmp.Or(r.Default.Core, t.Base.Core), Mem: cmp.Or(r.Default.Mem, t.Base.Mem),
	}
	if t.supports(asked) {
		t.Base = asked
	}
}

// limit has the site's clocks be the highest, where the device has higher ones: the default clocks are then the
// highest that are below them and below its own, or its lowest.
func (t *ClockTable) limit(site dvfsmodel.Setting) {
	t.Site = site
	if !slices.ContainsFunc(t.Pairs, func(pair dvfsmodel.Setting) bool { return !t.isUnderSite(pair) }) {
		t.Site = dvfsmodel.Setting{}
		return
	}
	most, base := t.Base.AtMost(site), t.Pairs[0]
	for _, pair := range t.Pairs {
		if pair.Core <= most.Core && pair.Mem <= most.Mem {
			base = pair
		}
	}
	t.Base = base
}
