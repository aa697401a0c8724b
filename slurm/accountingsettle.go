package slurm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/live"
)

func (r *AccountingRow) addDoubt(kind DoubtKind, format string, args ...any) {
	r.Doubts = append(r.Doubts, Doubt{kind, fmt.Sprintf(format, args...)})
}

// AddStep adds what the record of one of the job's steps states.
func (r *AccountingRow) AddStep(step *AccountingRow) {
	elapsed := cmp.Or(step.elapsed.Duration, step.shownElapsed.Duration)
	joules := cmp.Or(step.energy.Or(0), step.shownEnergy.Or(0), step.Allocated.joules())
	r.steps.add(step.Ref.Step, joules, elapsed, step.usage)
}

// Record returns the record's one meaning. Its Doubts say which columns disagree and what was taken:
//
//   - Run time: Elapsed, which excludes suspension; End − Start less Suspended if there is none, if it is 0,
//     or if a step lasted that long and Elapsed doesn't.
//   - Local times that come twice in autumn are those that fit Elapsed.
//   - GPUs: AllocTRES, AllocGRES where AllocTRES has none, ReqTRES, ReqGRES on each node. GPUs of more than
//     one model have none.
//   - Energy: that of the job, unless it is the sum of its steps where one spans the others, which then count
//     twice; that of its steps where the job has none.
func (r *AccountingRow) Record() AccountingRecord {
	r.settleTimes()
	r.settleGPUs()
	r.settleEnergy()
	r.Utilisation = r.steps.utilisation()
	return r.AccountingRecord
}

// timesAgree reports whether two durations are the same but for rounding.
func timesAgree(a, b time.Duration) bool { return (a - b).Abs() <= 2*time.Second }

// settleTimes settles Start, End and Elapsed.
func (r *AccountingRow) settleTimes() {
	elapsed := r.elapsed
	if !elapsed.known {
		elapsed = r.shownElapsed
	} else if r.shownElapsed.known && !timesAgree(elapsed.Duration, r.shownElapsed.Duration) {
		r.addDoubt(DoubtRunTime, "ElapsedRaw is %v, Elapsed %v: ElapsedRaw taken", elapsed, r.shownElapsed)
	}
	r.Suspended = r.suspended.Duration
	if r.hasNodeList && r.NodeList == "" || r.hasTRES && len(r.Allocated) == 0 && !r.Start.Before(r.End) &&
		elapsed.Duration == 0 {
		r.Start, r.Elapsed = time.Time{}, 0 // sacct prints the end as the start of a job that never ran
		return
	}
	r.settleLocalTimes(elapsed)
	whole := elapsed.Duration + r.Suspended
	switch {
	case r.Start.IsZero() && r.End.IsZero():
		r.Elapsed = elapsed.Duration
		return
	case r.Start.IsZero() && elapsed.Duration > 0:
		r.Start = r.End.Add(-whole)
		r.addDoubt(DoubtNoEnd, "Start is not stated: End and Elapsed taken")
	case r.End.IsZero() && elapsed.Duration > 0 && r.State.Base.Ended():
		r.End = r.Start.Add(whole)
		r.addDoubt(DoubtNoEnd, "End is not stated: Start and Elapsed taken")
	}
	r.Elapsed = r.settleElapsed(elapsed)
}

// settleElapsed returns the run time, without suspension.
func (r *AccountingRow) settleElapsed(elapsed duration) time.Duration {
	if r.Start.IsZero() || r.End.IsZero() {
		return elapsed.Duration
	}
	span := r.End.Sub(r.Start)
	running := span - r.Suspended
	if running < 0 && span >= 0 {
		r.addDoubt(DoubtRunTime, "Suspended is %v in %v from Start to End: Suspended left out", r.Suspended, span)
		running, r.Suspended = span, 0
	}
	switch {
	case !elapsed.known:
		return max(0, running)
	case timesAgree(elapsed.Duration, running):
		return elapsed.Duration
	case span < 0 && !timesAgree(elapsed.Duration-running, time.Hour):
		return 0 // an end before the start, and no change of clocks says why
	case elapsed.Duration == 0, timesAgree(r.steps.longest, running):
		r.addDoubt(DoubtRunTime, "Elapsed is %v, End - Start - Suspended %v: the latter taken", elapsed, running)
		return running
	}
	r.addDoubt(DoubtRunTime, "Elapsed is %v, End - Start - Suspended %v: Elapsed taken", elapsed, running)
	if span < 0 {
		r.End = r.Start.Add(elapsed.Duration + r.Suspended)
	}
	return elapsed.Duration
}

// settleLocalTimes chooses among the moments that a local time may name when the clocks go back: those that
// fit the run time, and come one after another.
func (r *AccountingRow) settleLocalTimes(elapsed duration) {
	submits, starts, ends := momentsOf(r.Submit), momentsOf(r.Start), momentsOf(r.End)
	if len(submits)+len(starts)+len(ends) <= 3 {
		return
	}
	var best [][3]time.Time // submitted, started, ended
	bestFit := -1
	for _, submit := range submits {
		for _, start := range starts {
			for _, end := range ends {
				fit := r.fitOf(submit, start, end, elapsed)
				if fit > bestFit {
					best, bestFit = nil, fit
				}
				if fit == bestFit {
					best = append(best, [3]time.Time{submit, start, end})
				}
			}
		}
	}
	r.Submit, r.Start, r.End = best[0][0], best[0][1], best[0][2]
	if len(best) > 1 {
		r.addDoubt(DoubtClockHour, "may be an hour off: taken as submitted at %s, started at %s, ended at %s",
			r.Submit.Format(time.RFC3339), r.Start.Format(time.RFC3339), r.End.Format(time.RFC3339))
	}
}

// fitOf rates how well moments fit the run time, and come one after another.
func (r *AccountingRow) fitOf(submit, start, end time.Time, elapsed duration) (fit int) {
	if elapsed.known && timesAgree(end.Sub(start), elapsed.Duration+r.Suspended) {
		fit += 4
	}
	if !end.Before(start) {
		fit += 2
	}
	if !start.Before(submit) {
		fit++
	}
	return fit
}

// momentsOf returns the moments that a local time may name, the one that it stands for first.
func momentsOf(t time.Time) []time.Time {
	const reach = 3 * time.Hour // a change of clocks is no longer
	_, before := t.Add(-reach).Zone()
	_, after := t.Add(reach).Zone()
	if t.IsZero() || before == after {
		return []time.Time{t}
	}
	out := []time.Time{t}
	shift := time.Duration(before-after) * time.Second
	for _, other := range []time.Time{t.Add(-shift), t.Add(shift)} {
		if other.Format(time.DateTime) == t.Format(time.DateTime) {
			out = append(out, other)
		}
	}
	return out
}

// gpuCount holds the GPUs that one column states.
type gpuCount struct {
	stated bool     // the column has GPUs, or says that there are none
	count  float64  // whole ones
	models []string // of them, each once
	typed  float64  // of the count, those whose model is stated
	parts  bool     // some are parts of GPUs
}

func (g *gpuCount) add(model string, n float64) {
	if n <= 0 {
		return
	}
	g.typed += n
	if !slices.Contains(g.models, model) {
		g.models = append(g.models, model)
	}
	g.parts = g.parts || IsMIGType(model)
}

// gpusOf returns the GPUs that trackable resources have.
func gpusOf(t TRES) gpuCount {
	g := gpuCount{stated: len(t) > 0}
	for name, n := range t {
		if model, ok := strings.CutPrefix(name, "gres/gpu:"); ok {
			g.add(model, n)
		}
		g.parts = g.parts || n > 0 && isPartOfGPU(strings.TrimPrefix(name, "gres/"))
	}
	slices.Sort(g.models)
	g.count = g.typed
	if n, ok := t["gres/gpu"]; ok {
		g.count = n
	}
	return g
}

// gpusOfGres returns the GPUs among generic resources, on so many nodes each.
func gpusOfGres(list []Gres, nodes float64) gpuCount {
	g := gpuCount{stated: len(list) > 0}
	for _, one := range list {
		n := float64(one.Count) * nodes
		switch {
		case isPartOfGPU(one.Name):
			g.parts = g.parts || n > 0
		case one.Name != "gpu" && one.Name != gpuGresNumber:
		case strings.Trim(one.Type, "0123456789") != "": // else it is a number that Slurm makes of a type
			g.add(one.Type, n)
			g.count += n
		default:
			g.count += n
		}
	}
	slices.Sort(g.models)
	return g
}

// gpuGresNumber is the number that Slurm 18 to 20 print in the place of the name gpu.
var gpuGresNumber = strconv.FormatUint(uint64(gresNumber("gpu")), 10)

// gresNumber returns the number that Slurm makes of the name of a generic resource (gres_build_id).
func gresNumber(name string) (id uint32) {
	const bits = 32
	for i := range len(name) {
		id += uint32(name[i]) << (8 * i % bits)
	}
	return id
}

// IsMIGType reports whether the type of a GPU is that of a MIG slice, such as 1g.5gb or a100_3g.20gb.
func IsMIGType(gpuType string) bool {
	text := strings.ToLower(gpuType)
	for i := 1; i+2 < len(text); i++ {
		if text[i] != 'g' || isNotDigit(rune(text[i-1])) || text[i+1] != '.' && text[i+1] != '_' {
			continue
		}
		rest := strings.TrimLeft(text[i+2:], "0123456789")
		if len(rest) < len(text)-i-2 && strings.HasPrefix(rest, "gb") {
			return true
		}
	}
	return false
}

// settleGPUs settles the number of GPUs, their model, and the number of nodes and CPUs.
func (r *AccountingRow) settleGPUs() {
	given := r.Allocated
	if len(given) == 0 {
		given = r.Requested
	}
	fill := func(n *live.Number, name string) {
		if _, known := n.Get(); known {
			return
		}
		if v, ok := given[name]; ok {
			*n = live.Known(v)
		}
	}
	fill(&r.NodeCount, "node")
	fill(&r.CPUs, "cpu")
	nodes := max(1, r.NodeCount.Or(float64(len(r.Nodes))))
	alloc, gres := gpusOf(r.Allocated), gpusOfGres(r.gres, 1)
	asked, askedGres := gpusOf(r.Requested), gpusOfGres(r.requestedGres, nodes)
	ran := !r.Start.IsZero()
	var taken gpuCount
	switch {
	case alloc.count > 0 || alloc.parts:
		taken = alloc
		if gres.count > 0 && gres.count != alloc.count {
			r.addDoubt(DoubtGPUs, "%v in AllocTRES, %v in AllocGRES: AllocTRES taken", alloc.count, gres.count)
		}
	case gres.count > 0 || gres.parts:
		taken = gres
	case asked.count > 0 || asked.parts:
		taken = asked
	default:
		taken = askedGres
	}
	if got := alloc.stated || gres.stated; (taken.count > 0 || taken.parts) && ran && got &&
		alloc.count+gres.count == 0 && !alloc.parts && !gres.parts {
		r.addDoubt(DoubtRequested, "%v GPUs asked for", taken.count)
	}
	if !alloc.stated && !gres.stated && !asked.stated && !askedGres.stated {
		return
	}
	r.GPUs = live.Known(math.Trunc(taken.count))
	r.settleGPUModel(&taken)
}

// settleGPUModel settles the model of the GPUs.
func (r *AccountingRow) settleGPUModel(g *gpuCount) {
	switch {
	case len(g.models) > 1:
		r.addDoubt(DoubtGPUModels, "%s: no model taken", Printable(strings.Join(g.models, ", "), maxCell))
	case len(g.models) == 1 && g.typed < g.count:
		r.addDoubt(DoubtGPUModels, "%v of %v GPUs are %s: no model taken", g.typed, g.count,
			Printable(g.models[0], maxCell))
	case len(g.models) == 1:
		r.GPUModel = g.models[0]
	}
	if g.typed > g.count {
		r.addDoubt(DoubtGPUs, "%v GPUs, and %v by type: %v taken", g.count, g.typed, g.count)
	}
	if r.PartOfGPU = g.parts; g.parts {
		r.addDoubt(DoubtPartOfGPU, "%v GPUs %s", g.count, Printable(r.GPUModel, maxCell))
	}
}

// joules returns the energy among trackable resources; 0 where it isn't measured.
func (t TRES) joules() float64 {
	if v := t["energy"]; v > 0 && !isNoJoules(v) {
		return v
	}
	return 0
}

// energiesAgree reports whether two energies are the same, one of which may be shortened to three digits.
func energiesAgree(a, b float64) bool {
	const part = 0.01
	return math.Abs(a-b) <= part*max(a, b)
}

// settleEnergy settles the job's energy.
func (r *AccountingRow) settleEnergy() {
	if r.oddEnergy != "" {
		r.addDoubt(DoubtEnergyText, "%s", quoted(r.oddEnergy))
	}
	stated := cmp.Or(r.energy.Or(0), r.shownEnergy.Or(0), r.Allocated.joules())
	for _, other := range []struct {
		joules float64
		column string
	}{{r.shownEnergy.Or(0), "ConsumedEnergy"}, {r.Allocated.joules(), "AllocTRES"}} {
		if other.joules > 0 && !energiesAgree(stated, other.joules) {
			r.addDoubt(
				DoubtEnergy,
				"%.6g J, and %.6g J in %s: %.6g J taken",
				stated,
				other.joules,
				other.column,
				stated,
			)
		}
	}
	const rounding = 0.005
	steps, sum := r.steps.energy(), r.steps.extern+r.steps.batch+r.steps.others
	switch {
	case stated == 0:
		stated = steps
	case math.Abs(stated-sum) <= rounding*sum && !energiesAgree(stated, steps):
		r.addDoubt(DoubtEnergySum, "%.6g J, as the steps together, of which one has %.6g J and spans the others: "+
			"the latter taken", stated, steps)
		stated = steps
	}
	r.Energy = stated
}
