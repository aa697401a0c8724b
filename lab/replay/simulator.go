package replay

import (
	"math/rand" //nolint:depguard // its numbers are those of the paper's simulator

	"github.com/epplan/epplan/planner/fleet"
)

// RandomSource is a source of random choices, such as *rand.Rand of math/rand/v2.
type RandomSource interface {
	Shuffle(n int, swap func(i, j int))
	IntN(n int) int
}

// DrawPaper draws a stream as [Draw] does, and the order of nodes among which
// the first of equally good ones is taken, a random one: rows of the list of
// tasks, and of the list of nodes. Numbers are drawn as the paper's simulator
// draws them, so that its seeds lead to its streams and its orders.
func DrawPaper(
	seed uint64, list []fleet.Demand, nodes int, capacity int64, load float64,
) (tasks []int32, order []int, err error) {
	dice := simulatorSource{rand.New(rand.NewSource(int64(seed)))}
	dice.skip(drawnBefore)
	if tasks, err = Draw(dice, list, capacity, load); err != nil {
		return nil, nil, err
	}
	dice.skip(drawnBetween)
	order = make([]int, nodes)
	for node, rank := range dice.r.Perm(nodes) {
		order[rank] = node
	}
	return tasks, order, nil
}

// How many numbers the simulator draws before it shuffles the tasks, and
// between drawing them and putting the nodes in order.
const (
	drawnBefore  = 1
	drawnBetween = 10
)

// simulatorSource draws by the generator of Go's first random package.
type simulatorSource struct{ r *rand.Rand }

// Shuffle puts n things into random order.
func (d simulatorSource) Shuffle(n int, swap func(i, j int)) { d.r.Shuffle(n, swap) }

// IntN returns a random number below n.
func (d simulatorSource) IntN(n int) int { return d.r.Intn(n) }

// skip draws numbers that nobody needs, as the simulator does.
func (d simulatorSource) skip(count int) {
	for range count {
		d.r.Int63()
	}
}
