package queue

import "math"

// date sees to it that the moments of a batch are on one clock: all of them are
// seconds, or dates without a zone, or dates with one.
func (b *builder) date(d *draft) error {
	for _, c := range []column{colArrival, colDeadline} {
		if !d.given.has(c) || math.IsInf(*d.number(c), 1) {
			continue
		}
		how, at := d.dated[c-colArrival], b.where(c)
		if b.firstDate.Line == 0 {
			b.dates, b.firstDate = how, at
		}
		if how != b.dates {
			words := [...]string{notDated: "a number", floating: "a date without a zone", zoned: "a date with a zone"}
			return &SyntaxError{
				Pos: at, Msg: b.names.name(c) + " is " + words[how],
				Want: words[b.dates] + ", as at " + b.firstDate.String(),
			}
		}
	}
	if b.undated.Line == 0 && !d.given.has(colArrival) {
		b.undated = b.where(colJob)
	}
	if b.dates != notDated && b.undated.Line > 0 {
		return &SyntaxError{Pos: b.undated, Msg: "the job has no arrival", Want: "a date, as at " + b.firstDate.String()}
	}
	return nil
}

// start lets the clock of a batch with dates begin at its first arrival.
func (b *builder) start() {
	if b.dates == notDated {
		return
	}
	first := math.Inf(1)
	for i := range b.out.Jobs {
		first = min(first, b.out.Jobs[i].Arrival)
	}
	for i := range b.out.Jobs {
		b.out.Jobs[i].Arrival -= first
		b.out.Jobs[i].Deadline -= first
	}
}

// tell warns once of a name in the file whose values are not used, or whose
// numbers have no unit.
func (b *builder) tell(at Position, name string, h *heading) {
	if !h.kept && (!h.loose || h.col != colLimit) || b.told[name] {
		return
	}
	if b.told == nil {
		b.told = map[string]bool{}
	}
	b.told[name] = true
	msg := quoted(name) + " is kept with the jobs and not used"
	if !h.kept {
		msg = quoted(name) + " is taken for " + nativeNames[h.col] + ": numbers without a unit are seconds"
	}
	b.out.Warnings = append(b.out.Warnings, &SyntaxError{Pos: at, Msg: msg})
}
