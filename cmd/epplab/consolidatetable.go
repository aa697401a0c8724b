package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/queue"
)

// consolidationJSON is the plan for machines. What has no number is null.
type consolidationJSON struct {
	Name          string          `json:"name,omitempty"`
	Policy        string          `json:"policy"`
	Problem       string          `json:"problem"`
	PowerW        float64         `json:"power_w"`
	Feasible      bool            `json:"feasible"`
	BoundW        *float64        `json:"bound_w"`
	Gap           *float64        `json:"gap"`
	Proven        bool            `json:"proven"`
	GPUsOn        int             `json:"gpus_on"`
	ServersOn     int             `json:"servers_on"`
	Place         [][]int         `json:"place"`
	MHz           []dvfsmodel.MHz `json:"f_mhz"`
	WorstSlowdown float64         `json:"worst_slowdown"`
	Violations    int             `json:"sla_violations"`
	Unplaced      int             `json:"unplaced"`
	OverMemory    int             `json:"gpus_over_memory"`
	Tasks         []string        `json:"tasks"`
	Slowdown      []float64       `json:"slowdown"`

	Window int      `json:"window,omitempty"`
	WaitS  *float64 `json:"wait_mean_s,omitempty"`
}

func (r *consolidation) json() *consolidationJSON {
	out := &consolidationJSON{
		Name: r.instance.Name, Policy: r.method.name, Problem: r.problem.String(),
		PowerW: r.verdict.PowerW, Feasible: r.verdict.FeasibleFor(r.problem),
		Proven: r.proven,
		GPUsOn: r.verdict.GPUsOn, ServersOn: r.verdict.ServersOn,
		Place: make([][]int, len(r.instance.Tasks)), MHz: r.placement.MHz,
		WorstSlowdown: r.verdict.WorstSlowdown, Violations: r.verdict.Violations,
		Unplaced: r.verdict.Unplaced, OverMemory: r.verdict.OverMemory,
		Slowdown: r.verdict.Slowdown,
	}
	if gap := r.gap(); !math.IsNaN(gap) {
		out.BoundW, out.Gap = &r.boundW, &gap
	}
	for i := range r.instance.Tasks {
		out.Tasks = append(out.Tasks, r.instance.Tasks[i].ID)
		if out.Place[i] = []int{}; i < len(r.placement.GPUs) {
			out.Place[i] = append(out.Place[i], r.placement.GPUs[i]...)
		}
	}
	if r.window > 0 {
		wait := r.waitS()
		out.Window, out.WaitS = r.window, &wait
	}
	return out
}

func (r *consolidation) text(opts *report.TextOptions) string {
	text := strings.Join(r.header(), "\n") + "\n"
	if rows := r.gpuRows(); len(rows) > 0 {
		text += "\n" + r.gpuTable(rows).Text(opts)
	}
	return text + strings.Join(append(r.violationTexts(), ""), "\n")
}

func (r *consolidation) header() []string {
	v := &r.verdict
	gpus, servers, hosts := 0, len(r.instance.Servers), 0.0
	for i := range r.instance.Servers {
		gpus += len(r.instance.Servers[i].GPUMemGB)
	}
	for i, on := range r.serversOn() {
		if on {
			hosts += r.instance.Servers[i].HostW()
		}
	}
	feasible := "feasible"
	if !v.FeasibleFor(r.problem) {
		feasible = "not feasible"
	}
	lines := []string{
		fmt.Sprintf("Plan     %s, problem %s: %s", r.method.name, r.problem, feasible),
		fmt.Sprintf("Tasks    %s over %s of %s s, worst slowdown %.3f",
			report.FormatCount(len(r.instance.Tasks)), report.Plural(r.instance.Slots(), "slot"),
			terminal.TrimZeros(r.instance.SlotS), v.WorstSlowdown),
		fmt.Sprintf("On       %d of %s, %d of %s; what isn't sleeps", v.GPUsOn, report.Plural(gpus, "GPU"),
			v.ServersOn, report.Plural(servers, "server")),
		fmt.Sprintf("Power    %.2f W: %.2f W GPUs, %.2f W servers", v.PowerW, v.PowerW-hosts, hosts),
	}
	if r.window > 0 {
		lines = append(lines, fmt.Sprintf("Window   %s at a time, waiting %.1f s for each other on average",
			report.Plural(r.window, "task"), r.waitS()))
	}
	switch gap := r.gap(); {
	case r.proven:
		lines = append(lines, "Gap      none: proven that no feasible plan draws less")
	case gap >= 0:
		lines = append(lines, fmt.Sprintf("Gap      %.2f %% above %.2f W, which no feasible plan can beat", 100*gap,
			r.boundW))
	case gap < 0:
		lines = append(lines, fmt.Sprintf("Bound    %.2f W: a feasible plan draws at least that", r.boundW))
	}
	return lines
}

func (r *consolidation) serversOn() []bool {
	on := make([]bool, len(r.instance.Servers))
	for gpu, where := range r.instance.GPUs() {
		on[where.Server] = on[where.Server] || r.placement.MHz[gpu] > 0
	}
	return on
}

type gpuRow struct {
	gpu      int
	where    sharing.GPU
	tasks    []int
	usedGB   float64
	meanPct  float64
	overload float64
	first    bool // of its server
}

// gpuRows returns the GPUs that are on, in order.
func (r *consolidation) gpuRows() []gpuRow {
	s := sharing.StateAt(r.instance, r.placement.GPUs)
	var all []gpuRow
	for gpu := range s.GPUs() {
		if r.placement.MHz[gpu] > 0 {
			where := s.GPU(gpu)
			first := len(all) == 0 || all[len(all)-1].where.Server != where.Server
			all = append(all, gpuRow{
				gpu, where, s.Tasks(gpu), where.MemGB - s.FreeGB(gpu), s.MeanPct(gpu), s.Overload(gpu), first,
			})
		}
	}
	return all
}

func (r *consolidation) gpuTable(rows []gpuRow) *report.Table {
	physics := &r.instance.Physics
	gpuW := make([]float64, len(r.instance.Servers))
	for i := range rows {
		gpuW[rows[i].where.Server] += physics.PowerAt(r.placement.MHz[rows[i].gpu])
	}
	return report.TableOf(rows, func(row *report.Row, s *gpuRow) {
		mhz, server := r.placement.MHz[s.gpu], s.where.Server
		watts := report.Value{}
		if s.first {
			watts = report.Text(terminal.Fixed(gpuW[server]+r.instance.Servers[server].HostW(), 1))
		}
		row.Add(report.Column{Head: "server"}, report.Count(server))
		row.Add(report.Column{Head: "server", Note: "W"}, watts)
		row.Add(report.Column{Head: "GPU"}, report.Count(s.gpu))
		row.Add(report.Column{Head: "clock", Note: "MHz"}, report.Text(terminal.TrimZeros(float64(mhz))))
		row.Add(report.Column{Head: "GPU", Note: "W"}, report.Text(terminal.Fixed(physics.PowerAt(mhz), 1)))
		row.Add(report.Column{Head: "load", Note: "%"}, report.Text(terminal.Fixed(s.meanPct, 0)))
		row.Add(report.Column{Head: "memory", Note: "GB"},
			report.Text(terminal.Fixed(s.usedGB, 1)+" of "+terminal.TrimZeros(s.where.MemGB)))
		row.Add(report.Column{Head: "slowdown"}, report.Text(terminal.Fixed(r.slowdown(s), 3)))
		row.Add(report.Column{Head: "tasks", Left: true, Max: maxTasksText},
			report.Text(r.taskNames(s.tasks)))
	})
}

// maxTasksText is how much of the names of a GPU's tasks a table shows.
const maxTasksText = 60

func (r *consolidation) taskNames(tasks []int) string {
	return strings.Join(terminal.TextsOf(tasks, func(task int) string { return r.instance.Tasks[task].ID }),
		" ")
}

// maxViolations is how many tasks are named that a plan slows down too much.
const maxViolations = 10

// violationTexts say what the plan breaks, and why.
func (r *consolidation) violationTexts() []string {
	worst := make(map[int]*gpuRow) // by task: the GPU that slows it down most
	all := r.gpuRows()
	for i := range all {
		for _, task := range all[i].tasks {
			if w := worst[task]; w == nil || r.slowdown(&all[i]) > r.slowdown(w) {
				worst[task] = &all[i]
			}
		}
	}
	var lines []string
	more := 0
	for task := range r.instance.Tasks {
		line := ""
		switch t, s := &r.instance.Tasks[task], worst[task]; {
		case s == nil:
			line = fmt.Sprintf("task %s has no place: no GPU is left with %.1f GB", t.ID, t.MemGB)
		case r.verdict.Slowdown[task] > t.Kappa+1e-7:
			line = fmt.Sprintf("task %s takes %.3f times as long, allowed are %s: %s", t.ID,
				r.verdict.Slowdown[task], terminal.TrimZeros(t.Kappa), r.slowdownCause(s))
		}
		switch {
		case line == "":
		case len(lines) < maxViolations:
			lines = append(lines, "  "+queue.Printable(line))
		default:
			more++
		}
	}
	if len(lines) > 0 {
		title := "Broken:"
		if r.verdict.FeasibleFor(r.problem) {
			title = "Not counted by problem " + r.problem.String() + ", but broken:"
		}
		lines = append([]string{"", title}, lines...)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  … and %d more", more))
	}
	return lines
}

// slowdownCause returns what makes the tasks of a GPU slow.
func (r *consolidation) slowdownCause(s *gpuRow) string {
	clock := fmt.Sprintf("its clock makes it %.3f times as long",
		r.instance.Physics.Stretch(r.placement.MHz[s.gpu]))
	if r.placement.MHz[s.gpu] == r.instance.Physics.Max() {
		clock = "its clock is the highest"
	}
	if r.instance.Contention != nil {
		return fmt.Sprintf("on GPU %d tasks take %.3f times as long beside each other, and %s", s.gpu,
			s.overload, clock)
	}
	return fmt.Sprintf("GPU %d has %.3f times the work that fits, and %s", s.gpu, s.overload, clock)
}

func (r *consolidation) slowdown(s *gpuRow) float64 {
	return s.overload * r.instance.Physics.Stretch(r.placement.MHz[s.gpu])
}
