package consolidate

// A Rule chooses GPUs for one task at a time and keeps nothing in mind, so
// that it serves a batch as well as tasks that come and go.
type Rule interface {
	// Choose is the GPU for a piece of a task, given those that its other
	// pieces have taken and the state without this task. It is false where
	// there is none with the memory.
	Choose(s *State, task int, taken []int) (gpu int, ok bool)
}

// Clocks is the frequency, MHz, of a GPU that has tasks.
type Clocks func(s *State, gpu int) float64

// Place places the tasks of an instance one by one in their order, each for
// good, and sets frequencies afterwards. Pieces of a task go to distinct GPUs;
// a task for which there aren't enough has no place. GPUs without tasks sleep.
func Place(in *Instance, rule Rule, clocks Clocks) Placement {
	return PlaceWindows(in, rule, clocks, 1)
}

// PlaceWindows is [Place] by a scheduler that looks at a window of tasks at a
// time: each waits until so many are there, or the last one of all, and then they
// are placed one by one. While it places one, a rule may look at those of the
// window that are still to be placed ([State.Waiting]); [CATSSafe] does.
func PlaceWindows(in *Instance, rule Rule, clocks Clocks, window int) Placement {
	s := NewState(in)
	for task := range in.Tasks {
		s.arrived = min(len(in.Tasks), (task/window+1)*window)
		for _, gpu := range Choose(s, rule, task) {
			s.Add(task, gpu)
		}
	}
	return s.Placement(clocks)
}

// Choose is the GPUs that a rule chooses for a task, nil where it doesn't find
// enough.
func Choose(s *State, rule Rule, task int) []int {
	want := s.in.Tasks[task].GPUs
	taken := make([]int, 0, want)
	for range want {
		gpu, ok := rule.Choose(s, task, taken)
		if !ok {
			return nil
		}
		taken = append(taken, gpu)
	}
	return taken
}

// Placement is the state as an answer, with those frequencies.
func (s *State) Placement(clocks Clocks) Placement {
	p := Placement{GPUs: make([][]int, len(s.in.Tasks)), MHz: make([]float64, len(s.gpus))}
	for gpu, tasks := range s.tasks {
		if len(tasks) == 0 {
			continue
		}
		p.MHz[gpu] = clocks(s, gpu)
		for _, task := range tasks {
			p.GPUs[task] = append(p.GPUs[task], gpu)
		}
	}
	return p
}
