package trace

import (
	"fmt"
	"io"
	"strconv"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/queue"
)

// NodeRow is a node of a list in the openb format.
type NodeRow struct {
	Name, Model string
	CPU, Mem    int64 // milli-vCPU, MiB
	GPUs        int
	Weight      float64 // what a watt of the node counts; 0: what its GPU model's does
	Line        int     // of the list
}

// ReadNodes reads a list of nodes in the openb format: CSV with a header that
// names the columns cpu_milli, memory_mib, gpu and model and may name sn, the
// node's name, energy_weight, and rank. Nodes come back in the order of their ranks, which
// count from 0; without ranks in the order of the list. The name stands for the
// input in errors; every one is a [queue.SyntaxError] but those of the reader
// itself.
func ReadNodes(r io.Reader, name string) ([]NodeRow, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	found, err := t.requireColumns("cpu_milli", "memory_mib", "gpu", "model")
	if err != nil {
		return nil, err
	}
	n := nodeListReader{
		csvTable: t, columns: found, name: t.in.Index("sn"), rank: t.in.Index("rank"),
		weight: t.in.Index("energy_weight"), byName: make(map[string]int),
	}
	err = t.each("no nodes, want at least one line after the header", n.add)
	if err != nil || n.rank < 0 {
		return n.rows, err
	}
	return n.sortedByRank()
}

// nodeListReader is the nodes read so far.
type nodeListReader struct {
	*csvTable
	columns            []int
	name, rank, weight int // columns, -1 where there is none
	rows               []NodeRow
	ranks              []int
	byName             map[string]int // line of each name
}

// maxNodes bounds ranks.
const maxNodes = 1e9

// add reads the current record.
func (n *nodeListReader) add() (err error) {
	row := NodeRow{Name: n.text(n.name), Model: n.internedText(n.columns[3]), Line: n.in.Line()}
	if row.CPU, err = n.integer(n.columns[0], maxQuantity); err != nil {
		return err
	}
	if row.Mem, err = n.integer(n.columns[1], maxQuantity); err != nil {
		return err
	}
	gpus, err := n.integer(n.columns[2], fleet.MaxGPUs)
	if err != nil {
		return err
	}
	row.GPUs = int(gpus)
	if row.Weight, err = n.energyWeight(); err != nil {
		return err
	}
	if row.GPUs > 0 && row.Model == "" {
		return n.errorAt(n.columns[3], "no GPU model, want one for %d GPUs", row.GPUs)
	}
	if row.Name != "" {
		if line, twice := n.byName[row.Name]; twice {
			return n.errorAt(n.name, "node %.40q is on line %d already", row.Name, line)
		}
		n.byName[row.Name] = n.in.Line()
	}
	if n.rank >= 0 {
		rank, err := n.integer(n.rank, maxNodes)
		if err != nil {
			return err
		}
		n.ranks = append(n.ranks, int(rank))
	}
	n.rows = append(n.rows, row)
	return nil
}

// energyWeight reads what a watt counts, 0 where nothing says so.
func (n *nodeListReader) energyWeight() (float64, error) {
	if n.weight < 0 || len(n.field(n.weight)) == 0 {
		return 0, nil
	}
	field := n.field(n.weight)
	x, err := strconv.ParseFloat(field, 64)
	if err != nil || !(x > 0 && x <= maxQuantity) {
		return 0, n.errorAt(n.weight, "energy_weight is %.40q, want a number above 0, or nothing", field)
	}
	return x, nil
}

// sortedByRank puts the nodes in order.
func (n *nodeListReader) sortedByRank() ([]NodeRow, error) {
	sorted := make([]NodeRow, len(n.rows))
	for i, rank := range n.ranks {
		if rank >= len(sorted) {
			return nil, n.errorOn(n.rows[i].Line,
				"rank is %d, want each from 0 to %d once", rank, len(sorted)-1)
		}
		if line := sorted[rank].Line; line > 0 {
			return nil, n.errorOn(n.rows[i].Line, "rank %d is on line %d already", rank, line)
		}
		sorted[rank] = n.rows[i]
	}
	return sorted, nil
}

// Kinds returns the kind of each node; equal nodes share one. What they draw comes
// from the profiles: that of the GPU model, and the default CPU's; what a watt
// counts, from the row if it says so, else from the GPU model. An error
// names the line of the list, whose name stands in it.
func Kinds(rows []NodeRow, name string, profiles *config.Profiles) ([]*fleet.Kind, error) {
	kinds := make([]*fleet.Kind, len(rows))
	known := make(map[NodeRow]*fleet.Kind)
	for i := range rows {
		key := rows[i]
		key.Name, key.Line = "", 0
		kind, ok := known[key]
		if !ok {
			power, err := profiles.Power(key.Model, key.GPUs)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", queue.Position{File: name, Line: rows[i].Line}, err)
			}
			if key.Weight > 0 {
				power.Weight = key.Weight
			}
			kind = &fleet.Kind{Model: key.Model, CPU: key.CPU, Mem: key.Mem, GPUs: key.GPUs, Power: power}
			if err := kind.Validate(); err != nil {
				return nil, fmt.Errorf("%v: node %.40q: %w", queue.Position{File: name, Line: rows[i].Line},
					rows[i].Name, err)
			}
			known[key] = kind
		}
		kinds[i] = kind
	}
	return kinds, nil
}
