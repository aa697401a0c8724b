package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/consolidate/moves"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/sharing"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/share"
)

// migrationPlan is a plan that starts from where tasks run now.
type migrationPlan struct {
	maxMoves     int // tasks that may move
	from         [][]int
	before       share.Placement  // at the lowest clocks that keep the problem's limits
	verdict      share.Evaluation // of before
	moves        []plannedMove
	powerByMoves []float64
}

// plannedMove is a move, its place in the order in which they can be made, and the power
// after it, at the lowest clocks: +Inf while a task is slowed down too much or has too little
// memory. Tasks that start anew are there after the last one.
type plannedMove struct {
	moves.Move
	number int
	powerW float64
}

const migrationMethod = "improve"

// checkMoves takes over how many tasks may move.
func checkMoves(c *cli.Context, r *consolidation) error {
	if !c.IsSet("moves") {
		return nil
	}
	if c.IsSet("policy") && r.method.name != migrationMethod {
		return terminal.Usagef("--moves and --policy %s are both given, want --policy %s, or none", r.method.name,
			migrationMethod)
	}
	r.migration = &migrationPlan{maxMoves: c.Int("moves")}
	r.method = &method{migrationMethod, "", searchWithMoves}
	return nil
}

// readPlacementNow takes over where the tasks run now.
func (r *consolidation) readPlacementNow(name string) error {
	if r.migration == nil {
		return nil
	}
	placed := 0
	for i := range r.instance.Tasks {
		r.migration.from = append(r.migration.from, r.instance.Tasks[i].CurrentGPUs)
		placed += len(r.instance.Tasks[i].CurrentGPUs)
	}
	if placed == 0 {
		return fmt.Errorf("%s: --moves, but no task runs anywhere, want on for some (lab/docs/consolidation.md)",
			name)
	}
	r.migration.before = share.PlacementOf(sharing.StateAt(r.instance, r.migration.from),
		share.LowestClockFor(r.problem))
	return nil
}

// searchWithMoves is the best plan found with few moves.
func searchWithMoves(ctx context.Context, r *consolidation, seed uint64) placementResult {
	found := moves.Rearrange(ctx, r.instance, r.problem, r.migration.from, moves.Options{
		Most: r.migration.maxMoves, Seed: seed,
	})
	r.migration.powerByMoves = found.ByMoves
	return placementResult{placement: found.Placement}
}

// listMoves says what has to be done for the plan, and what was before.
func (r *consolidation) listMoves() {
	m := r.migration
	if m == nil {
		return
	}
	m.verdict = share.Evaluate(r.instance, m.before)
	s := sharing.StateAt(r.instance, m.from)
	for i, move := range moves.Between(r.instance, m.from, r.placement.GPUs) {
		for _, gpu := range move.From {
			s.Remove(move.Task, gpu)
		}
		for _, gpu := range move.To {
			s.Add(move.Task, gpu)
		}
		v := share.Evaluate(r.instance,
			share.PlacementOf(s, share.LowestClockFor(r.problem)))
		watts := v.PowerW
		if v.OverMemory > 0 || r.problem == share.Safe && v.Violations > 0 {
			watts = math.Inf(1)
		}
		m.moves = append(m.moves, plannedMove{move, i + 1, watts})
	}
}

// hostServers are a log's hosts as servers, with its tasks on their GPUs.
func hostServers(
	t *terminal.Terminal, c *cli.Context, in *sharing.Instance, log *trace.UtilisationLog, name string,
) error {
	if len(log.GPUs) == 0 {
		return fmt.Errorf("%s: --moves, but the log doesn't say on which GPUs jobs run, want a column gpu",
			name)
	}
	h := hostsOf(log.GPUs)
	if c.IsSet("gpus-per-server") {
		if err := h.growTo(c.Int("gpus-per-server")); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, host := range h.names {
		s := uniformServer(len(h.gpus[host]), c.Float64("gpu-mem-gb"), c.Float64("server-w"))
		s.ID, s.GPUIDs = host, h.gpus[host]
		in.Servers = append(in.Servers, s)
	}
	at := h.gpuNumbers(log.GPUs)
	for i := range in.Tasks {
		on := make([]int, 0, len(in.Tasks[i].CurrentGPUs))
		for _, gpu := range in.Tasks[i].CurrentGPUs {
			on = append(on, at[gpu])
		}
		in.Tasks[i].CurrentGPUs = on
	}
	t.Notef("%s of the log, each of %s W beside GPUs of %s GB, which are taken for the CATS paper's V100",
		terminal.Plural(len(h.names), "host"), terminal.TrimZeros(c.Float64("server-w")), terminal.TrimZeros(c.Float64("gpu-mem-gb")))
	return nil
}

// logHosts are the hosts of a log in the order in which they come.
type logHosts struct {
	names []string
	// By host: what its GPUs are called, "" where the log knows none with that place.
	gpus  map[string][]string
	place []int // by GPU of the log: which of its host's it is
}

// hostsOf finds out which GPUs hosts have: GPUs that are numbered have their
// number's place, others, and numbers that are too large for that, are numbered
// as they come.
func hostsOf(gpus []trace.GPUName) *logHosts {
	h := &logHosts{gpus: make(map[string][]string), place: make([]int, len(gpus))}
	named := make(map[string]bool)
	for _, g := range gpus {
		if n, err := strconv.Atoi(g.GPU); err != nil || n < 0 || n >= planner.MaxGPUs {
			named[g.Host] = true
		}
	}
	for i, g := range gpus {
		if _, known := h.gpus[g.Host]; !known {
			h.names = append(h.names, g.Host)
		}
		list := h.gpus[g.Host]
		n := len(list)
		if !named[g.Host] {
			n, _ = strconv.Atoi(g.GPU) // it is a number, see above
		}
		for len(list) <= n {
			list = append(list, "")
		}
		list[n] = g.GPU
		h.gpus[g.Host], h.place[i] = list, n
	}
	return h
}

// growTo gives all hosts so many GPUs.
func (h *logHosts) growTo(gpus int) error {
	for _, host := range h.names {
		list := h.gpus[host]
		if len(list) > gpus {
			if host == "" {
				return fmt.Errorf("--gpus-per-server %d, but the log names no hosts, so that its %d GPUs "+
					"are on one, want a column host", gpus, len(list))
			}
			return fmt.Errorf("--gpus-per-server %d, but host %.40q of the log has %d GPUs", gpus,
				host, len(list))
		}
		h.gpus[host] = append(list, make([]string, gpus-len(list))...)
	}
	return nil
}

func (h *logHosts) gpuNumbers(gpus []trace.GPUName) []int {
	first, next := make(map[string]int), 0
	for _, host := range h.names {
		first[host] = next
		next += len(h.gpus[host])
	}
	at := make([]int, len(gpus))
	for i, g := range gpus {
		at[i] = first[g.Host] + h.place[i]
	}
	return at
}

func (r *consolidation) moveHeader() []string {
	m := r.migration
	if m == nil {
		return nil
	}
	v := &m.verdict
	before := fmt.Sprintf("Before   %.2f W: %s, %s, at the lowest clocks", v.PowerW, terminal.Plural(v.GPUsOn, "GPU"),
		terminal.Plural(v.ServersOn, "server"))
	if !v.FeasibleFor(r.problem) {
		before += ", not feasible"
	}
	lines := []string{before, fmt.Sprintf("Moves    %d of at most %d", len(m.moves), m.maxMoves)}
	if len(m.moves) > 0 && v.FeasibleFor(r.problem) {
		lines[1] += fmt.Sprintf(", %.1f %% less power than before", 100*(1-r.verdict.PowerW/v.PowerW))
	}
	if len(m.powerByMoves) > 1 {
		lines = append(lines, "         by moves: "+strings.Join(m.curve(), ", "))
	}
	return lines
}

// maxCurvePoints is how many numbers of moves the header has figures for.
const maxCurvePoints = 8

func (m *migrationPlan) curve() []string {
	var all []string
	for k, watts := range m.powerByMoves {
		if k > 0 && k < len(m.powerByMoves)-1 && (k >= maxCurvePoints || watts > m.powerByMoves[k-1]-0.005) {
			continue
		}
		text := fmt.Sprintf("%d %.1f W", k, watts)
		if math.IsInf(watts, 1) {
			text = fmt.Sprintf("%d none feasible", k)
		}
		all = append(all, text)
	}
	return all
}

// gpuName is what a GPU is called: by its host where the log names them.
func (r *consolidation) gpuName(gpu int) string {
	server, i := r.instance.GPUs()[gpu].Server, gpu
	for s := range server {
		i -= len(r.instance.Servers[s].GPUMemGB)
	}
	s := &r.instance.Servers[server]
	if s.GPUIDs == nil {
		return strconv.Itoa(gpu)
	}
	if id := s.GPUIDs[i]; id != "" {
		return id
	}
	return strconv.Itoa(i)
}

func (r *consolidation) serverName(server int) string {
	if s := &r.instance.Servers[server]; s.GPUIDs != nil && s.ID != "" {
		return s.ID
	}
	return strconv.Itoa(server)
}

// placeName is a task's place as a table has it.
func (r *consolidation) placeName(gpus []int) string {
	return strings.Join(terminal.TextsOf(gpus, func(gpu int) string {
		return r.serverName(r.instance.GPUs()[gpu].Server) + "/" + r.gpuName(gpu)
	}), " ")
}

func (r *consolidation) moveTable() *report.Table {
	all := r.migration.moves
	together := slices.ContainsFunc(all, func(m plannedMove) bool { return m.Together })
	return report.TableOf(all, func(row *report.Row, m *plannedMove) {
		var then, with report.Value
		if !math.IsInf(m.powerW, 1) {
			then = report.Text(terminal.Fixed(m.powerW, 1))
		}
		if m.Together {
			with = report.Text("the next one")
		}
		row.Add(report.Column{Head: "move"}, report.Count(m.number))
		row.Add(report.Column{Head: "task", Left: true, Max: maxTasksText},
			report.Text(r.instance.Tasks[m.Task].ID))
		row.Add(report.Column{Head: "from", Left: true, Note: "server/GPU"}, report.Text(r.placeName(m.From)))
		row.Add(report.Column{Head: "to", Left: true, Note: "server/GPU"}, report.Text(r.placeName(m.To)))
		row.Add(report.Column{Head: "then", Note: "W"}, then)
		if together {
			row.Add(report.Column{Head: "together with", Left: true}, with)
		}
	})
}

type beforeJSON struct {
	PowerW    float64 `json:"power_w"`
	Feasible  bool    `json:"feasible"`
	GPUsOn    int     `json:"gpus_on"`
	ServersOn int     `json:"servers_on"`
}

type moveJSON struct {
	Task     string   `json:"task"`
	From     []int    `json:"from"`
	To       []int    `json:"to"`
	Together bool     `json:"together_with_next"`
	PowerW   *float64 `json:"power_w"` // after it; null while a limit is broken
}

// addMovesJSON adds what has to be done for the plan.
func (r *consolidation) addMovesJSON(out *consolidationJSON) {
	m := r.migration
	if m == nil {
		return
	}
	v := &m.verdict
	out.Before = &beforeJSON{v.PowerW, v.FeasibleFor(r.problem), v.GPUsOn, v.ServersOn}
	moves := make([]moveJSON, 0, len(m.moves))
	for _, one := range m.moves {
		moves = append(moves, moveJSON{
			r.instance.Tasks[one.Task].ID, one.From, one.To, one.Together, terminal.FiniteOrNil(one.powerW),
		})
	}
	out.Moves = &moves
	for _, w := range m.powerByMoves {
		out.ByMoves = append(out.ByMoves, terminal.FiniteOrNil(w))
	}
}
