package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/queue"
)

func traceCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "trace",
		Usage: "check a trace in the format of Alibaba's openb and tell what is in it",
		Description: "Files may be compressed by gzip. Tasks have the columns cpu_milli, memory_mib, " +
			"num_gpu and gpu_milli, and\n" +
			"may have name, gpu_spec, creation_time, deletion_time and scheduled_time. Nodes have cpu_milli,\n" +
			"memory_mib, gpu and model, and may have sn, rank and energy_weight. Power comes from [[gpu]] and [[cpu]]\n" +
			"tables: busy_w and idle_w of each GPU model that a node has, and the CPU model that is named first.\n" +
			"Example: epplab trace --pods demo/pods.csv --nodes demo/nodes.csv --workload " +
			"demo/workload.csv",
		Flags: append(traceFlags(),
			&cli.StringFlag{Name: "workload", Usage: "CSV `FILE` to write with the target workload: " +
				"how likely which task is"},
			terminal.JSONFlag(),
		),
		Action: t.Runs(terminal.WithoutArgs(runImportOpenb)),
	}
}

func traceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "pods", Usage: "CSV `FILE` with the tasks"},
		&cli.StringFlag{Name: "nodes", Usage: "CSV `FILE` with the nodes"},
		&cli.StringFlag{Name: "power", Usage: "TOML `FILE` with further GPU models, and CPU models"},
	}
}

// clusterTrace is a trace as its files have it.
type clusterTrace struct {
	pods  []trace.Pod
	rows  []trace.NodeRow
	kinds []*fleet.Kind // of each node
}

func readClusterTrace(t *terminal.Terminal, c *cli.Context) (*clusterTrace, error) {
	for _, flag := range []string{"pods", "nodes"} {
		if c.String(flag) == "" {
			return nil, terminal.Usagef("no --%s, want a file with the trace's %s", flag,
				map[string]string{"pods": "tasks", "nodes": "nodes"}[flag])
		}
	}
	return readTrace(t, c.String("pods"), c.String("nodes"), c.String("power"))
}

// readTrace reads the files of a trace; power is optional.
func readTrace(t *terminal.Terminal, pods, nodes, power string) (*clusterTrace, error) {
	profiles, err := setup.ReadProfiles(t, power)
	if err != nil {
		return nil, err
	}
	loaded := &clusterTrace{}
	if loaded.pods, err = terminal.ParseFile(t, pods, trace.ReadPods); err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	if loaded.rows, err = terminal.ParseFile(t, nodes, trace.ReadNodes); err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	if loaded.kinds, err = trace.Kinds(loaded.rows, nodes, profiles); err != nil {
		return nil, terminal.WithHint(
			fmt.Errorf("read nodes: %w", err),
			"describe GPU models in [[gpu]] tables of a "+
				"file for --power: name, idle_w and busy_w",
		)
	}
	return loaded, nil
}

func runImportOpenb(t *terminal.Terminal, c *cli.Context) error {
	loaded, err := readClusterTrace(t, c)
	if err != nil {
		return err
	}
	workload := fleet.NewWorkload(trace.Demands(loaded.pods), fleet.PaperCover)
	if name := c.String("workload"); name == "-" {
		return terminal.Usagef("--workload is -, want a file: what is in the trace goes to standard output")
	} else if name != "" {
		err := t.Write(name, func(w io.Writer) error { return trace.WriteWorkload(w, workload) })
		if err != nil {
			return err
		}
	}
	s := newTraceSummary(loaded, workload)
	if c.Bool("json") {
		return t.PrintJSON(s)
	}
	return t.PrintText(s.text(t.TextOptions(-1)))
}

type traceSummary struct {
	Nodes    int            `json:"nodes"`
	GPUs     float64        `json:"gpus"`
	VCPUs    float64        `json:"vcpus"`
	Memory   float64        `json:"memory_gib"`
	CPUPower dvfsmodel.Watt `json:"empty_cpu_w"`
	GPUPower dvfsmodel.Watt `json:"empty_gpu_w"`
	Kinds    []kindSummary  `json:"kinds"`

	Tasks        int                `json:"tasks"`
	Shapes       []shapeSummary     `json:"shapes"`
	GPUDemand    float64            `json:"gpu_demand_by_capacity"`
	CPUDemand    float64            `json:"cpu_demand_by_capacity"`
	MemoryDemand float64            `json:"memory_demand_by_capacity"`
	Workload     int                `json:"workload_entries"`
	AllKinds     int                `json:"distinct_tasks"`
	Impossible   []unplaceableTasks `json:"never_placed"`
}

type kindSummary struct {
	Model  string         `json:"gpu_model"`
	GPUs   int            `json:"gpus"`
	VCPUs  float64        `json:"vcpus"`
	Memory float64        `json:"memory_gib"`
	Empty  dvfsmodel.Watt `json:"empty_w"`
	Nodes  int            `json:"nodes"`
}

type shapeSummary struct {
	Shape  string  `json:"shape"`
	Tasks  int     `json:"tasks"`
	Share  float64 `json:"share_of_tasks"`
	Demand float64 `json:"gpu_demand"`
	Part   float64 `json:"share_of_gpu_demand"`
	VCPUs  float64 `json:"mean_vcpus"`
	Memory float64 `json:"mean_memory_gib"`
}

// unplaceableTasks is tasks that no empty node has room for.
type unplaceableTasks struct {
	Why   string   `json:"why"`
	Tasks int      `json:"tasks"`
	First []string `json:"first"`
}

func newTraceSummary(loaded *clusterTrace, workload fleet.Workload) *traceSummary {
	v := trace.NewSurvey(loaded.pods, loaded.kinds)
	s := &traceSummary{
		Nodes: v.Nodes.Count, GPUs: wholeGPUs(v.Nodes.GPUMilli), VCPUs: wholeGPUs(v.Nodes.CPU),
		Memory:   toGiB(v.Nodes.Mem),
		CPUPower: v.CPUPower, GPUPower: v.GPUPower, Tasks: v.Tasks.Count,
		GPUDemand: fraction(v.Tasks.GPUMilli, v.Nodes.GPUMilli),
		CPUDemand: fraction(v.Tasks.CPU, v.Nodes.CPU), MemoryDemand: fraction(v.Tasks.Mem, v.Nodes.Mem),
		Workload: len(workload), AllKinds: len(fleet.NewWorkload(trace.Demands(loaded.pods), 1)),
		Impossible: []unplaceableTasks{},
	}
	for _, k := range v.Kinds {
		empty := fleet.NewNode(k.Kind)
		cpu, gpu := empty.Power()
		s.Kinds = append(s.Kinds, kindSummary{
			Model: k.Kind.Model, GPUs: k.Kind.GPUs, VCPUs: wholeGPUs(k.Kind.CPU), Memory: toGiB(k.Kind.Mem),
			Empty: cpu + gpu, Nodes: k.Count,
		})
	}
	for i := range v.Shapes {
		shape := &v.Shapes[i]
		s.Shapes = append(s.Shapes, shapeSummary{
			Shape: shapeName(shape), Tasks: shape.Count,
			Share:  fraction(int64(shape.Count), int64(v.Tasks.Count)),
			Demand: wholeGPUs(shape.GPUMilli), Part: fraction(shape.GPUMilli, v.Tasks.GPUMilli),
			VCPUs:  wholeGPUs(shape.CPU) / float64(shape.Count),
			Memory: toGiB(shape.Mem) / float64(shape.Count),
		})
	}
	for _, m := range v.Misfits {
		none := unplaceableTasks{Why: m.Why.String(), Tasks: m.Count}
		for _, pod := range m.First {
			none.First = append(none.First, podName(loaded.pods, pod))
		}
		s.Impossible = append(s.Impossible, none)
	}
	return s
}

// shapeName returns the number of GPUs as people call it.
func shapeName(s *trace.ShapeCount) string {
	switch {
	case s.GPUs == 0:
		return "no GPU"
	case s.Shared:
		return "a part of a GPU"
	case s.GPUs == 1:
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", s.GPUs)
}

// podName returns a task's name, or its row where the list has no names.
func podName(pods []trace.Pod, pod int) string {
	if name := pods[pod].Name; name != "" {
		return name
	}
	return fmt.Sprintf("row %d", pod)
}

func wholeGPUs(milli int64) float64 { return float64(milli) / 1000 }

func toGiB(mib int64) float64 { return float64(mib) / 1024 }

// fraction returns a as a fraction of b; 0 of nothing.
func fraction(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (s *traceSummary) text(opts *report.TextOptions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s nodes with %s GPUs and %s vCPUs; empty, they draw %s\n\n%s",
		report.FormatCount(s.Nodes), report.FormatCount(int(s.GPUs)), report.FormatCount(int(s.VCPUs)),
		report.FormatWatts(s.CPUPower+s.GPUPower), s.kindTable().Text(opts))
	fmt.Fprintf(&b, "\n%s tasks: they ask for %s of all GPUs, %s of all vCPUs and %s of all memory\n\n%s",
		report.FormatCount(s.Tasks), report.FormatPercent(s.GPUDemand), report.FormatPercent(s.CPUDemand),
		report.FormatPercent(s.MemoryDemand), s.shapeTable().Text(opts))
	fmt.Fprintf(&b, "\nTarget workload: %d of %d kinds of tasks make up %.0f %% of them\n",
		s.Workload, s.AllKinds, 100*fleet.PaperCover)
	for i := range s.Impossible {
		b.WriteString(s.Impossible[i].line() + "\n")
	}
	return b.String()
}

func (m *unplaceableTasks) line() string {
	names := strings.Join(m.First, ", ")
	if more := m.Tasks - len(m.First); more > 0 {
		names += fmt.Sprintf(" and %s more", report.FormatCount(more))
	}
	return fmt.Sprintf("Never placed: %s tasks, %s: %s", report.FormatCount(m.Tasks), m.Why,
		queue.Printable(names))
}

func (s *traceSummary) kindTable() *report.Table {
	return report.TableOf(s.Kinds, func(row *report.Row, k *kindSummary) {
		row.Add(report.Column{Head: "GPU model", Left: true, Max: 30}, report.Text(k.Model))
		row.Add(report.Column{Head: "GPUs"}, report.Count(k.GPUs))
		row.Add(report.Column{Head: "vCPUs"}, report.Number(k.VCPUs))
		row.Add(report.Column{Head: "GiB"}, report.Number(k.Memory))
		row.Add(report.Column{Head: "empty", Unit: report.Watts}, report.Number(k.Empty))
		row.Add(report.Column{Head: "nodes"}, report.Count(k.Nodes))
		row.Add(report.Column{Head: "all GPUs"}, report.Count(k.Nodes*k.GPUs))
	})
}

func (s *traceSummary) shapeTable() *report.Table {
	oneDecimal := func(x float64) report.Value { return report.Number(math.Round(10*x) / 10) }
	return report.TableOf(s.Shapes, func(row *report.Row, shape *shapeSummary) {
		row.Add(report.Column{Head: "tasks with", Left: true}, report.Text(shape.Shape))
		row.Add(report.Column{Head: "tasks"}, report.Count(shape.Tasks))
		row.Add(report.Column{Head: "of all", Unit: report.Fraction}, report.Number(shape.Share))
		row.Add(report.Column{Head: "GPUs asked for"}, oneDecimal(shape.Demand))
		row.Add(report.Column{Head: "of all", Unit: report.Fraction}, report.Number(shape.Part))
		row.Add(report.Column{Head: "vCPUs each"}, oneDecimal(shape.VCPUs))
		row.Add(report.Column{Head: "GiB each"}, oneDecimal(shape.Memory))
	})
}
