package queue

import (
	"fmt"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/textfile"
)

// column is a field of a job that has a name in a file. The order is the one
// in which writers put them.
type column uint8

const (
	colID column = iota
	colName
	colUser
	colWorkload
	colArrival
	colDeadline
	colLimit
	colRuntime
	colRuntimeModel
	colPower
	colGPUs
	colGPUModel // pins the job to GPU models; writers have it in colGPUs
	colNodes
	colShare
	colCPUs
	colMem
	colUtil
	colSlot
	colGPUMem
	colKappa
	firstModelColumn // of the job's own model, in the order of [dvfsmodel.ParamList]

	numColumns = firstModelColumn + dvfsmodel.NumParams

	colJob     = numColumns     // the job as a whole
	colExtra   = numColumns + 1 // any x_ column
	colIgnored = numColumns + 2 // any other column of the params format
	colBlank   = numColumns + 3 // a column without a name
	colOnModel = numColumns + 4 // a run time or power on one GPU model
)

const extraPrefix = "x_"

// coefficients are those of a job's own model.
var coefficients = dvfsmodel.ParamList()

// columnNames are the names of the columns in a format; "" where it has none.
type columnNames [numColumns]string

var nativeNames = columnNames{
	"id", "name", "user", "workload", "arrival_s", "deadline_s", "limit_s",
	"runtime_s", "runtime_gpu_model", "power_w", "gpus", "gpu_model", "nodes", "share", "cpus", "mem_gib",
	"util_pct", "slot_s", "gpu_mem_gb", "kappa",
}.withModel(func(p dvfsmodel.Param) string { return p.Name })

var edlNames = columnNames{
	colID: "id", colName: "app", colArrival: "arrival", colDeadline: "deadline",
	colLimit: "limit", colGPUs: "gpus",
}.withModel(paperName)

// paramsNames are the columns of the params format; it ignores all others.
var paramsNames = columnNames{colID: "id", colLimit: "limit"}.withModel(paperName)

// paperName returns a coefficient's name in the paper's notation.
func paperName(p dvfsmodel.Param) string { return p.Symbol }

// withModel adds the names of the coefficients.
func (n columnNames) withModel(name func(dvfsmodel.Param) string) columnNames {
	model := n[firstModelColumn:]
	for i, p := range coefficients {
		model[i] = name(p)
	}
	return n
}

// find returns the column of a name in a file.
func (n *columnNames) find(name string) (column, bool) {
	for c := range numColumns {
		if n[c] == name && name != "" {
			return c, true
		}
	}
	return 0, false
}

// name returns the column's name in a file, "" for the job as a whole.
func (n *columnNames) name(c column) string {
	if c >= numColumns {
		return ""
	}
	return n[c]
}

// known returns the names of the format in order.
func (n *columnNames) known() []string {
	names := make([]string, 0, numColumns)
	for _, name := range n {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Columns returns the names of the columns of a batch in the order in which they are
// written.
func Columns() []string { return nativeNames.known() }

// IsColumn reports whether a batch has a column of a name, x_ columns among them.
func IsColumn(name string) bool {
	_, ok := nativeNames.find(name)
	h, perModel := parseModelColumn(name)
	return ok || isExtra(name) || perModel && h.unit == 0
}

// CheckTarget says what is wrong with a column that a name of a file is to stand for:
// COLUMN, or COLUMN[UNIT] where the name doesn't say in what its numbers are.
func CheckTarget(target string) error {
	column, unit := textfile.SplitTarget(target)
	if !IsColumn(column) {
		return fmt.Errorf("there is no column %s, want one of %s, or one that begins with x_", Printable(column),
			strings.Join(Columns(), ", "))
	}
	col, ok := nativeNames.find(column)
	if h, perModel := parseModelColumn(column); perModel {
		col, ok = h.of, true
	}
	if !ok {
		col = colExtra
	}
	return quantityOf(col).CheckUnit(column, unit)
}

// model returns the names of the coefficients that a job's own model can't do without.
func (n *columnNames) model() string {
	var names []string
	for c := firstModelColumn; c < numColumns; c++ {
		if neededColumns.has(c) {
			names = append(names, n[c])
		}
	}
	return strings.Join(names, ", ")
}

type columnSet uint64

const modelColumns columnSet = (1<<numColumns - 1) &^ (1<<firstModelColumn - 1)

// neededColumns are the columns that a job's own model can't do without.
var neededColumns = func() (s columnSet) {
	for i, p := range coefficients {
		if !p.Optional {
			s = s.with(firstModelColumn + column(i))
		}
	}
	return s
}()

func (s columnSet) has(c column) bool           { return s&(1<<c) != 0 }
func (s columnSet) with(c column) columnSet     { return s | 1<<c }
func (s columnSet) hasAny(other columnSet) bool { return s&other != 0 }
func (s columnSet) hasAll(other columnSet) bool { return s&other == other }

// first returns the first column of the set, numColumns when it is empty.
func (s columnSet) first() column {
	for c := range numColumns {
		if s.has(c) {
			return c
		}
	}
	return numColumns
}

// isExtra reports whether a name is that of an uninterpreted column.
func isExtra(name string) bool {
	return len(name) > len(extraPrefix) && strings.HasPrefix(name, extraPrefix)
}

// parseModelColumn reads the name of a column with run times or powers on one GPU model, such
// as runtime_s.V100 or runtime_h.V100: what stands before the model says the unit.
func parseModelColumn(name string) (h columnHeading, ok bool) {
	head, model, found := strings.Cut(name, ".")
	if !found || isExtra(name) {
		return h, false
	}
	h, ok = columnHeadingOf(head)
	h.of, h.extra, h.col = h.col, strings.TrimSpace(model), colOnModel
	return h, ok && (h.of == colRuntime || h.of == colPower) && (head == nativeNames[h.of] || h.unit != 0)
}

// coefficient returns where a model column lives.
func coefficient(m *dvfsmodel.Params, c column) *float64 { return m.Value(int(c - firstModelColumn)) }
