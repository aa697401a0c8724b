package queue

import (
	"fmt"
	"math"
	"time"
)

// date sees to it that the moments of a batch are on one clock: all of them are
// seconds, or dates without a zone, or dates with one.
func (b *batchBuilder) date(d *jobDraft) error {
	for _, c := range []column{colArrival, colDeadline} {
		if !d.given.has(c) || math.IsInf(*d.field(c), 1) {
			continue
		}
		how, at := d.dated[c-colArrival], b.where(c)
		if b.firstDate.Line == 0 {
			b.dates, b.firstDate = how, at
		}
		if how != b.dates {
			words := [...]string{
				plainSeconds: "a number", dateWithoutZone: "a date without a zone",
				dateWithZone: "a date with a zone",
			}
			return &SyntaxError{
				Pos: at, Msg: b.names.name(c) + " is " + words[how],
				Want: words[b.dates] + ", as at " + b.firstDate.String(),
			}
		}
	}
	if b.undated.Line == 0 && !d.given.has(colArrival) {
		b.undated = b.where(colJob)
	}
	if b.dates != plainSeconds && b.undated.Line > 0 {
		return &SyntaxError{
			Pos: b.undated, Msg: "the job has no arrival", Want: "a date, as at " + b.firstDate.String(),
		}
	}
	return nil
}

// dateText returns a moment that was written as a date, in UTC if it has a zone.
func (d *jobDraft) dateText(c column) string {
	layout := "2006-01-02T15:04:05"
	if d.dated[c-colArrival] == dateWithZone {
		layout += "Z"
	}
	return time.Unix(int64(*d.field(c)), 0).UTC().Format(layout)
}

// setClockStart lets the clock of a batch with dates begin at its first arrival.
func (b *batchBuilder) setClockStart() {
	if b.dates == plainSeconds {
		return
	}
	first := math.Inf(1)
	for i := range b.out.Jobs {
		first = min(first, b.out.Jobs[i].Arrival)
	}
	if b.dates == dateWithZone {
		b.out.Start = time.Unix(0, 0).Add(time.Duration(first * float64(time.Second)))
	}
	for i := range b.out.Jobs {
		b.out.Jobs[i].Arrival -= first
		b.out.Jobs[i].Deadline -= first
	}
}

// warnOfKept warns once of a name in the file whose values are not used.
func (b *batchBuilder) warnOfKept(at Position, name string, h *columnHeading) {
	if !h.kept || b.warned[name] {
		return
	}
	if b.warned == nil {
		b.warned = map[string]bool{}
	}
	b.warned[name] = true
	b.out.Warnings = append(b.out.Warnings, &Warning{Kind: WarnUnused, Err: &SyntaxError{
		Pos: at, Msg: quoted(name) + " is kept with the jobs and not used",
	}})
}

// warnOfUnits warns once of each column of times in which a job has a number whose unit nobody states.
func (b *batchBuilder) warnOfUnits(d *jobDraft) {
	for c, bare := range d.bare {
		c := column(c)
		if bare == "" || b.unitless.has(c) {
			continue
		}
		b.unitless = b.unitless.with(c)
		name, is, unit := b.loose[c], "taken for seconds", "UNIT"
		if c == colLimit {
			is, unit = "minutes in Slurm, taken for seconds", "min"
		}
		b.out.Warnings = append(b.out.Warnings, &Warning{Kind: WarnUnits, Err: &SyntaxError{
			Pos: b.where(c), Msg: fmt.Sprintf("%s has numbers without a unit, such as %s: %s; "+
				"--map '%s[%s]=%s' states it",
				quoted(name), Printable(bare), is, nativeNames[c], unit, Printable(name)),
		}})
	}
}
