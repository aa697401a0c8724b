package predict

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/textfile"
)

// Columns say which columns of a job table are the owner's and the name's; "" is
// what is usual: user, vc or task, and all of job_name, model and dataset.
type Columns struct{ Owner, Name string }

// The columns that are understood. What says how a job ended or what it took is never
// among what a job is predicted from.
var (
	defaultOwnerColumns = []string{"user", "vc", "task"}
	defaultNameColumns  = []string{"job_name", "model", "dataset"}
	placementColumns    = []string{"partition", "account", "qos"}
	sizes               = []string{"gpus", "cpus", "nodes", "params_millions"}
	conditions          = []string{"running_at_start"}
	requests            = []string{"requested_s", "deadline_s"}
	valueColumns        = [...]string{Time: "runtime_s", Energy: "energy_kwh", Power: "power_per_gpu_w"}
	outcomes            = []string{"runtime_s", "state", "wait_s", "energy_kwh", "power_per_gpu_w"}
)

// Layout is which columns jobs are read from. Tables of jobs that are predicted have
// the layout of those that were learnt from.
type Layout struct {
	owner, request            string
	labels, sizes, conditions []string
}

// Table is a job table as it was read.
type Table struct {
	Name     string
	Layout   Layout
	Jobs     []Features
	Outcomes []Outcome // by job; End is NaN where the run time isn't stated
	Lines    []int     // by job
}

// ReadTable reads a table of jobs as CSV with the columns job_id and submit_s at
// least. A nil layout follows from the header and the wanted columns.
func ReadTable(r io.Reader, name string, want Columns, layout *Layout) (*Table, error) {
	in, err := textfile.OpenTable(r, name, "job_id and submit_s", textfile.AnyButZero)
	if err != nil {
		return nil, err
	}
	t := &tableReader{Table: in, table: &Table{Name: name}}
	if err := t.arrange(want, layout); err != nil {
		return nil, fmt.Errorf("%s:1: %w", name, err)
	}
	err = in.Each(func() error {
		err := t.read()
		if _, placed := errors.AsType[*textfile.SyntaxError](err); err != nil && !placed {
			return fmt.Errorf("%s:%d: %w", name, in.Line(), err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.table, nil
}

type tableReader struct {
	*textfile.Table
	table *Table
}

// arrange finds the columns.
func (t *tableReader) arrange(want Columns, layout *Layout) error {
	for _, column := range []string{"job_id", "submit_s"} {
		if !t.Has(column) {
			return fmt.Errorf("no column %s", column)
		}
	}
	if layout != nil {
		t.table.Layout = *layout
		return nil
	}
	l := &t.table.Layout
	for _, column := range []string{want.Owner, want.Name} {
		if column != "" && !t.Has(column) {
			return fmt.Errorf("no column %q, it has %s", column, strings.Join(t.Header, ", "))
		}
		if slices.Contains(outcomes, column) {
			return fmt.Errorf("column %q says how jobs ended, they can't be predicted from it", column)
		}
	}
	l.owner = want.Owner
	if l.owner == "" {
		l.owner = firstOrEmpty(t.present(defaultOwnerColumns))
	}
	if want.Name != "" {
		l.labels = []string{want.Name}
	} else {
		l.labels = t.present(defaultNameColumns)
	}
	l.labels = slices.DeleteFunc(append(l.labels, t.present(placementColumns)...), func(c string) bool {
		return c == l.owner
	})
	l.sizes, l.conditions, l.request = t.present(sizes), t.present(conditions),
		firstOrEmpty(t.present(requests))
	return nil
}

func (t *tableReader) present(columns []string) []string {
	return slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return !t.Has(c) })
}

// firstOrEmpty returns the first of some texts; empty where there is none.
func firstOrEmpty(of []string) string {
	if len(of) == 0 {
		return ""
	}
	return of[0]
}

// number returns a cell's; NaN where it is empty or there is no such column.
func (t *tableReader) number(column string) (float64, error) {
	if strings.TrimSpace(t.Text(column)) == "" {
		return math.NaN(), nil
	}
	text, err := t.Number(t.Index(column))
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("column %s is %q, want a number of 0 or more", column, text)
	}
	return v, nil
}

func (t *tableReader) numbers(columns []string) ([]float64, error) {
	values := make([]float64, len(columns))
	for i, c := range columns {
		var err error
		if values[i], err = t.number(c); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (t *tableReader) read() error {
	l := &t.table.Layout
	numbers, err := t.numbers([]string{"submit_s", l.request, "wait_s"})
	if err != nil {
		return err
	}
	j := Features{
		ID: t.Text("job_id"), Submit: numbers[0], Owner: t.Text(l.owner),
		Requested: numbers[1],
	}
	wait := numbers[2]
	switch {
	case j.ID == "":
		return errors.New("job_id is empty")
	case math.IsNaN(j.Submit):
		return errors.New("submit_s is empty, want seconds")
	case math.IsNaN(wait):
		wait = 0
	}
	for _, c := range l.labels {
		j.Labels = append(j.Labels, t.Text(c))
	}
	if j.Sizes, err = t.numbers(l.sizes); err != nil {
		return err
	}
	if j.Conditions, err = t.numbers(l.conditions); err != nil {
		return err
	}
	values, err := t.numbers(valueColumns[:])
	if err != nil {
		return err
	}
	o := Outcome{
		End:       j.Submit + wait + values[Time],
		Completed: !t.Has("state") || strings.HasPrefix(t.Text("state"), "COMPLETED"), Value: [3]float64(values),
	}
	t.table.Jobs = append(t.table.Jobs, j)
	t.table.Outcomes = append(t.table.Outcomes, o)
	t.table.Lines = append(t.table.Lines, t.Line())
	return nil
}

// Measured returns how many jobs have a value of a target.
func (t *Table) Measured(target Target) int {
	n := 0
	for i := range t.Outcomes {
		if isUsable(t.Outcomes[i].ValueOf(target)) {
			n++
		}
	}
	return n
}

// Column returns the column that a target is read from.
func (t Target) Column() string { return valueColumns[t] }
