package planner

import "github.com/epplan/epplan/dvfsmodel"

// Account computes the ledger of a plan from its assignments and the intervals
// in which its nodes are on. Costs are those of EDL eq. (6) and (7), with host
// and sleep power added.
func Account(p *Problem, plan *Plan) Ledger {
	l, _ := account(p, plan)
	return l
}

// account is Account. As it looks at every task anyway, it also tells which ones end after
// their deadlines.
func account(p *Problem, plan *Plan) (Ledger, []int) {
	l := Ledger{Nodes: make([]NodeEnergy, len(plan.Nodes))}
	busy, misses := l.addRuns(p, plan)
	for i := range plan.Nodes {
		for _, on := range plan.Nodes[i].On {
			l.End = max(l.End, on.To)
		}
	}
	for i := range plan.Nodes {
		l.addRest(p, plan, i, busy[i])
		l.add(&l.Nodes[i])
	}
	return l, misses
}

// addRuns adds the run energy of all tasks to their nodes' rows, and says for how
// many GPU-seconds each node's GPUs are busy, and which tasks end late.
func (l *Ledger) addRuns(p *Problem, plan *Plan) (busy []float64, misses []int) {
	busy = make([]float64, len(plan.Nodes))
	apart := plan.Shared.tasks(len(plan.Assignments))
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if a.Node < 0 {
			continue
		}
		if isLate(a.End, p.Tasks[i].Deadline) {
			misses = append(misses, i)
		}
		if apart != nil && apart[i] {
			continue // counted by the GPU
		}
		w := gpuWorth(&p.Tasks[i], a) / float64(1+len(a.More)) // of each node
		for part := range a.Parts {
			busy[part.Node] += w * (a.End - a.Start)
			l.Nodes[part.Node].Run += a.Point.Energy * dvfsmodel.Joule(w)
		}
	}
	if plan.Shared != nil {
		for i := range plan.Shared.ClockIntervals {
			s := &plan.Shared.ClockIntervals[i]
			busy[s.Node] += s.To - s.From
			l.Nodes[s.Node].Run += dvfsmodel.Watt(p.Cluster.Sharing.Physics.PowerAt(s.MHz)).Over(s.To -
				s.From)
		}
	}
	return busy, misses
}

// addRest fills in what a node takes beside its runs, once it is known when the plan
// ends and for how many GPU-seconds the node is busy.
func (l *Ledger) addRest(p *Problem, plan *Plan, node int, busy float64) {
	n, row, on := &plan.Nodes[node], &l.Nodes[node], 0.0
	for _, iv := range n.On {
		on += iv.Len()
	}
	k := &p.Cluster.Classes[n.Class]
	gpus := float64(k.GPUs)
	row.Idle = k.IdleW.Over(max(0, gpus*on-busy))
	row.Host = k.HostW.Over(gpus * on)
	row.Sleep = k.SleepW.Over(max(0, l.End-on))
	if p.Mode != Offline || p.Cluster.OfflineTurnOn {
		row.TurnOn = k.TurnOn * dvfsmodel.Joule(k.GPUs*len(n.On))
	}
}

// tasks tells by task which ones share GPUs; nil where none does.
func (s *Shared) tasks(count int) []bool {
	if s == nil {
		return nil
	}
	shares := make([]bool, count)
	for _, task := range s.Tasks {
		shares[task] = true
	}
	return shares
}

func (l *Ledger) add(row *NodeEnergy) {
	l.Run += row.Run
	l.Idle += row.Idle
	l.Host += row.Host
	l.TurnOn += row.TurnOn
	l.Sleep += row.Sleep
}

// DefaultEnergy returns what the plan's tasks take at default clocks while they
// run: the baseline of the EDL paper, which has no idle energy.
func DefaultEnergy(p *Problem, plan *Plan) dvfsmodel.Joule {
	var sum dvfsmodel.Joule
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			pt := p.Tasks[i].Options[a.Option].Response.Default()
			sum += pt.Energy * dvfsmodel.Joule(gpuWorth(&p.Tasks[i], a))
		}
	}
	return sum
}
