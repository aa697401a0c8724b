package queue

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// WriteCSV writes a valid batch as CSV with the columns that its jobs use.
// [Read] returns the same jobs.
func WriteCSV(w io.Writer, b *Batch) error { return writeCSV(w, b, &nativeNames) }

// WriteEDL writes a valid batch with the EDL columns. It is an error when a job
// has no model or a field that the format lacks.
func WriteEDL(w io.Writer, b *Batch) error { return writeCSV(w, b, &edlNames) }

func writeCSV(w io.Writer, b *Batch, names *columnNames) error {
	if err := b.Validate(); err != nil {
		return fmt.Errorf("write batch: %w", err)
	}
	used, extras := usedColumns(b)
	measured := measuredColumns(b)
	if names == &edlNames {
		used |= neededColumns.with(colName).with(colArrival).with(colDeadline)
	}
	cols, header, err := names.header(used)
	if err != nil {
		return err
	}
	for _, m := range measured {
		if names != &nativeNames {
			return fmt.Errorf("write batch: the format has no column for %s", nativeNames[m.of])
		}
		header = append(header, nativeNames[m.of]+"."+m.model)
	}
	out := csv.NewWriter(w)
	// A csv.Writer keeps its first error for the end.
	_ = out.Write(append(header, extras...))
	row := make([]string, len(header)+len(extras))
	for i := range b.Jobs {
		job := &b.Jobs[i]
		if names == &edlNames && job.Model == nil {
			return fmt.Errorf("write batch: job %s has no model, which the format needs", quoted(job.ID))
		}
		for k, c := range cols {
			row[k] = names.cell(job, c)
		}
		for k, m := range measured {
			row[len(cols)+k] = m.cell(job)
		}
		fillExtras(row[len(header):], extras, job.Extra)
		_ = out.Write(row)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write batch: %w", err)
	}
	return nil
}

// header returns the used columns in order with their names in the format.
func (n *columnNames) header(used columnSet) ([]column, []string, error) {
	cols := make([]column, 0, numColumns)
	header := make([]string, 0, numColumns)
	for c := range numColumns {
		if !used.has(c) {
			continue
		}
		if n[c] == "" {
			return nil, nil, fmt.Errorf("write batch: the format has no column for %s", nativeNames[c])
		}
		cols, header = append(cols, c), append(header, n[c])
	}
	return cols, header, nil
}

// cell returns the text of a job's column. EDL files say arrival and deadline of
// every job.
func (n *columnNames) cell(j *Job, c column) string {
	if n == &edlNames && (c == colArrival || c == colDeadline) {
		return formatNumber(*j.field(c))
	}
	return j.cell(c)
}

// usedColumns returns the columns in which some job is not at the default, and the
// names of the x_ columns.
func usedColumns(b *Batch) (columnSet, []string) {
	var used columnSet
	extras := map[string]bool{}
	for i := range b.Jobs {
		for c := range numColumns {
			if !used.has(c) && b.Jobs[i].cell(c) != "" {
				used = used.with(c)
			}
		}
		for _, f := range b.Jobs[i].Extra {
			extras[f.Name] = true
		}
	}
	return used, slices.Sorted(maps.Keys(extras))
}

// measuredColumn is a column of run times or powers on one GPU model.
type measuredColumn struct {
	of    column
	model string
}

// measuredColumns returns those that some job has, run times first.
func measuredColumns(b *Batch) []measuredColumn {
	var all []measuredColumn
	seen := map[measuredColumn]bool{}
	for i := range b.Jobs {
		for k := range b.Jobs[i].Measured {
			m := &b.Jobs[i].Measured[k]
			for _, c := range [...]column{colRuntime, colPower} {
				if at := (measuredColumn{c, m.Model}); *m.field(c) > 0 && !seen[at] {
					seen[at] = true
					all = append(all, at)
				}
			}
		}
	}
	slices.SortFunc(all, func(x, y measuredColumn) int {
		return cmp.Or(cmp.Compare(x.of, y.of), strings.Compare(x.model, y.model))
	})
	return all
}

// cell returns the text for a job, "" where it has none.
func (m measuredColumn) cell(j *Job) string {
	for i := range j.Measured {
		if value := *j.Measured[i].field(m.of); j.Measured[i].Model == m.model && value > 0 {
			return formatNumber(value)
		}
	}
	return ""
}

// fillExtras puts a job's x_ values, which are by name, under their columns.
func fillExtras(row, columns []string, extra []Field) {
	clear(row)
	for i, name := range columns {
		if len(extra) > 0 && extra[0].Name == name {
			row[i] = extra[0].Value
			extra = extra[1:]
		}
	}
}

// cell returns the text of a column in CSV, "" for the default.
func (j *Job) cell(c column) string {
	switch c {
	case colID:
		return j.ID
	case colName:
		return j.Name
	case colUser:
		return j.User
	case colWorkload:
		return j.Workload
	case colRuntimeModel:
		return j.RuntimeModel
	case colGPUs:
		return j.gpusText()
	case colGPUModel:
		return ""
	case colUtil:
		if j.Profile == nil {
			return ""
		}
		return seriesText(j.Profile.UtilPct)
	default:
		value, given := j.value(c)
		if !given {
			return ""
		}
		return formatNumber(value)
	}
}

// value returns a number of the job, and whether it is other than the default.
func (j *Job) value(c column) (float64, bool) {
	if c >= firstModelColumn {
		if j.Model == nil {
			return 0, false
		}
		value := *coefficient(j.Model, c)
		return value, value != 0 || neededColumns.has(c)
	}
	if profileColumns.has(c) {
		if j.Profile == nil {
			return 0, false
		}
		value := *j.Profile.field(c)
		return value, value != 0
	}
	if c == colNodes {
		return float64(j.Nodes), j.Nodes != 0
	}
	value := *j.field(c)
	switch c {
	case colDeadline, colLimit:
		return value, !math.IsInf(value, 1)
	case colShare:
		return value, value != 1
	default:
		return value, value != 0
	}
}

// gpusText is "" for the default of one GPU of any model on each node.
func (j *Job) gpusText() string {
	gpus := j.GPUs
	if len(gpus) == 1 && gpus[0].Model == "" {
		if gpus[0].Count == max(1, j.Nodes) {
			return ""
		}
		return strconv.Itoa(gpus[0].Count)
	}
	parts := make([]string, len(gpus))
	for i, g := range gpus {
		parts[i] = gpuModelText(g.Model) + ":" + strconv.Itoa(g.Count)
	}
	return strings.Join(parts, ";")
}

// WriteJSON writes a valid batch as {"jobs":[…]} with one job on each line and
// without fields at their default. [Read] returns the same jobs.
func WriteJSON(w io.Writer, b *Batch) error {
	if err := b.Validate(); err != nil {
		return fmt.Errorf("write batch: %w", err)
	}
	out := bufio.NewWriter(w)
	// A bufio.Writer keeps its first error for Flush.
	_, _ = out.WriteString("{\"jobs\":[\n")
	var line []byte
	for i := range b.Jobs {
		line = appendJob(line[:0], &b.Jobs[i])
		if i < len(b.Jobs)-1 {
			line = append(line, ',')
		}
		_, _ = out.Write(append(line, '\n'))
	}
	_, _ = out.WriteString("]}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write batch: %w", err)
	}
	return nil
}

func appendJob(dst []byte, j *Job) []byte {
	dst = append(dst, '{')
	for c := range firstModelColumn {
		switch {
		case c == colGPUs:
			dst = appendGPUs(dst, j)
		case isText(c) || c == colUtil:
			if text := j.cell(c); text != "" {
				dst = appendString(appendKey(dst, nativeNames[c]), text)
			}
		default:
			if value, given := j.value(c); given {
				dst = appendNumber(appendKey(dst, nativeNames[c]), value)
			}
		}
	}
	if j.Model != nil {
		dst = append(appendKey(dst, keyModel), '{')
		for c := firstModelColumn; c < numColumns; c++ {
			if value, given := j.value(c); given {
				dst = appendNumber(appendKey(dst, nativeNames[c]), value)
			}
		}
		dst = append(dst, '}')
	}
	for i := range j.Measured {
		for _, c := range [...]column{colRuntime, colPower} {
			if value := *j.Measured[i].field(c); value > 0 {
				dst = appendNumber(appendKey(dst, nativeNames[c]+"."+j.Measured[i].Model), value)
			}
		}
	}
	for _, f := range j.Extra {
		dst = appendString(appendKey(dst, f.Name), f.Value)
	}
	return append(dst, '}')
}

func appendGPUs(dst []byte, j *Job) []byte {
	gpus := j.GPUs
	if j.gpusText() == "" {
		return dst
	}
	dst = appendKey(dst, nativeNames[colGPUs])
	if len(gpus) == 1 && gpus[0].Model == "" {
		return strconv.AppendInt(dst, int64(gpus[0].Count), 10)
	}
	dst = append(dst, '{')
	for _, g := range gpus {
		dst = strconv.AppendInt(appendKey(dst, gpuModelText(g.Model)), int64(g.Count), 10)
	}
	return append(dst, '}')
}

// appendKey appends a key of an object, after a comma unless it is the first.
func appendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(appendString(dst, key), ':')
}

func appendString(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string has no way to go wrong
	return append(dst, text...)
}
