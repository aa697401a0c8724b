package share

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// Place places the tasks of an instance one by one in their order, each for
// good, and sets frequencies afterwards. Pieces of a task go to distinct GPUs;
// a task for which there aren't enough has no place. GPUs without tasks sleep.
func Place(in *sharing.Instance, rule Rule, clocks Clocks) Placement {
	return PlaceWindows(in, rule, clocks, 1)
}

// PlaceWindows is [Place] by a scheduler that looks at a window of tasks at a
// time: each waits until so many are there, or the last one of all, and then they
// are placed one by one. While it places one, a rule may look at those of the
// window that are still to be placed ([sharing.State.Waiting]); [CATSSafe] does.
func PlaceWindows(in *sharing.Instance, rule Rule, clocks Clocks, window int) Placement {
	s := sharing.NewState(in)
	for task := range in.Tasks {
		s.SetArrived(min(len(in.Tasks), (task/window+1)*window))
		for _, gpu := range Choose(s, rule, task) {
			s.Add(task, gpu)
		}
	}
	return PlacementOf(s, clocks)
}

// Choose returns the GPUs that a rule chooses for a task, nil where it doesn't find
// enough.
func Choose(s *sharing.State, rule Rule, task int) []int {
	want := s.Instance().Tasks[task].GPUs
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

// PlacementOf returns the state as an answer, with those frequencies.
func PlacementOf(s *sharing.State, clocks Clocks) Placement {
	p := Placement{GPUs: make([][]int, len(s.Instance().Tasks)), MHz: make([]dvfsmodel.MHz, s.GPUs())}
	for gpu := range s.GPUs() {
		if !s.IsBusy(gpu) {
			continue
		}
		p.MHz[gpu] = clocks(s, gpu)
		for _, task := range s.Tasks(gpu) {
			p.GPUs[task] = append(p.GPUs[task], gpu)
		}
	}
	return p
}
