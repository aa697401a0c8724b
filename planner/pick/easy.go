package pick

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Easy is Simple with EASY backfilling: when the head of the queue finds no
// room, the time and the class are reserved for it where it can start first by
// prediction, and the tasks behind it start where they leave that alone.
// Spread is how far run times stray from their predictions, relative.
type Easy struct{ Spread float64 }

// New returns the Pick stage of one run.
func (o Easy) New(v *planner.View, _ planner.Placer) planner.Picker {
	return &easy{
		classUsage: newClassUsage(v), age: newResidualTimes(o.Spread), pairsOf: make(map[int][]pair),
		offered: noPair,
	}
}

// easy finds the next task to start without looking at all that wait: tasks that need as many GPUs of the
// same class are a line of their own.
type easy struct {
	classUsage
	age         *residualTimes
	queue       []int          // tasks by arrival; those that left are below 0
	pairsOf     map[int][]pair // of the tasks that wait
	lines       []gpuLine
	head        int            // place in the queue of the first one that waits
	at, pair    int            // where the search goes on: a place, and one of its pairs
	offered     int            // place in the queue; none: nothing is offered
	unplaceable []int          // tasks that no class suits: Place is to give them up
	reserved    *classSchedule // for the head; nil: it may still start
}

func (e *easy) Arrive(tasks []int) {
	e.removeStarted()
	for _, task := range tasks {
		all := e.pairs(task)
		if len(all) == 0 {
			e.unplaceable = append(e.unplaceable, task)
			continue
		}
		e.pairsOf[task] = all
		for k := range all {
			e.lineOf(&all[k]).add(lineTask{len(e.queue), k, all[k].Time, e.needOf(&all[k])})
		}
		e.queue = append(e.queue, task)
	}
	e.at, e.pair, e.reserved = e.head, 0, nil
	for i := range e.lines {
		e.lines[i].refused = e.lines[i].refused[:0]
	}
}

// needOf returns what a pair needs of each of its nodes besides GPUs; nothing where nothing else runs out.
func (e *easy) needOf(p *pair) (n nodeNeed) {
	if !e.v.OnlyGPUsLimited {
		t := &e.v.Problem.Tasks[p.task]
		n.cpus, n.mem = t.PerNode(t.Option(e.v.Problem.Cluster.Classes[p.class].Model))
	}
	return n
}

// lineOf returns the line of tasks that need as many GPUs of a class, on as many nodes.
func (e *easy) lineOf(p *pair) *gpuLine {
	t := &e.v.Problem.Tasks[p.task]
	nodes := t.Options[t.Option(e.v.Problem.Cluster.Classes[p.class].Model)].NodeCount()
	i := slices.IndexFunc(e.lines, func(l gpuLine) bool {
		return l.class == p.class && l.gpus == p.GPUs && l.nodes == nodes
	})
	if i < 0 {
		i, e.lines = len(e.lines), append(e.lines, gpuLine{class: p.class, nodes: nodes, gpus: p.GPUs})
	}
	return &e.lines[i]
}

// removeStarted takes the task out of the queue that was offered last, unless it was refused.
func (e *easy) removeStarted() {
	if e.offered == noPair {
		return
	}
	task := e.queue[e.offered]
	for k := range e.pairsOf[task] {
		e.lineOf(&e.pairsOf[task][k]).remove(e.offered)
	}
	delete(e.pairsOf, task)
	e.queue[e.offered] = -1
	for e.head < len(e.queue) && e.queue[e.head] < 0 {
		e.head++
	}
	e.offered, e.pair = noPair, 0
}

func (e *easy) Next() (int, bool) {
	e.removeStarted()
	if len(e.unplaceable) > 0 {
		task := e.unplaceable[0]
		e.unplaceable = e.unplaceable[1:]
		return task, true
	}
	for {
		p := e.nextPair()
		if p == nil {
			return 0, false
		}
		if e.at > e.head && e.reserved == nil {
			e.reserved = newClassSchedule(&e.classUsage, e.age)
			e.reserved.reserve(e.pairsOf[e.queue[e.head]])
		}
		if e.reserved == nil || e.reserved.sparesReserved(p) {
			e.offered = e.at
			e.v.RestrictTask(p.task, p.class)
			return p.task, true
		}
	}
}

// nextPair returns the next pair that has room, with those left out that certainly don't leave what is
// reserved; nil: there is none.
func (e *easy) nextPair() *pair {
	best, bestPair := math.MaxInt, 0
	for i := range e.lines {
		l := &e.lines[i]
		longest := math.Inf(1)
		if l.isRefused(nodeNeed{}) || l.gpus > e.total[l.class]-e.busy[l.class]+planner.ShareSlack {
			continue
		}
		if e.reserved != nil {
			longest = e.reserved.longestRun(l.class, l.gpus)
		}
		if at, k := l.first(e.at, e.pair, longest); at < best || at == best && k < bestPair {
			best, bestPair = at, k
		}
	}
	if best == math.MaxInt {
		return nil
	}
	e.at, e.pair = best, bestPair+1
	return &e.pairsOf[e.queue[best]][bestPair]
}

// Refused leaves the task in its place. Others that need no less have no room either before something ends.
func (e *easy) Refused(task int) {
	if all := e.pairsOf[task]; len(all) > 0 { // a task that no class suits is in no line
		p := &all[e.pair-1]
		line, need := *e.lineOf(p), e.needOf(p)
		for i := range e.lines {
			if l := &e.lines[i]; l.class == line.class && l.nodes == line.nodes && l.gpus >= line.gpus {
				l.refused = append(l.refused, need)
			}
		}
	}
	e.offered = noPair
}

// Committed notes a start; what is reserved is reckoned anew.
func (e *easy) Committed(task int, a *planner.Assignment) {
	e.started(task, a)
	e.reserved = nil
}

// Finished counts what a task gives back.
func (e *easy) Finished(task int, a *planner.Assignment) { e.ended(task, a) }

// Wake is never: starts and ends are all that changes an answer.
func (e *easy) Wake() float64 { return math.Inf(1) }

// gpuLine is the tasks that need as many GPUs of a class, by arrival.
type gpuLine struct {
	class   int
	nodes   int
	gpus    float64
	places  []lineTask
	refused []nodeNeed // at this event: no node has room for so much, or more
	least   []lineTask // by lineBlock tasks: the shortest run time and the least needs of those that wait
}

// lineTask is a task of a line: its place in the queue, which of its pairs it is, and its run time; +Inf: it
// left.
type lineTask struct {
	place, pair int
	time        float64
	need        nodeNeed
}

// nodeNeed is cores and memory of a node, in GiB.
type nodeNeed struct{ cpus, mem float64 }

// noTask is the least of no tasks.
func noTask() lineTask {
	return lineTask{time: math.Inf(1), need: nodeNeed{math.Inf(1), math.Inf(1)}}
}

// takeLeast lowers a block's least time and needs to those of a task that waits.
func (t *lineTask) takeLeast(o *lineTask) {
	if !math.IsInf(o.time, 1) {
		t.time = min(t.time, o.time)
		t.need.cpus, t.need.mem = min(t.need.cpus, o.need.cpus), min(t.need.mem, o.need.mem)
	}
}

const lineBlock = 128

func (l *gpuLine) add(t lineTask) {
	if len(l.places)%lineBlock == 0 {
		l.least = append(l.least, noTask())
	}
	l.places = append(l.places, t)
	l.least[len(l.least)-1].takeLeast(&t)
}

// isRefused reports whether a task of the line that needs no more was refused at this event.
func (l *gpuLine) isRefused(n nodeNeed) bool {
	for _, r := range l.refused {
		if n.cpus >= r.cpus && n.mem >= r.mem {
			return true
		}
	}
	return false
}

// indexFrom returns the index of the first task at a place of the queue or behind it.
func (l *gpuLine) indexFrom(place int) int {
	i, _ := slices.BinarySearchFunc(l.places, place, func(t lineTask, place int) int { return t.place - place })
	return i
}

func (l *gpuLine) remove(place int) {
	i := l.indexFrom(place)
	l.places[i].time = math.Inf(1)
	block := i / lineBlock
	l.least[block] = noTask()
	for k := block * lineBlock; k < min(len(l.places), (block+1)*lineBlock); k++ {
		l.least[block].takeLeast(&l.places[k])
	}
}

// first returns the place of the first task, from a pair of one place on, that runs no longer than some
// seconds and of which no like was refused.
func (l *gpuLine) first(place, pair int, longest float64) (at, of int) {
	for i := l.indexFrom(place); i < len(l.places); i++ {
		b := &l.least[i/lineBlock]
		if b.time > longest || math.IsInf(b.time, 1) || l.isRefused(b.need) {
			i = (i/lineBlock+1)*lineBlock - 1
			continue
		}
		if t := &l.places[i]; t.time <= longest && !math.IsInf(t.time, 1) && (t.place > place || t.pair >= pair) &&
			!l.isRefused(t.need) {
			return t.place, t.pair
		}
	}
	return math.MaxInt, 0
}
