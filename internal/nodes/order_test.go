package nodes

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
)

// plainly is reports with the largest one looked for among all: what [Reports.set]
// is held against.
type plainly struct {
	byNode      map[string]*Report
	bytes, most int
}

// set does what [Reports.set] does.
func (p *plainly) set(node string, h *Report) {
	if old := p.byNode[node]; old != nil {
		p.bytes -= old.bytes
		delete(p.byNode, node)
	}
	if h != nil {
		p.bytes += h.bytes
		p.byNode[node] = h
	}
	for p.bytes > p.most && len(p.byNode) > 0 {
		var largest *Report
		for _, one := range p.byNode {
			if largest == nil || one.before(largest) {
				largest = one
			}
		}
		p.bytes -= largest.bytes
		delete(p.byNode, largest.Message.Node)
		if !largest.bare {
			l := largest.withoutRuns()
			p.bytes += l.bytes
			p.byNode[l.Message.Node] = l
		}
	}
}

// ofSize returns a report with a run that takes about so many bytes beside the rest.
func ofSize(node string, bytes int) *Report {
	return newReport(start,
		report(node, 100,
			epdapi.NodeRun{Run: epdapi.Run{ID: "r", Job: 1, HandsOff: strings.Repeat("x", bytes)}}))
}

func TestReportsAreDroppedByTheirSizeAsIfAllWereLookedAt(t *testing.T) {
	const seed, nodes, names = 7, 60, 90
	random := rand.New(rand.NewPCG(seed, 0))
	r := New()
	for step := range 4000 {
		if step%500 == 0 {
			r.most = []int{100 << 10, 400 << 10, 2 << 10, 50 << 10}[random.IntN(4)]
		}
		p := plainly{byNode: r.All(), bytes: r.bytes, most: r.most}
		// Of many lengths, so that lean ones are of many sizes.
		node := fmt.Sprintf("n%0*d", 1+random.IntN(names), random.IntN(nodes))
		var h *Report
		if random.IntN(10) > 0 {
			h = ofSize(node, random.IntN(2000)) // some of one size
		}
		p.set(node, h)
		r.set(node, h)
		checkSame(t, r, &p, step)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// checkSame tells where reports aren't those of the plain way.
func checkSame(tb testing.TB, r *Reports, p *plainly, step int) {
	tb.Helper()
	sum := 0
	for node, h := range r.byNode {
		sum += h.bytes
		if h.Message.Node != node || h.place >= len(r.bySize) || r.bySize[h.place] != h {
			tb.Errorf("step %d: %s isn't in its place", step, node)
		}
		if want := p.byNode[node]; want == nil || want.bytes != h.bytes || want.bare != h.bare {
			tb.Errorf("step %d: %s has %d bytes, plainly %+v", step, node, h.bytes, want)
		}
	}
	if sum != r.bytes || r.bytes != p.bytes || len(r.bySize) != len(r.byNode) ||
		len(p.byNode) != len(r.byNode) {
		tb.Errorf("step %d: %d bytes of %d nodes are counted, %d are there, plainly %d of %d; %d in order",
			step, r.bytes, len(r.byNode), sum, p.bytes, len(p.byNode), len(r.bySize))
	}
}

// BenchmarkReportsOverTheirBound measures what a report costs where those of 10,000
// nodes take more than they may, and what it did where all were looked at.
func BenchmarkReportsOverTheirBound(b *testing.B) {
	const nodes = 10_000
	further := make([]*Report, nodes)
	total := 0
	for i := range further {
		further[i] = ofSize(fmt.Sprintf("n%d", i), 1000+i*7919%nodes)
		total += further[i].bytes
	}
	r := New()
	r.most = total / 2
	p := plainly{byNode: make(map[string]*Report), most: r.most}
	for _, way := range []struct {
		name string
		set  func(string, *Report)
	}{{"by size", r.set}, {"all looked at", p.set}} {
		for _, h := range further {
			way.set(h.Message.Node, h)
		}
		b.Run(way.name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				h := *further[i%nodes]
				way.set(h.Message.Node, &h)
				i++
			}
		})
	}
}
