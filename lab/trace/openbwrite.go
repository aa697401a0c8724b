package trace

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"

	"github.com/epplan/epplan/planner/fleet"
)

// writeTable writes a header and so many rows.
func writeTable(w io.Writer, header []string, rows int, row func(i int) []string) error {
	out := csv.NewWriter(w)
	_ = out.Write(header) // its first error stays
	for i := range rows {
		_ = out.Write(row(i))
	}
	out.Flush()
	return out.Error()
}

func integerText[T int | int64](x T) string { return strconv.FormatInt(int64(x), 10) }

// secondsText returns a time, empty where there is none.
func secondsText(s float64) string {
	if math.IsNaN(s) {
		return ""
	}
	return strconv.FormatFloat(s, 'f', -1, 64)
}

// WritePods writes a list of tasks that [ReadPods] reads.
func WritePods(w io.Writer, pods []Pod) error {
	return writeTable(w, []string{
		"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time",
		"scheduled_time",
	}, len(pods), func(i int) []string {
		p := &pods[i]
		return []string{
			p.Name, integerText(p.Demand.CPU), integerText(p.Demand.Mem), integerText(p.Demand.GPUs),
			integerText(p.Demand.Milli), p.Demand.Spec,
			secondsText(p.Created), secondsText(p.Deleted), secondsText(p.Scheduled),
		}
	})
}

// WriteNodes writes a list of nodes that [ReadNodes] reads.
func WriteNodes(w io.Writer, nodes []NodeRow) error {
	return writeTable(w, []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, len(nodes),
		func(i int) []string {
			n := &nodes[i]
			return []string{n.Name, integerText(n.CPU), integerText(n.Mem), integerText(n.GPUs), n.Model}
		})
}

// WriteWorkload writes a target workload as data/openb has it.
func WriteWorkload(w io.Writer, m fleet.Workload) error {
	return writeTable(w, []string{"cpu_milli", "num_gpu", "gpu_milli", "gpu_spec", "probability"}, len(m),
		func(i int) []string {
			c := &m[i]
			return []string{
				integerText(c.CPU), integerText(c.GPUs), integerText(c.Milli), c.Spec,
				strconv.FormatFloat(c.P, 'g', 17, 64),
			}
		})
}
