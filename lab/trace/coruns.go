package trace

import (
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/epplan/epplan/lab/contention"
)

// ReadCoRuns reads how much slower tasks were measured to be that shared a GPU,
// as CSV with the columns slowdown (times as long as alone at the same
// frequency), tasks (how many there were), load_pct (the sum of their
// utilisations alone, per cent, by slot, with spaces between) and memory (the
// part of the GPU's that they took, 0 to 1), in any order. Every error but those
// of the reader itself is a [queue.SyntaxError].
func ReadCoRuns(r io.Reader, name string) ([]contention.Sample, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	at, err := t.requireColumns("slowdown", "tasks", "load_pct", "memory")
	if err != nil {
		return nil, err
	}
	var all []contention.Sample
	err = t.each("no samples, want a line for each", func() error {
		o, err := readCoRun(t, at)
		all = append(all, o)
		return err
	})
	return all, err
}

// readCoRun returns the current record; at has its columns.
func readCoRun(t *csvTable, at []int) (o contention.Sample, err error) {
	const most = 1e6
	number := func(column int, least, most float64, want string) float64 {
		x, failed := strconv.ParseFloat(strings.TrimSpace(t.text(at[column])), 64)
		if err == nil && (failed != nil || !(x >= least && x <= most)) {
			err = t.errorAt(at[column], "%s is %.40q, want %s", t.in.Header[at[column]],
				t.text(at[column]), want)
		}
		return x
	}
	o.Slowdown = number(0, math.SmallestNonzeroFloat64, most, "more than 0")
	tasks := number(1, 1, most, "a whole number of 1 or more")
	if o.Tasks = int(tasks); err == nil && float64(o.Tasks) != tasks {
		err = t.errorAt(at[1], "tasks is %.40q, want a whole number of 1 or more", t.text(at[1]))
	}
	o.Memory = number(3, 0, 1, "0 to 1")
	for field := range strings.FieldsSeq(t.text(at[2])) {
		x, failed := strconv.ParseFloat(field, 64)
		if err == nil && (failed != nil || !(x >= 0 && x <= most)) {
			err = t.errorAt(at[2], "load_pct has %.40q, want per cent from 0 on, with spaces between", field)
		}
		o.LoadPct = append(o.LoadPct, x)
	}
	if err == nil && len(o.LoadPct) == 0 {
		err = t.errorAt(at[2], "no load_pct, want per cent by slot, with spaces between")
	}
	return o, err
}
