package check

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// checkLedger adds up the energy once more and compares it with the plan's
// ledger: each row up to rounding, the totals as the exact sums of the rows.
func (c *checker) checkLedger() {
	l := &c.plan.Ledger
	if len(l.Nodes) != len(c.plan.Nodes) {
		c.report(Ledger, -1, -1, "%d rows for %d nodes", len(l.Nodes), len(c.plan.Nodes))
		return
	}
	end := 0.0
	for n := range c.plan.Nodes {
		for _, on := range c.plan.Nodes[n].On {
			end = math.Max(end, on.To)
		}
	}
	if differs(l.End, end, end) {
		c.report(Ledger, -1, -1, "ends at %v s, the last node goes off at %v s", l.End, end)
	}
	run, busy := c.nodeWork()
	for n, known := range c.validNode {
		if known {
			c.checkRow(n, run[n], busy[n], end)
		}
	}
	c.checkTotals()
}

// nodeWork returns what each node's tasks take: joules, and seconds of a GPU.
func (c *checker) nodeWork() (run, busy []float64) {
	run, busy = make([]float64, len(c.plan.Nodes)), make([]float64, len(c.plan.Nodes))
	for i, placed := range c.placed {
		if !placed || c.apart[i] {
			continue
		}
		t, a := &c.p.Tasks[i], &c.plan.Assignments[i]
		gpus := t.Share
		if gpus == 1 {
			gpus = float64(t.Options[a.Option].GPUs)
		}
		parts := c.parts(i)
		for _, part := range parts {
			run[part.Node] += gpus * float64(a.Point.Power) * a.Point.Time / float64(len(parts))
			busy[part.Node] += gpus * a.Point.Time / float64(len(parts))
		}
	}
	if c.plan.Shared == nil || c.p.Cluster.Sharing == nil {
		return run, busy
	}
	for _, s := range c.plan.Shared.ClockIntervals {
		if s.Node >= 0 && s.Node < len(run) {
			run[s.Node] += (c.p.Cluster.Sharing.Physics.BaseW +
				c.p.Cluster.Sharing.Physics.WPerMHz*float64(s.MHz)) * (s.To - s.From)
			busy[s.Node] += s.To - s.From
		}
	}
	return run, busy
}

// checkRow compares one node's energies.
func (c *checker) checkRow(n int, run, busy, end float64) {
	k := &c.p.Cluster.Classes[c.plan.Nodes[n].Class]
	on := 0.0
	for _, iv := range c.plan.Nodes[n].On {
		on += iv.To - iv.From
	}
	gpus := float64(k.GPUs)
	turnOns := gpus * float64(len(c.plan.Nodes[n].On))
	if c.p.Mode == planner.Offline && !c.p.Cluster.OfflineTurnOn {
		turnOns = 0
	}
	row := &c.plan.Ledger.Nodes[n]
	idleW, hostW, sleepW := float64(k.IdleW), float64(k.HostW), float64(k.SleepW)
	scale := max(on, end/1e6) // seconds that a difference of times is compared with
	for _, e := range [...]struct {
		what             string
		got, want, scale float64
	}{
		{"run", float64(row.Run), run, run},
		{"idle", float64(row.Idle), idleW * (gpus*on - busy), idleW * gpus * scale},
		{"host", float64(row.Host), hostW * gpus * on, hostW * gpus * scale},
		{"turn-on", float64(row.TurnOn), turnOns * float64(k.TurnOn), turnOns * float64(k.TurnOn)},
		{"sleep", float64(row.Sleep), sleepW * (end - on), sleepW * end},
	} {
		if differs(e.got, e.want, e.scale) {
			c.report(Ledger, -1, n, "%s energy %v J, want %v J", e.what, e.got, e.want)
		}
	}
}

// checkTotals checks that the totals are the sums of the rows to the last bit.
func (c *checker) checkTotals() {
	l := &c.plan.Ledger
	var sum planner.NodeEnergy
	for n := range l.Nodes {
		sum.Run += l.Nodes[n].Run
		sum.Idle += l.Nodes[n].Idle
		sum.Host += l.Nodes[n].Host
		sum.TurnOn += l.Nodes[n].TurnOn
		sum.Sleep += l.Nodes[n].Sleep
	}
	total := planner.NodeEnergy{Run: l.Run, Idle: l.Idle, Host: l.Host, TurnOn: l.TurnOn, Sleep: l.Sleep}
	if sum != total {
		c.report(Ledger, -1, -1, "totals are %v, the rows add up to %v", total, sum)
	}
}
