package sharing

import (
	"math"
	"slices"
)

// SlackGB is by how much the memory of a GPU may be exceeded before its tasks
// count as not fitting: sums of decimal figures aren't exact.
const SlackGB = 1e-9

// State is who is on which GPU: which tasks each has, and what is left of it. Tasks of
// several GPUs are added piece by piece.
//
// A state is made for an instance whose servers stay as they are; tasks may be
// appended to it later, with series as long as those of the first.
type State struct {
	in     *Instance
	gpus   []GPU
	slots  int
	load   []float64 // by GPU and slot, percent
	freeGB []float64
	kappa  []float64
	tasks  [][]int
	busy   []int // by server: GPUs with tasks

	arrived int // how many tasks have; 0: those up to the one that is placed
}

// NewState returns a state in which everything sleeps.
func NewState(in *Instance) *State {
	gpus := in.GPUs()
	s := &State{
		in: in, gpus: gpus, slots: in.Slots(),
		load:   make([]float64, len(gpus)*in.Slots()),
		freeGB: make([]float64, len(gpus)),
		kappa:  make([]float64, len(gpus)),
		tasks:  make([][]int, len(gpus)),
		busy:   make([]int, len(in.Servers)),
	}
	for g := range gpus {
		s.freeGB[g], s.kappa[g] = gpus[g].MemGB, math.Inf(1)
	}
	return s
}

// StateAt returns the state with tasks at their places, by task the GPUs of each.
func StateAt(in *Instance, places [][]int) *State {
	s := NewState(in)
	for task, gpus := range places {
		for _, gpu := range gpus {
			s.Add(task, gpu)
		}
	}
	return s
}

// Instance returns what the state belongs to.
func (s *State) Instance() *Instance { return s.in }

// Add puts a piece of a task on a GPU, whether it fits or not.
func (s *State) Add(task, gpu int) {
	t := &s.in.Tasks[task]
	if len(s.tasks[gpu]) == 0 {
		s.busy[s.gpus[gpu].Server]++
	}
	s.tasks[gpu] = append(s.tasks[gpu], task)
	s.addLoad(t, gpu)
}

// addLoad adds a task to the sums of a GPU.
func (s *State) addLoad(t *Task, gpu int) {
	load := s.Load(gpu)
	for i, u := range t.UtilPct[:s.slots] {
		load[i] += u
	}
	s.freeGB[gpu] -= t.MemGB
	s.kappa[gpu] = min(s.kappa[gpu], t.Kappa)
}

// Remove takes a piece of a task off a GPU that has it. The sums are made
// anew, so that nothing is left of what came and went.
func (s *State) Remove(task, gpu int) {
	i := slices.Index(s.tasks[gpu], task)
	if i < 0 {
		return
	}
	s.tasks[gpu] = slices.Delete(s.tasks[gpu], i, i+1)
	if len(s.tasks[gpu]) == 0 {
		s.busy[s.gpus[gpu].Server]--
	}
	clear(s.Load(gpu))
	s.freeGB[gpu], s.kappa[gpu] = s.gpus[gpu].MemGB, math.Inf(1)
	for _, other := range s.tasks[gpu] {
		s.addLoad(&s.in.Tasks[other], gpu)
	}
}

// Slots returns how many slots the loads have.
func (s *State) Slots() int { return s.slots }

// GPUs returns how many GPUs there are.
func (s *State) GPUs() int { return len(s.gpus) }

// GPU returns one of the GPUs.
func (s *State) GPU(gpu int) GPU { return s.gpus[gpu] }

// Load returns the sum of the utilisations of a GPU's tasks by slot, percent. It is
// not to be written to, and changes with the state.
func (s *State) Load(gpu int) []float64 {
	return s.load[gpu*s.slots : (gpu+1)*s.slots : (gpu+1)*s.slots]
}

// MeanPct returns the mean of a GPU's load over the slots, percent.
func (s *State) MeanPct(gpu int) float64 { return MeanPct(s.Load(gpu)) }

// FreeGB returns the memory of a GPU that no task takes.
func (s *State) FreeGB(gpu int) float64 { return s.freeGB[gpu] }

// Fits reports whether a GPU has the memory for a task.
func (s *State) Fits(task, gpu int) bool { return s.in.Tasks[task].MemGB <= s.FreeGB(gpu)+SlackGB }

// Tasks returns those of a GPU in the order in which they came. It is not to be
// written to, and changes with the state.
func (s *State) Tasks(gpu int) []int { return s.tasks[gpu] }

// SetArrived notes that the first so many tasks of the instance have arrived.
func (s *State) SetArrived(tasks int) { s.arrived = tasks }

// Waiting returns the tasks after this one that have arrived, too, and have no place yet.
func (s *State) Waiting(task int) []Task { return s.in.Tasks[task+1 : max(task+1, s.arrived)] }

// IsBusy reports whether a GPU has tasks.
func (s *State) IsBusy(gpu int) bool { return len(s.tasks[gpu]) > 0 }

// BusyGPUs returns how many GPUs of a server have tasks.
func (s *State) BusyGPUs(server int) int { return s.busy[server] }

// IsServerOn reports whether a GPU of a server has tasks.
func (s *State) IsServerOn(server int) bool { return s.busy[server] > 0 }

// Kappa returns the least that a task of a GPU allows, as a multiple of its time
// alone; +Inf where the GPU has none.
func (s *State) Kappa(gpu int) float64 { return s.kappa[gpu] }

// Overload returns how many times as long as alone the tasks of a GPU take at the
// same frequency, by the instance's contention.
func (s *State) Overload(gpu int) float64 {
	return s.slowdown(gpu, len(s.tasks[gpu]), s.freeGB[gpu], s.Load(gpu))
}

// OverloadWith is [State.Overload] with one more task there, and the load by
// slot then, percent, which is written to a buffer.
func (s *State) OverloadWith(task, gpu int, buffer []float64) (overload float64, loadPct []float64) {
	t := &s.in.Tasks[task]
	loadPct = append(buffer[:0], s.Load(gpu)...)
	for slot, u := range t.UtilPct[:s.slots] {
		loadPct[slot] += u
	}
	return s.slowdown(gpu, len(s.tasks[gpu])+1, s.freeGB[gpu]-t.MemGB, loadPct), loadPct
}

func (s *State) slowdown(gpu, tasks int, freeGB float64, loadPct []float64) float64 {
	return s.in.Curve().Slowdown(Occupancy{
		LoadPct: loadPct, Tasks: tasks, Memory: MemoryPart(s.gpus[gpu].MemGB, freeGB),
	})
}

// MeanPct returns the mean of a series of utilisations, percent; 0 of an empty one.
func MeanPct(series []float64) float64 {
	if len(series) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range series {
		sum += x
	}
	return sum / float64(len(series))
}
