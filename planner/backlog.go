package planner

// Backlog counts the GPUs that are waited for at several places, by GPU that each who waits could have.
type Backlog struct {
	GPUs []int     // of each place
	By   []float64 // what is waited for there
}

// NewBacklog returns one of places with so many GPUs, where nobody waits.
func NewBacklog(gpus []int) *Backlog { return &Backlog{gpus, make([]float64, len(gpus))} }

// Add has somebody wait, so many times over: wants says for how many GPUs of each place, 0 where those can't
// be had. It returns how many there are that can be.
func (b *Backlog) Add(times float64, wants func(place int) float64) (could int) {
	for place, gpus := range b.GPUs {
		if wants(place) > 0 {
			could += gpus
		}
	}
	if could == 0 {
		return 0
	}
	for place := range b.By {
		b.By[place] += wants(place) / float64(could) * times
	}
	return could
}
