package place

import (
	"slices"

	"github.com/epplan/epplan/planner"
)

// Candidate is a place where a task could start, on a node that is on.
type Candidate struct {
	Node   int
	Class  int
	Option int
	GPUs   planner.GPUSet
	Start  float64 // seconds
	Free   float64 // when the last task on its GPUs ends, seconds; Start where that isn't known
	// utilisation of its fullest GPU: the sum over its tasks of run time / (due time −
	// arrival).
	Load float64
	Need float64        // what the task would add to it
	Want *planner.Quote // what the task wants on this class
	Room float64        // seconds from Start to the due time, capped by the limit
}

// Scan looks at each place of every node that is on and takes the best by the
// rule. It takes time linear in the number of GPUs for each task.
func Scan(v *planner.View, rule Rule) planner.Placer {
	return &scan{v: v, rule: rule}
}

type scan struct {
	v     *planner.View
	rule  Rule
	nodes []int     // that are on, in opening order
	load  []float64 // by GPU: as Candidate.Load
	best  Candidate // of the task that is being placed, so far
	now   Candidate // that is being considered
}

func (s *scan) Opened(node int) {
	s.nodes = append(s.nodes, node)
	n := s.v.Node(node)
	if need := n.FirstGPU + n.GPUs - len(s.load); need > 0 {
		s.load = append(s.load, make([]float64, need)...)
	}
	clear(s.load[n.FirstGPU : n.FirstGPU+n.GPUs])
}

func (s *scan) Closed(node int) {
	s.nodes = slices.DeleteFunc(s.nodes, func(n int) bool { return n == node })
}

func (s *scan) Committed(task int, a *planner.Assignment) {
	class := s.v.Node(int(a.Node)).Class
	need := 1.0
	if want, _, ok := s.v.Want(task, class); ok {
		need = utilisation(&s.v.Problem.Tasks[task], want)
	}
	for part := range a.Parts {
		first := s.v.Node(int(part.Node)).FirstGPU
		for g := part.GPUs; g != 0; g &= g - 1 {
			s.load[first+g.First()] += need
		}
	}
}

// utilisation returns the share of the time from its arrival to its due time that a task
// needs: 1 for a deadline-prior task, which fills its GPU.
func utilisation(t *planner.Task, want *planner.Quote) float64 {
	return want.Point.Time / (t.Due - t.Arrival)
}

func (s *scan) Place(task int) (planner.Placement, planner.Verdict) {
	if s.v.Problem.Tasks[task].IsGang() {
		return placeGang(s.v, task, gangCheapest)
	}
	if s.v.Now == 0 && s.v.IsDeadlinePrior(task) {
		return placeAsLastResort(s.v, task)
	}
	if !s.search(task) {
		return placeAsLastResort(s.v, task)
	}
	c := &s.best
	q, ok := s.v.Tuner.Fit(task, c.Option, c.Class, *c.Want, c.Room)
	if !ok {
		return placeAsLastResort(s.v, task)
	}
	return newPlacement(c.Node, c.Class, c.Option, c.GPUs, c.Start, &q, c.Room, s.rule.Reason), planner.Start
}

// search finds the best place of a task by the rule. Places are each GPU for a
// task of one GPU, the GPUs that are free first of each node for the others.
func (s *scan) search(task int) (found bool) {
	p := s.v.Problem
	t := &p.Tasks[task]
	for _, node := range s.nodes {
		class := s.v.Node(node).Class
		option := t.Option(p.Cluster.Classes[class].Model)
		if option < 0 {
			continue
		}
		want, _, ok := s.v.Want(task, class)
		if !ok {
			continue
		}
		s.now = Candidate{Node: node, Class: class, Option: option, Want: want, Need: utilisation(t, want)}
		if t.Options[option].GPUs == 1 && s.v.OnlyGPUsLimited {
			found = s.eachGPU(t, task, found)
			continue
		}
		if start, gpus, ok := s.v.Earliest(task, option, node); ok {
			c := &s.now
			c.GPUs, c.Start, c.Free, c.Room = gpus, start, start, t.TimeBudgetFrom(start)
			c.Load = s.fullest(node, gpus)
			found = s.consider(found)
		}
	}
	return found
}

func (s *scan) eachGPU(t *planner.Task, task int, found bool) bool {
	c := &s.now
	n := s.v.Node(c.Node)
	for g := range n.GPUs {
		c.GPUs, c.Free, c.Load = 1<<uint(g), s.v.FreeFrom(n.FirstGPU+g), s.load[n.FirstGPU+g]
		c.Start = s.v.StartFor(task, c.Free)
		c.Room = t.TimeBudgetFrom(c.Start)
		found = s.consider(found)
	}
	return found
}

// consider keeps the present place if it is better than the best so far.
func (s *scan) consider(found bool) bool {
	if found && !s.rule.Better(&s.now, &s.best) {
		return true
	}
	if s.rule.Fits == nil || s.rule.Fits(&s.now) {
		s.best, found = s.now, true
	}
	return found
}

func (s *scan) fullest(node int, gpus planner.GPUSet) float64 {
	first := s.v.Node(node).FirstGPU
	load := 0.0
	for ; gpus != 0; gpus &= gpus - 1 {
		load = max(load, s.load[first+gpus.First()])
	}
	return load
}
