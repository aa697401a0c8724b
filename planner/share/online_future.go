package share

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// sampledTask is a task as the imagination sees it.
type sampledTask struct {
	util  []float64 // by slot, percent
	mean  float64   // 1 is a GPU
	memGB float64
	kappa float64
	gpus  int
}

// load returns how many GPUs' work it is.
func (p *sampledTask) load() float64 { return p.mean * float64(p.gpus) }

// maxSeen is how many of the latest tasks futures are made of, beside those that
// wait.
const maxSeen = 256

// recentTasks returns the latest tasks up to one, and those that wait beside it.
func recentTasks(s *sharing.State, task int) (all, waiting []sampledTask) {
	before := toSampled(s, s.Instance().Tasks[max(0, task+1-maxSeen):task+1])
	all = append(before, toSampled(s, s.Waiting(task))...)
	return all, all[len(before):]
}

// toSampled is tasks as the imagination sees them.
func toSampled(s *sharing.State, tasks []sharing.Task) []sampledTask {
	all := make([]sampledTask, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		all[i] = sampledTask{
			t.UtilPct[:s.Slots()], sharing.MeanPct(t.UtilPct[:s.Slots()]) / fullPct, t.MemGB, t.Kappa, t.GPUs,
		}
	}
	return all
}

// taskScenario is tasks that may come.
type taskScenario struct {
	tasks  []sampledTask // the next ones
	load   float64       // GPUs' work that comes, beyond these too
	beyond float64       // GPUs' work that comes after these
	sample []sampledTask // of what may come after these
}

// What futures are made of. The numbers were set on instances drawn by the
// README of data/cats, where neighbouring ones do as well.
const (
	// horizon is how many tasks of a future are placed one by one; what comes
	// after them is a value of the room that is left for it.
	horizon = 10
	// unseenWeight is how many of the tasks seen a task of any kind is worth: with
	// so many seen half of those imagined are of any kind.
	unseenWeight = 2
	// maxTaskChange is by how much at most an imagined task takes more or less than
	// the one seen that it is made from.
	maxTaskChange = 0.4
	// beyondSamples is how many tasks stand for those beyond the horizon.
	beyondSamples = 97
)

// scenarioSampler makes futures out of what was seen.
type scenarioSampler struct {
	r      *rand.Rand
	in     *sharing.Instance
	seen   []sampledTask
	next   []sampledTask // of them: those that wait, and so come first
	sizes  []float64     // memory of the GPUs by class, ascending
	pieces int           // of the tasks so far
	gpus   int
	most   int // GPUs of the largest server
	f      taskScenario
	util   []float64
}

// newScenarioSampler makes futures of the tasks seen for one of pieces that is to be
// placed now.
func newScenarioSampler(
	r *rand.Rand, s *sharing.State, seen, waiting []sampledTask, pieces int,
) *scenarioSampler {
	i := &scenarioSampler{
		r: r, in: s.Instance(), seen: seen, next: waiting, pieces: pieces, gpus: s.GPUs(),
		util: make([]float64, horizon*s.Slots()),
	}
	for gpu := range s.GPUs() {
		i.sizes = append(i.sizes, s.GPU(gpu).MemGB)
	}
	slices.Sort(i.sizes)
	i.sizes = slices.Compact(i.sizes)
	for server := range s.Instance().Servers {
		i.most = max(i.most, len(s.Instance().Servers[server].GPUMemGB))
	}
	for gpu := range s.GPUs() {
		i.pieces += len(s.Tasks(gpu))
	}
	for w := range waiting {
		i.pieces += waiting[w].gpus
	}
	return i
}

// scenario draws one: the tasks that wait, then imagined ones, those in the order of
// size if asked to, which is how well tasks could be placed by someone who knows
// them, else in that of their arrival. It holds until the next one.
func (i *scenarioSampler) scenario(bySize bool) *taskScenario {
	count := i.drawCount()
	f := &i.f
	f.tasks, f.load, f.beyond, f.sample = f.tasks[:0], 0, 0, f.sample[:0]
	for n := range min(count, horizon) {
		t := i.drawTask(i.util[n*len(i.util)/horizon : (n+1)*len(i.util)/horizon])
		f.tasks = append(f.tasks, t)
		f.load += t.load()
	}
	if count > horizon {
		f.beyond = f.load * (float64(count)/horizon - 1)
		f.load += f.beyond
		for range beyondSamples {
			f.sample = append(f.sample, i.seen[i.r.IntN(len(i.seen))])
		}
	}
	if bySize {
		slices.SortStableFunc(f.tasks, func(a, b sampledTask) int { return cmp.Compare(b.load(), a.load()) })
	}
	f.tasks = slices.Insert(f.tasks, 0, i.next...)
	for w := range i.next {
		f.load += i.next[w].load()
	}
	return f
}

// drawCount draws how many tasks are to come. As often as not they need nearly all
// GPUs, a piece each, so that without a server of the largest size there would
// be too few: a fleet that is as large as it has to be. Else any number up to
// that is as likely.
func (i *scenarioSampler) drawCount() int {
	left := max(0, i.gpus-1-i.pieces)
	if i.r.IntN(2) == 0 {
		return i.r.IntN(left + 1)
	}
	return max(0, left-i.r.IntN(i.most))
}

// drawTask draws a task into util: one like those seen, at another time of its
// period, or one of any kind.
func (i *scenarioSampler) drawTask(util []float64) sampledTask {
	if i.r.Float64()*(float64(len(i.seen))+unseenWeight) < unseenWeight {
		return i.drawUnseenTask(util)
	}
	t := i.seen[i.r.IntN(len(i.seen))]
	shift, scale := 0, 1+maxTaskChange*(2*i.r.Float64()-1)
	if len(util) > 0 {
		shift = i.r.IntN(len(util))
	}
	for n := range util {
		util[n] = min(fullPct, scale*t.util[(n+shift)%len(util)])
	}
	t.util, t.mean = util, sharing.MeanPct(util)/fullPct
	t.memGB = min(i.class(t.memGB), t.memGB*(1+maxTaskChange*(2*i.r.Float64()-1)))
	return t
}

// class returns the memory of the smallest GPUs that have so much.
func (i *scenarioSampler) class(memGB float64) float64 {
	for _, size := range i.sizes {
		if memGB <= size+sharing.SlackGB {
			return size
		}
	}
	return memGB
}

// drawUnseenTask draws a task that nothing is known of: a wave around any mean.
func (i *scenarioSampler) drawUnseenTask(util []float64) sampledTask {
	const least, most, swing, period = 10, 90, .4, 8
	level, phase := least+(most-least)*i.r.Float64(), 2*math.Pi*i.r.Float64()
	for n := range util {
		util[n] = min(fullPct, level*(1+swing*math.Sin(2*math.Pi*float64(n)/period+phase)))
	}
	memory := i.sizes[0] * i.r.Float64() * i.r.Float64()
	return sampledTask{util, sharing.MeanPct(util) / fullPct, memory, i.in.SLA, 1}
}
