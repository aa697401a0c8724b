package nodes

import (
	"container/heap"
	"time"
	"unsafe"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// maxBytes is how many bytes reports take together at most: some 12 kB for each of
// 10,000 nodes of eight GPUs with a run on each.
const maxBytes = 128 << 20

// Report is what a node reported last. It is never changed, only replaced; but for its
// place, which belongs to whoever holds the lock of [Reports].
type Report struct {
	Received time.Time          // by the controller's clock
	Message  *epdapi.NodeReport // its runs without their readings
	readings [][]byte           // those of its runs, encoded: as numbers they take ten times as much
	bytes    int                // about what it takes in memory
	bare     bool               // its runs and troubles were dropped for want of room
	place    int                // in Reports.bySize
}

// newReport takes a report over.
func newReport(at time.Time, r *epdapi.NodeReport) *Report {
	own := *r
	h := &Report{Received: at, Message: &own}
	own.Runs = append([]epdapi.NodeRun(nil), r.Runs...)
	for i := range own.Runs {
		run := &own.Runs[i]
		h.readings = append(h.readings, run.Readings.Encode())
		run.Readings = record.Readings{}
	}
	h.bytes = h.size()
	return h
}

// size is about what a report takes in memory, bytes.
func (h *Report) size() int {
	// Allocations are rounded up.
	const slice, text, times = int(unsafe.Sizeof([]byte{})), int(unsafe.Sizeof("")), 2
	r := h.Message
	n := int(unsafe.Sizeof(*h)) + int(unsafe.Sizeof(*r)) + len(r.Node) + len(r.Version)
	for i := range r.GPUs {
		g := &r.GPUs[i]
		n += int(unsafe.Sizeof(*g)) + len(g.UUID) + len(g.Bus) + len(g.Model) + len(g.ExternalChange) +
			len(g.Refused) + len(g.Unsure)
		if g.Journal != nil {
			n += int(unsafe.Sizeof(*g.Journal)) + len(g.Journal.RunID)
		}
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		n += int(unsafe.Sizeof(*run)) + len(run.ID) + len(run.HandsOff) + len(run.Partition) + slice +
			len(h.readings[i])
		for _, uuid := range run.GPUs {
			n += text + len(uuid)
		}
	}
	for i := range r.Troubles {
		n += int(unsafe.Sizeof(r.Troubles[i])) + len(r.Troubles[i].Message)
	}
	return n + n/times
}

// withoutRuns returns a report without its runs and troubles.
func (h *Report) withoutRuns() *Report {
	own := *h.Message
	own.LeftOut += len(own.Runs)
	own.Runs, own.Troubles = nil, nil
	l := &Report{Received: h.Received, Message: &own, bare: true}
	l.bytes = l.size()
	return l
}

// Readings returns those of a run of the report; none where it isn't there.
func (h *Report) Readings(run *epdapi.NodeRun) record.Readings {
	for i := range h.Message.Runs {
		if &h.Message.Runs[i] == run {
			if readings, err := record.DecodeReadings(h.readings[i]); err == nil {
				return readings
			}
		}
	}
	return record.Readings{}
}

// set has a report take the place of its node's last one; nil: none does. Where
// reports take too much together, the largest ones lose their runs and troubles,
// and then go altogether, until there is room: those of an agent that tells too much
// cost no other node its own. The caller holds r.mu.
func (r *Reports) set(node string, h *Report) {
	if old := r.byNode[node]; old != nil {
		r.drop(old)
	}
	if h != nil {
		r.add(h)
	}
	for r.bytes > r.most && len(r.bySize) > 0 {
		largest := r.bySize[0]
		r.drop(largest)
		if !largest.bare {
			r.add(largest.withoutRuns())
		}
	}
}

// add keeps a report of a node that has none.
func (r *Reports) add(h *Report) {
	r.bytes += h.bytes
	r.byNode[h.Message.Node] = h
	heap.Push(&r.bySize, h)
}

// drop forgets a report.
func (r *Reports) drop(h *Report) {
	r.bytes -= h.bytes
	delete(r.byNode, h.Message.Node)
	heap.Remove(&r.bySize, h.place)
}

// before reports which of two reports has to go first: the larger one, of two of a size
// that of the node whose name comes first.
func (h *Report) before(other *Report) bool {
	if h.bytes != other.bytes {
		return h.bytes > other.bytes
	}
	return h.Message.Node < other.Message.Node
}

// bySize is a heap of reports, the largest on top.
type bySize []*Report

func (s bySize) Len() int           { return len(s) }
func (s bySize) Less(i, j int) bool { return s[i].before(s[j]) }

func (s bySize) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push adds a report; for container/heap.
func (s *bySize) Push(x any) {
	h := x.(*Report) //nolint:forcetypeassert,errcheck // nothing else is put in
	h.place = len(*s)
	*s = append(*s, h)
}

// Pop takes the last report; for container/heap.
func (s *bySize) Pop() any {
	old := *s
	h := old[len(old)-1]
	old[len(old)-1] = nil // for the garbage collector
	*s = old[:len(old)-1]
	return h
}
