package control

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// stormNode is a node whose agent keeps the protocol: what lease it has falls to the safe share when it ends,
// and limits are given back where there is no budget. GPUs draw all that their limits allow.
type stormNode struct {
	leasing

	safe []dvfsmodel.Watt
	ends time.Time
	cut  time.Time // it reaches the controller from then on
}

// play asks for leases, or does what is to be done without an answer.
func (n *stormNode) play(r *rig) {
	now := r.clock.read()
	if !now.Before(n.cut) {
		switch answer := n.exchange(r); {
		case len(answer.Leases) > 0:
			n.ends = now.Add(time.Duration(answer.ForS * float64(time.Second)))
			for i := range answer.Leases {
				n.safe[i] = answer.Leases[i].Safe
			}
			return
		case answer.EveryS > 0: // no budget
			for i := range n.limits {
				n.limits[i], n.safe[i] = 300, 300
			}
			return
		}
	}
	if !now.Before(n.ends) {
		for i := range n.limits {
			n.limits[i] = min(n.limits[i], n.safe[i])
		}
	}
}

// storm is a cluster under a budget, and a rack under one of its own, whose controller begins anew, hears of
// nodes late and is configured anew.
type storm struct {
	*rig

	rng     *rand.Rand
	dir     string
	nodes   []*stormNode
	events  []epdapi.BudgetEvent
	begins  int
	told    time.Time // when Slurm tells this controller of the nodes
	asked   bool      // there is a Slurm
	history []string
}

const (
	stormCluster = 2200 // W, of 12 GPUs of 100 to 300 W with hosts of 25 W each
	stormRack    = 1100 // of half of them
)

// begin has a controller begin that knows what is on disk alone.
func (s *storm) begin(t *testing.T) {
	t.Helper()
	clock := &hand{now: start}
	if s.rig != nil {
		clock = s.clock
		s.close()
	}
	s.begins++
	s.rig = openRig(t, filepath.Join(s.dir, fmt.Sprint(s.begins, ".db")), clock, enforceAll, func(o *Options) {
		o.BudgetEvents = filepath.Join(s.dir, "events.json")
		if s.asked {
			o.Resolve = (&ctld{}).resolve
		}
	})
	s.configure(3)
	s.told = clock.read().Add(time.Duration(s.rng.IntN(10)) * time.Second)
}

func (s *storm) configure(lease int) {
	s.onSite(fmt.Sprintf("[budget]\nmode = \"enforce\"\nlease_s = %d\ncluster_w = %d\n[budget.nodes_w]\n\"n[0-1]\" = %d\n",
		lease, stormCluster, stormRack))
}

// allowed is what the cluster may take now.
func (s *storm) allowed() (watts dvfsmodel.Watt) {
	watts = stormCluster
	for _, e := range s.events {
		if now := s.clock.read(); !now.Before(e.From) && now.Before(e.Until) {
			watts = min(watts, e.Watts)
		}
	}
	return watts
}

// second plays one, and returns what is wrong after it.
func (s *storm) second() string {
	s.clock.move(time.Second)
	if s.asked && !s.clock.read().Before(s.told) {
		all := make([]slurm.Node, 0, len(s.nodes))
		for _, n := range s.nodes {
			all = append(all, gpuNode(n.name, "gpu:v100:3", "IDLE"))
		}
		s.sync(fixedSlurm{nodes: all})
	}
	for _, i := range s.rng.Perm(len(s.nodes)) {
		s.nodes[i].play(s.rig)
	}
	var all, rack dvfsmodel.Watt
	for i, n := range s.nodes {
		if all += n.taken(); i < 2 {
			rack += n.taken()
		}
	}
	if all > s.allowed()+0.01 || rack > stormRack+0.01 {
		return fmt.Sprintf("%.0f W of %.0f, %.0f W of %d in the rack, after %s", float64(all), float64(s.allowed()),
			float64(rack), stormRack, strings.Join(s.history[max(0, len(s.history)-6):], "; "))
	}
	return ""
}

// disturb draws something that happens.
func (s *storm) disturb(t *testing.T) string {
	t.Helper()
	n, now := s.nodes[s.rng.IntN(len(s.nodes))], s.clock.read()
	switch s.rng.IntN(5) {
	case 0:
		s.begin(t)
		return fmt.Sprintf("a controller begins, and hears of nodes after %v", s.told.Sub(now))
	case 1:
		if !s.asked { // nobody can know of the node then
			return "nothing"
		}
		n.cut = now.Add(time.Duration(1+s.rng.IntN(20)) * time.Second)
		return n.name + " is cut off"
	case 2:
		lease := 3 + s.rng.IntN(5)
		s.configure(lease)
		return fmt.Sprint("leases of ", lease, " s")
	case 3:
		if len(s.events) > 3 {
			return "nothing"
		}
		from := now.Add(time.Duration(40+s.rng.IntN(60)) * time.Second)
		e, err := s.Budget.Set(&epdapi.BudgetEvent{
			Watts: dvfsmodel.Watt(1600 + s.rng.IntN(500)), From: from, Until: from.Add(30 * time.Second),
		}, "root")
		if err != nil {
			t.Fatal(err)
		}
		s.events = append(s.events, e)
		return fmt.Sprintf("%v W from %s on", e.Watts, from.Format("05"))
	}
	return "nothing"
}

// Whoever begins anew, is cut off or is configured anew, whatever is known of nodes then: no budget is
// exceeded, and when all is quiet it is given out.
func TestNoControllerExceedsABudgetWhateverItKnows(t *testing.T) {
	for seed := range uint64(24) {
		s := &storm{rng: rand.New(rand.NewPCG(seed, 3)), dir: t.TempDir(), asked: seed%2 == 0}
		for i := range 4 {
			s.nodes = append(s.nodes, &stormNode{
				leasing: leasing{fmt.Sprint("n", i), slices.Repeat([]dvfsmodel.Watt{150}, 3)},
				safe:    slices.Repeat([]dvfsmodel.Watt{150}, 3),
			})
		}
		s.begin(t)
		for range 25 {
			s.history = append(s.history, s.disturb(t))
			for range 1 + s.rng.IntN(15) {
				if wrong := s.second(); wrong != "" {
					t.Fatalf("seed %d: %s", seed, wrong)
				}
			}
		}
		for range 200 {
			if wrong := s.second(); wrong != "" {
				t.Fatalf("seed %d: %s", seed, wrong)
			}
		}
		var all dvfsmodel.Watt
		for _, n := range s.nodes {
			all += n.taken()
		}
		if all < stormCluster-1 {
			t.Errorf("seed %d: %v W of %d are given out", seed, all, stormCluster)
		}
		s.close()
	}
}
