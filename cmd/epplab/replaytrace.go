package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/queue"
)

// traceFiles are the files of a trace; the last three may be missing.
type traceFiles struct{ pods, nodes, power, arrivals, order string }

// traceNamesOf takes them from flags and from the folder that is given.
func traceNamesOf(c *cli.Context) (*traceFiles, error) {
	n := &traceFiles{
		c.String("pods"), c.String("nodes"), c.String("power"), c.String("arrivals"), c.String("node-order"),
	}
	if c.NArg() > 0 {
		folder := c.Args().First()
		if err := n.find(folder, c.String("family")); err != nil {
			return nil, terminal.WithHint(err, "--pods and --nodes name files anywhere")
		}
	}
	if n.nodes == "" {
		n.nodes, n.order = n.order, ""
	}
	if n.pods == "" || n.nodes == "" {
		return nil, &terminal.UsageError{
			Msg:  "no trace, want a folder with one, or --pods and --nodes",
			Hint: "epplab generate openb demo makes one",
		}
	}
	if n.arrivals != "" && (c.Int("seeds") > 1 || c.IsSet("load")) {
		return nil, terminal.Usagef(
			"--arrivals is one stream with an end of its own, want no --seeds and no --load",
		)
	}
	return n, nil
}

func (n *traceFiles) find(folder, family string) (err error) {
	if n.pods == "" {
		if n.pods, err = firstFile(folder, "pods.csv", "openb_pod_list_"+family+".csv"); err != nil {
			return err
		}
	}
	if n.nodes == "" {
		n.nodes, err = firstFile(folder, "nodes.csv", "openb_node_list_gpu_node.csv")
	}
	return err
}

// firstFile returns the first of the names that the folder has, as it is or
// compressed.
func firstFile(folder string, names ...string) (string, error) {
	for _, name := range names {
		for _, ending := range []string{"", ".gz"} {
			path := filepath.Join(folder, name+ending)
			if _, err := os.Stat(path); err == nil {
				return path, nil
			} else if !errors.Is(err, fs.ErrNotExist) {
				return "", fmt.Errorf("%s: %w", folder, terminal.WithoutPath(err))
			}
		}
	}
	return "", fmt.Errorf("%s: no %s: %w", folder, strings.Join(names, " or "), errNoSuchFile)
}

// errNoSuchFile is the cause of an error for a folder without the lists.
var errNoSuchFile = errors.New("no such file in this folder")

func (in *inflation) read(t *terminal.Terminal, n *traceFiles) error {
	loaded, err := readTrace(t, n.pods, n.nodes, n.power)
	if err != nil {
		return err
	}
	if n.order != "" {
		order, err := terminal.ParseFile(t, n.order, trace.ReadNodes)
		if err != nil {
			return fmt.Errorf("read node order: %w", err)
		}
		if err := loaded.reorder(order, n.order); err != nil {
			return err
		}
		in.keepsNodeOrder = true
	}
	in.trace = loaded
	in.demands = trace.Demands(loaded.pods)
	in.workload = fleet.NewWorkload(in.demands, fleet.PaperCover)
	in.label = traceLabel(n.pods)
	if n.arrivals != "" {
		arrivals, err := terminal.ParseFile(
			t,
			n.arrivals,
			func(r io.Reader, name string) ([]trace.Arrival, error) {
				return trace.ReadArrivals(r, name, loaded.pods)
			},
		)
		if err != nil {
			return fmt.Errorf("read arrivals: %w", err)
		}
		in.stream = make([]int32, len(arrivals))
		for i := range arrivals {
			in.stream[i] = int32(arrivals[i].Pod)
		}
	}
	if fleet.NewState(loaded.kinds).Capacity() == 0 {
		return fmt.Errorf("%s: no node has a GPU, want one at least", n.nodes)
	}
	return nil
}

func traceLabel(pods string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(pods), ".gz"), ".csv")
	if family, ok := strings.CutPrefix(name, "openb_pod_list_"); ok {
		return family
	}
	if name == "pods" {
		if folder, err := filepath.Abs(pods); err == nil {
			return filepath.Base(filepath.Dir(folder))
		}
	}
	return name
}

// reorder puts the nodes into the order of another list of the same ones.
func (l *clusterTrace) reorder(order []trace.NodeRow, name string) error {
	if len(order) != len(l.rows) {
		return fmt.Errorf("%s: %d nodes, want the %d of the node list", name, len(order), len(l.rows))
	}
	at := make(map[string]int, len(l.rows))
	for i := range l.rows {
		at[l.rows[i].Name] = i
	}
	rows, kinds := make([]trace.NodeRow, len(order)), make([]*fleet.Kind, len(order))
	for i := range order {
		from, ok := at[order[i].Name]
		if !ok {
			return &queue.SyntaxError{
				Pos: queue.Position{File: name, Line: order[i].Line},
				Msg: fmt.Sprintf("node %.40q isn't in the node list, or twice here", order[i].Name),
			}
		}
		delete(at, order[i].Name)
		rows[i], kinds[i] = l.rows[from], l.kinds[from]
	}
	l.rows, l.kinds = rows, kinds
	return nil
}

// drawnStream is the stream and the order of the nodes of a seed; order is nil for
// that of the list.
type drawnStream struct {
	rows  []int32
	order []int
}

func (in *inflation) draw(seed uint64) (d drawnStream, err error) {
	if in.stream != nil {
		d.rows = slices.Clone(in.stream)
	} else if d.rows, d.order, err = replay.DrawPaper(seed, in.demands, len(in.trace.kinds), in.capacity(),
		in.until); err != nil {
		return drawnStream{}, err
	}
	replay.ReorderInBatches(d.rows, in.demands, in.batch)
	if in.keepsNodeOrder {
		d.order = nil
	}
	return d, nil
}

func (in *inflation) capacity() int64 {
	sum := int64(0)
	for _, k := range in.trace.kinds {
		sum += int64(k.GPUs) * fleet.WholeGPU
	}
	return sum
}

func (d *drawnStream) kinds(list []*fleet.Kind) []*fleet.Kind {
	if d.order == nil {
		return list
	}
	kinds := slices.Clone(list)
	for i, from := range d.order {
		kinds[i] = list[from]
	}
	return kinds
}
