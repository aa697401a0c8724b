package planner

// AnyClass is what [View.RestrictedClass] answers for a task that may go to every class
// that suits it.
const AnyClass = -1

// quotes remembers what Tune answered for a task on a class.
type quotes struct {
	problem    *Problem
	tuner      Tuner
	classes    int         // of the cluster
	wants      []wanted    // by task and class, once asked for
	asked      []wantState // as wants, of which nothing is cleared
	restricted []int       // by task: the class that Pick offers it for, plus 1; 0, and nil: any
}

// wanted is the answer of Tuner.Want.
type wanted struct {
	quote  Quote
	option int // of the task on the class, or -1
}

type wantState uint8

const (
	wantUnknown wantState = iota // not asked yet
	wantNone                     // the class doesn't suit, or no clocks meet the due time
	wantKnown
)

// index makes sure that it is known what the task wants on a class, and returns the
// place of it in wants and asked.
func (q *quotes) index(task, class int) (i int) {
	i = task*q.classes + class
	if q.asked[i] == wantUnknown {
		q.ask(i, task, class)
	}
	return i
}

func (q *quotes) ask(i, task, class int) {
	p, t, w := q.problem, &q.problem.Tasks[task], &q.wants[i]
	w.option, q.asked[i] = -1, wantNone
	only := q.restriction(task)
	if k := &p.Cluster.Classes[class]; (only == AnyClass || only == class) && k.admits(t) {
		w.option = t.Option(k.Model)
	}
	if w.option < 0 {
		w.quote = Quote{}
		return
	}
	var ok bool
	if w.quote, ok = q.tuner.Want(task, w.option, class, t.TimeBudgetFrom(p.nextSlot(t.Arrival))); ok {
		q.asked[i] = wantKnown
	}
}

func (q *quotes) restrict(task, class int) {
	if q.restriction(task) == class {
		return
	}
	if q.restricted == nil {
		q.restricted = make([]int, len(q.problem.Tasks))
	}
	q.restricted[task] = class + 1
	clear(q.asked[task*q.classes : (task+1)*q.classes])
}

func (q *quotes) restriction(task int) (class int) {
	if q.restricted == nil {
		return AnyClass
	}
	return q.restricted[task] - 1
}
