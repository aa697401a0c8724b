package replay

import (
	"bufio"
	"encoding/csv"
	"io"
	"strconv"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/queue"
)

const curveHeader = "arrived_load,eopc_w,gpu_alloc_ratio,fragmented_gpu,arrived_pods," +
	"placed_pods,cpu_w,gpu_w\n"

// WriteCurve writes a curve as CSV with the columns and the number formats of
// data/openb/curves.
func WriteCurve(w io.Writer, points []LoadPoint) error {
	out := bufio.NewWriter(w)
	// A bufio.Writer keeps its first error until it is flushed.
	_, _ = out.WriteString(curveHeader)
	var line []byte
	for i := range points {
		p := &points[i]
		line = strconv.AppendFloat(line[:0], p.Load, 'f', 6, 64)
		line = strconv.AppendFloat(append(line, ','), float64(p.Power()), 'f', -1, 64)
		line = strconv.AppendFloat(append(line, ','), p.Ratio, 'f', 6, 64)
		line = strconv.AppendFloat(append(line, ','), p.Fragmented, 'f', 3, 64)
		line = strconv.AppendInt(append(line, ','), int64(p.Arrived), 10)
		line = strconv.AppendInt(append(line, ','), int64(p.Placed), 10)
		line = strconv.AppendFloat(append(line, ','), float64(p.CPU), 'f', -1, 64)
		line = strconv.AppendFloat(append(line, ','), float64(p.GPU), 'f', -1, 64)
		_, _ = out.Write(append(line, '\n'))
	}
	return out.Flush()
}

// WriteDecisions writes what became of each arrival as CSV with the columns of
// data/openb/decisions: a dropped task has no node. Names are by arrival and by
// node.
func WriteDecisions(w io.Writer, decisions []Decision, task, node func(i int) string) error {
	out := csv.NewWriter(w)
	row := []string{"seq", "name", "node", "gpus"}
	if err := out.Write(row); err != nil {
		return err
	}
	var set []byte
	for i, d := range decisions {
		row[0], row[1], row[2], row[3] = strconv.Itoa(i), textfile.EscapeFormula(queue.Printable(task(i))), "", ""
		if d.Node >= 0 {
			set = report.AppendSet(set[:0], d.GPUs, "-")
			row[2], row[3] = textfile.EscapeFormula(queue.Printable(node(int(d.Node)))), string(set)
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
