package trace

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/epplan/epplan/planner/fleet"
)

// WritePods writes a list of tasks that [ReadPods] reads.
func WritePods(w io.Writer, pods []Pod) error {
	out := bufio.NewWriter(w)
	_, err := out.WriteString("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time," +
		"deletion_time,scheduled_time\n")
	var line []byte
	for i := range pods {
		p := &pods[i]
		line = append(appendText(line[:0], p.Name), ',')
		for _, x := range [...]int64{
			p.Demand.CPU, p.Demand.Mem, int64(p.Demand.GPUs),
			int64(p.Demand.Milli),
		} {
			line = append(strconv.AppendInt(line, x, 10), ',')
		}
		line = appendText(line, p.Demand.Spec)
		for _, s := range [...]float64{p.Created, p.Deleted, p.Scheduled} {
			line = append(line, ',')
			if !math.IsNaN(s) {
				line = strconv.AppendFloat(line, s, 'f', -1, 64)
			}
		}
		if _, err = out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// WriteNodes writes a list of nodes that [ReadNodes] reads.
func WriteNodes(w io.Writer, nodes []NodeRow) error {
	out := bufio.NewWriter(w)
	_, err := out.WriteString("sn,cpu_milli,memory_mib,gpu,model\n")
	var line []byte
	for i := range nodes {
		n := &nodes[i]
		line = append(appendText(line[:0], n.Name), ',')
		for _, x := range [...]int64{n.CPU, n.Mem, int64(n.GPUs)} {
			line = append(strconv.AppendInt(line, x, 10), ',')
		}
		if _, err = out.Write(append(appendText(line, n.Model), '\n')); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// WriteWorkload writes a target workload as data/openb has it.
func WriteWorkload(w io.Writer, m fleet.Workload) error {
	out := bufio.NewWriter(w)
	_, err := out.WriteString("cpu_milli,num_gpu,gpu_milli,gpu_spec,probability\n")
	var line []byte
	for i := range m {
		c := &m[i]
		line = line[:0]
		for _, x := range [...]int64{c.CPU, int64(c.GPUs), int64(c.Milli)} {
			line = append(strconv.AppendInt(line, x, 10), ',')
		}
		line = append(appendText(line, c.Spec), ',')
		line = strconv.AppendFloat(line, c.P, 'g', 17, 64)
		if _, err = out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// appendText is a field with a text, in quotes where it needs them.
func appendText(line []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"") {
		return append(line, s...)
	}
	return append(append(append(line, '"'), strings.ReplaceAll(s, `"`, `""`)...), '"')
}
