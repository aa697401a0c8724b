package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// explainLive tells why a job of Slurm's has its clocks.
func explainLive(t *terminal.Terminal, c *cli.Context) error {
	for _, flag := range append(setup.PlanningFlags(), shiftFlags()...) {
		if name := flag.Names()[0]; c.IsSet(name) {
			return terminal.Usagef("--%s is about a batch, and none is named", name)
		}
	}
	job, err := jobView(c, c.Args().First())
	if err != nil {
		return err
	}
	return terminal.PrintAnswer(t, c, job, explainText)
}

func explainText(v *epdapi.JobView) string {
	var b strings.Builder
	b.WriteString(view.Job(v).Text())
	for i := range v.Decisions {
		explainDecision(&b, v, &v.Decisions[i])
	}
	if e := v.Estimate; e != nil {
		b.WriteString("\nNothing is decided before it starts. If it started now:\n")
		writeEstimate(&b, e, nil)
	}
	return b.String()
}

func explainDecision(b *strings.Builder, v *epdapi.JobView, d *epdapi.Decision) {
	fmt.Fprintf(b, "\nOn %s, decided at %s: %s\n", terminal.OrDash(d.Node), view.DateTime(d.Created),
		d.Setting.Words())
	report.WriteRow(b, "  why", "%s", slurm.Printable(d.Reason, 400))
	report.WriteRow(b, "  mode", "%s", modeText(d))
	for i := range v.Outcomes {
		if o := &v.Outcomes[i]; o.DecisionID != 0 && o.DecisionID == d.ID {
			writeResidency(b, o)
		}
	}
	config := terminal.Printable(d.ConfigVersion)
	if d.ConfigVersion == v.ConfigVersion {
		report.WriteRow(b, "  aim", "%s (configuration %s)", objectiveText(&v.Objective), config)
	} else {
		report.WriteRow(b, "  aim", "that of configuration %s; now %s is in force", config,
			terminal.Printable(v.ConfigVersion))
	}
	if d.Model == nil {
		report.WriteRow(b, "  model", "none, or it is gone")
		return
	}
	b.WriteString(view.Points(d.Model, d.GPUModel, d.Default, d.Chosen).Text("  "))
	writeTimeLimit(b, v, d)
}

const maxResidencies = 3

// writeResidency says at which clocks a run stayed whose clocks were adapted, the
// longest stay first; nothing of other runs.
func writeResidency(b *strings.Builder, o *epdapi.Outcome) {
	slower, adapted := o.Slowdown.Get()
	if !adapted && len(o.Stays) == 0 {
		return
	}
	stays := slices.SortedStableFunc(slices.Values(o.Stays), func(x, y dvfsmodel.ClockResidency) int {
		return cmp.Compare(y.Seconds, x.Seconds)
	})
	told := dvfsmodel.ResidencySeconds(stays)
	var parts []string
	for i := range stays[:min(len(stays), maxResidencies)] {
		parts = append(parts, fmt.Sprintf("core %.0f MHz for %s (%.0f %%)", float64(stays[i].Core),
			report.FormatSeconds(stays[i].Seconds), 100*stays[i].Seconds/max(told,
				math.SmallestNonzeroFloat64)))
	}
	if more := len(stays) - len(parts); more > 0 {
		parts = append(parts, report.Plural(more, "further clock"))
	}
	if len(parts) == 0 {
		parts = []string{"at which clocks isn't known: others were on its GPUs"}
	}
	text := strings.Join(parts, ", ")
	if adapted {
		text += fmt.Sprintf("; at most %.3f times as long as at default clocks", slower)
	}
	report.WriteRow(b, "  adapted", "%s", text)
}

func modeText(d *epdapi.Decision) string {
	mode := terminal.OrDash(d.Mode)
	switch d.Arm {
	case live.ArmHeldOut:
		return mode + "; held out at random: it runs at default clocks, so that savings can be measured"
	case live.ArmConstant:
		return mode + "; drawn at random to run at constant clocks, so that it can be measured what choosing " +
			"for each job adds"
	case live.ArmTreated:
		return mode + "; its energy is compared with that of held-out runs"
	case live.ArmExcluded:
	}
	return mode + "; it is in no comparison"
}

func objectiveText(o *epdapi.Objective) string {
	text := "least energy"
	switch {
	case o.Currency != "":
		const kWh, hour = 3.6e6, 3600
		text = fmt.Sprintf("least cost at %.6g %s a kWh", kWh*o.EnergyWeight, terminal.Printable(o.Currency))
		if o.TimeWeight > 0 {
			text += fmt.Sprintf(" and %.6g %s an hour of a GPU", hour*o.TimeWeight,
				terminal.Printable(o.Currency))
		}
	case o.EnergyWeight == 0 && o.TimeWeight > 0:
		text = "least time"
	case o.TimeWeight > 0:
		text = fmt.Sprintf("least %v × joules + %v × seconds", o.EnergyWeight, o.TimeWeight)
	}
	if o.DelayPower > 0 {
		text += fmt.Sprintf(", times the run time to the power of %v", o.DelayPower)
	}
	return text + " that keeps the limits"
}

// writeTimeLimit sets the prediction beside the time limit.
func writeTimeLimit(b *strings.Builder, v *epdapi.JobView, d *epdapi.Decision) {
	if v.Job == nil {
		return
	}
	limit, ok := v.Job.Limit.Duration()
	upper, known := d.TimeS.High.Get()
	if !ok || !known {
		return
	}
	report.WriteRow(b, "  limit", "%s, %s above the most it should take",
		report.FormatSeconds(limit.Seconds()), report.FormatSeconds(limit.Seconds()-upper))
}
