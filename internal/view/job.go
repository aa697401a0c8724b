package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

const dash = "–" // for what isn't known

func orDash(text string) string { return cmp.Or(text, dash) }

// DateTime returns a time on the clock of whoever reads it; a dash for none.
func DateTime(t time.Time) string {
	if t.IsZero() {
		return dash
	}
	return t.Local().Format(time.DateTime)
}

// Job returns the view of what a job asked for and of what was expected of it.
func Job(v *epdapi.JobView) *View {
	j := v.Job
	if j == nil {
		return &View{Notices: []*page.Notice{{Kind: page.Info, Text: "Slurm said nothing of this job."}}}
	}
	shown := &View{}
	name := strconv.FormatInt(j.ID, 10)
	if j.ArrayID != "" {
		name += " (" + j.ArrayID + ")"
	}
	shown.add("Job", name+" "+j.Name)
	shown.add("User", orDash(j.User)+", account "+orDash(j.Account))
	shown.add("Partition", orDash(j.Partition))
	shown.add("State", orDash(j.State))
	shown.add("Submitted", DateTime(j.Submitted))
	shown.add("Size", report.Plural(j.GPUs, "GPU")+", "+report.Plural(j.Nodes, "node")+", time limit "+
		v.LimitWords(report.FormatSeconds))
	by := ", by user and name"
	if j.Scripted {
		by = ", by user and script"
	}
	shown.add("Workload", orDash(j.Workload)+by)
	if d := v.Submission; d != nil {
		mode := ""
		if d.Mode != "" { // the partition was known
			mode = ", mode " + d.Mode
		}
		shown.add("Noted", DateTime(d.Created)+mode+": "+d.Reason)
		if d.Rung != "" {
			shown.add("Expected", expectedThen(v)...)
		}
	}
	shown.addWishes(v.Wishes)
	if v.Plan != nil {
		shown.add("Plan", v.Plan.Words(DateTime))
	}
	return shown
}

// Wishes returns the view of what a user asked for.
func Wishes(w *epdapi.Wishes) *View {
	v := &View{}
	v.addWishes(w)
	return v
}

func (v *View) addWishes(w *epdapi.Wishes) {
	if w == nil {
		return
	}
	if words := w.Words(DateTime); len(words) > 0 {
		v.add("Wishes", words...)
	}
	for _, warning := range w.Warnings {
		v.notice(page.Warn, "wish not understood: "+warning)
	}
}

// expectedThen says what was expected of a job when it was submitted, beside what it took.
func expectedThen(v *epdapi.JobView) []string {
	var all []string
	d := v.Submission
	took, used := measuredUse(v, d.Created)
	expected := func(p record.Interval, measured live.Number, format func(float64) string) {
		if _, known := p.Value.Get(); !known {
			return
		}
		text := intervalText(p, format)
		if m, known := measured.Get(); known {
			if text += ", took " + format(m); m < p.Low.Or(m) || m > p.High.Or(m) {
				text += ", outside"
			}
		}
		all = append(all, text)
	}
	expected(d.TimeS, took, report.FormatSeconds)
	expected(d.EnergyJ, used, report.FormatJoules[float64])
	expected(d.PowerW, live.Number{}, report.FormatWatts[float64])
	return append(all, rungTexts(d.Rung))
}

// rungTexts says what predictions of time, energy and power rest on.
func rungTexts(rungs string) string {
	parts := strings.Split(rungs, "/")
	if len(parts) == 1 {
		return "by " + RungText(rungs)
	}
	names := []string{"time", "energy", "power"}
	for i := range parts {
		parts[i] = names[min(i, len(names)-1)] + " by " + RungText(parts[i])
	}
	return strings.Join(parts, "; ")
}

// RungText says what a prediction rests on.
func RungText(rung string) string {
	switch predict.Rung(rung) {
	case predict.Repeat:
		return "runs of the same job"
	case predict.Similar:
		return "runs of similar jobs"
	case predict.Code:
		return "its source code"
	case predict.Script:
		return "its script only"
	case predict.Prior:
		return "nothing known: a round figure"
	}
	return printableText(rung)
}

// measuredUse returns the time and energy of the runs of a job that ended after something was expected of
// it and did its work: the longest one's time, the sum of energies if all are known.
func measuredUse(v *epdapi.JobView, expected time.Time) (took, used live.Number) {
	sum, runs, all := 0.0, 0, true
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		if o.Unmatched || o.ExitState == string(slurm.Requeued) || o.Ended.Before(expected) {
			continue
		}
		runs++
		if s, ok := o.TimeS.Get(); ok && s > took.Or(0) {
			took = o.TimeS
		}
		e, ok := o.GPUEnergyJ.Get()
		sum, all = sum+e, all && ok
	}
	if all && runs > 0 && runs >= v.Job.Nodes {
		used = live.Known(sum)
	}
	return took, used
}

// intervalText returns a prediction with its bounds.
func intervalText(p record.Interval, format func(float64) string) string {
	v, ok := p.Value.Get()
	if !ok {
		return dash
	}
	low, hasLow := p.Low.Get()
	high, hasHigh := p.High.Get()
	switch {
	case hasLow && hasHigh:
		return format(v) + " (" + format(low) + " to " + format(high) + ")"
	case hasHigh:
		return format(v) + " (at most " + format(high) + ")"
	}
	return format(v)
}

// Decision returns what was decided for a run of a job, and why.
func Decision(d *epdapi.Decision) Facts {
	predicted := "nothing: there was no model of it"
	time := intervalText(d.TimeS, report.FormatSeconds)
	energy := intervalText(d.EnergyJ, report.FormatJoules[float64])
	if time != dash || energy != dash {
		predicted = time + ", " + energy
	}
	clocks := []string{d.Setting.Words()}
	if against := againstDefault(d.Default, d.Chosen); against != "" {
		clocks = append(clocks, against)
	}
	return Facts{
		{"Clocks", clocks},
		{"Why", []string{orDash(d.Reason)}},
		{"Under", []string{fmt.Sprintf("mode %s, %s, configuration %s", orDash(d.Mode), ArmWords(d.Arm),
			orDash(d.ConfigVersion))}},
		{"Predicted", []string{predicted}},
	}
}

// againstDefault says what other clocks change, by a model; empty: there are none.
func againstDefault(standard, chosen *epdapi.Point) string {
	if standard == nil || chosen == nil || chosen.Setting == standard.Setting ||
		standard.EnergyJ <= 0 || standard.TimeS <= 0 {
		return ""
	}
	change := func(part float64, less, more string) string {
		if part < 0 {
			return report.FormatPercent(-part) + " " + less
		}
		return report.FormatPercent(part) + " " + more
	}
	return fmt.Sprintf("by its model %s than at default clocks, %s",
		change(chosen.EnergyJ/standard.EnergyJ-1, "less energy of the GPUs", "more energy of the GPUs"),
		change(chosen.TimeS/standard.TimeS-1, "shorter", "longer"))
}

// ModelText says which model a prediction goes by, and what it was learnt from.
func ModelText(m *epdapi.Model, gpuModel string) string {
	kind := "fitted to"
	if m.Prior {
		kind = "what workloads have in common, after"
	}
	span := fmt.Sprintf("core %.0f to %.0f MHz", m.MinCore, m.MaxCore)
	if m.MinCore == m.MaxCore {
		span = fmt.Sprintf("core %.0f MHz", m.MinCore)
	}
	return fmt.Sprintf("version %d on %s, %s %s at %s; times within %s", m.Version, orDash(gpuModel), kind,
		report.Plural(m.Samples, "run"), span, report.FormatPercent(m.Margin))
}

// ArmWords say which group of the comparison a run is in.
func ArmWords(a live.Arm) string {
	switch a {
	case live.ArmTreated:
		return "clocks chosen"
	case live.ArmHeldOut:
		return "held out for comparison"
	case live.ArmConstant:
		return "constant clocks, for comparison"
	case live.ArmExcluded:
		return "not compared"
	}
	return dash
}
