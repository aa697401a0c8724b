package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func TestWhatWasExpectedIsComparedWithTheRunsAfterItThatDidTheWork(t *testing.T) {
	v := fakeView("4711")
	first := fakeOutcome()
	first.ExitState, first.TimeS = string(slurm.Requeued), live.Known(9999)
	first.Started, first.Ended = first.Started.Add(-4*time.Hour), first.Ended.Add(-4*time.Hour)
	early := first
	early.ExitState = record.Completed // of another job under this id
	v.Outcomes = append(v.Outcomes, first, early)
	expected := func() string {
		_, rest, _ := strings.Cut(jobText(v), "Expected ")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.TrimSpace(line)
	}
	with := expected()
	v.Outcomes = v.Outcomes[:1]
	if alone := expected(); with != alone || !strings.Contains(alone, ", took ") {
		t.Errorf("%q, with earlier runs %q", alone, with)
	}
	v.Outcomes = append(v.Outcomes[:0], first, early)
	if got := expected(); strings.Contains(got, "took") {
		t.Errorf("of earlier runs alone: %q", got)
	}
}

func TestARunOverARestartIsShownWithItsTimeAndEnergy(t *testing.T) {
	v := fakeView("4711")
	o := &v.Outcomes[0]
	o.TimeS, o.GPUEnergyJ, o.GPUSource = live.Number{}, live.Number{}, record.Unmeasured
	o.Restarted = record.Restarted{TimeS: live.Known(125), GPUEnergyJ: live.Known(31_000)}
	text := jobText(v)
	for _, want := range []string{
		"over a restart of epd: in no model and no saving",
		"31.00 kJ by the GPUs' counters",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestAListShowsWhatRunsCameToThatCountNowhereAndSaysSo(t *testing.T) {
	row := epdapi.JobRow{
		Job: *fakeView("4711").Job, Restarted: record.Restarted{
			TimeS: live.Known(125), GPUEnergyJ: live.Known(31_000),
		},
	}
	row.TimeS, row.EnergyJ = live.Known(60), live.Known(9000) // of the runs that count
	var said bytes.Buffer
	term := &terminal.Terminal{Stderr: &said}
	warnRestarted(term, []epdapi.JobRow{row, {}})
	if got := said.String(); !strings.HasSuffix(got, "no model and no saving: 4711\n") {
		t.Errorf("%q", got)
	}
	var table, csv bytes.Buffer
	jobs := jobTable([]epdapi.JobRow{row})
	if err := errors.Join(jobs.WriteText(&table, &report.TextOptions{}), jobs.WriteCSV(&csv)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "  125    31.0  ") {
		t.Errorf("%s", &table)
	}
	if got := csv.String(); !strings.HasSuffix(got, ",125,31000\n") || !strings.Contains(got, ",60,9000,") {
		t.Errorf("%s", got)
	}
}

func TestAJobIsShownWithTheLimitThatSlurmHasNow(t *testing.T) {
	v := fakeView("4711")
	now := live.LimitOf(time.Minute)
	v.Job.Limit, v.LimitNow = live.LimitOf(time.Hour), &now
	const want = "time limit 60.00 s now, 1:00:00 when its clocks were decided\n"
	if !strings.Contains(jobText(v), want) {
		t.Errorf("no %q in\n%s", want, jobText(v))
	}
}

func TestAListShowsTheClocksThatRunsHadRatherThanThoseDecided(t *testing.T) {
	row := epdapi.JobRow{
		Job: *fakeView("4711").Job, Mode: "enforce", Arm: live.ArmTreated,
		Setting: dvfsmodel.Setting{Core: 1087, Mem: 877},
	}
	for _, c := range []struct {
		locked []dvfsmodel.Setting
		want   string
	}{
		{nil, ",1087,877,"},
		{[]dvfsmodel.Setting{{}}, ",,,"},
		{[]dvfsmodel.Setting{{Core: 945, Mem: 877}}, ",945,877,"},
		{[]dvfsmodel.Setting{{}, {Core: 945}}, ",default/945,,"},
	} {
		row.Locked = c.locked
		var csv bytes.Buffer
		if err := jobTable([]epdapi.JobRow{row}).WriteCSV(&csv); err != nil ||
			!strings.Contains(csv.String(), ",enforce,treated"+c.want) {
			t.Errorf("%v: %v, no %q in\n%s", c.locked, err, c.want, &csv)
		}
	}
}

func TestARunThatIsSetAsideIsShownWithTheReason(t *testing.T) {
	for why, reason := range map[string]record.Restarted{
		"its job suspended for a part of it": {Suspended: true},
		"with what ran before its Epilog":    {Late: true},
	} {
		v := fakeView("4711")
		o := &v.Outcomes[0]
		o.TimeS, o.GPUEnergyJ, o.GPUSource = live.Known(125), live.Known(31_000), record.Integrated
		o.MoveToRestarted(reason)
		text := jobText(v)
		for _, want := range []string{
			why + ": in no model and no saving",
			"31.00 kJ by " + record.Integrated.Words(),
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
}

func TestWhatCantBeOfARunIsTold(t *testing.T) {
	v := fakeView("4711")
	o := &v.Outcomes[0]
	o.GPUEnergyJ = live.Known(1.7e308)
	o.DropImplausible(&record.Bounds{})
	if text := jobText(v); !strings.Contains(text, "  set aside GPU energy 1.7e+308 J, want 0 to ") ||
		!strings.Contains(text, "it can't be, and counts nowhere\n") {
		t.Errorf("%s", text)
	}
	s := &epdapi.Status{Controller: &epdapi.ControllerStatus{
		Implausible: 2, LastImplausible: "run r of job 7 on n1: time -60 s, want 0 to 60",
	}}
	if text := statusText(s); !strings.Contains(text, "Warning: 2 outcomes are implausible: kept, but counted "+
		"nowhere; the last: run r of job 7 on n1: time -60 s") {
		t.Errorf("%s", text)
	}
}

func TestAnExplanationSaysAtWhichClocksAnAdaptedRunStayed(t *testing.T) {
	v := fakeView("4711")
	if text := explainText(v); strings.Contains(text, "adapted") {
		t.Errorf("of a run at one clock:\n%s", text)
	}
	o := &v.Outcomes[0]
	o.Slowdown = live.Known(1.08)
	o.Stays = []dvfsmodel.ClockResidency{
		{Core: 1380, Seconds: 254.1},
		{Core: 1087, Seconds: 1524.6},
		{Core: 945, Seconds: 750},
		{Core: 870, Seconds: 12.3},
	}
	want := "\n  adapted   core 1087 MHz for 0:25:25 (60 %), core 945 MHz for 0:12:30 (30 %), core 1380 " +
		"MHz for 254.1 s (10 %), 1 further clock; " +
		"at most 1.080 times as long as at default clocks\n"
	if text := explainText(v); !strings.Contains(text, want) {
		t.Errorf("want%sin\n%s", want, text)
	}
	o.Stays = nil
	if text := explainText(v); !strings.Contains(text, "  adapted   at which clocks isn't known: ") {
		t.Errorf("of a run whose GPUs were shared:\n%s", text)
	}
	o.DecisionID = 6
	if text := explainText(v); strings.Contains(text, "adapted") {
		t.Errorf("of a run that was under another decision:\n%s", text)
	}
}

// The list has a column of power limits where one was set, and only there.
func TestTheListOfJobsShowsPowerLimitsThatWereSet(t *testing.T) {
	list := func(settings ...dvfsmodel.Setting) string {
		jobs := make([]epdapi.JobRow, len(settings))
		for i, s := range settings {
			jobs[i] = epdapi.JobRow{Job: epdapi.Job{ID: int64(i + 1)}, Setting: s}
		}
		if len(jobs) > 2 {
			jobs[2].Locked = []dvfsmodel.Setting{{}, {Cap: 180}}
		}
		var out bytes.Buffer
		if err := jobTable(jobs).WriteCSV(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	core := dvfsmodel.Setting{Core: 1087}
	if text := list(core, dvfsmodel.Setting{}); strings.Contains(text, "cap_w") {
		t.Errorf("a column of limits that nobody set:\n%s", text)
	}
	text := list(core, dvfsmodel.Setting{Core: 1087, Cap: 200}, core)
	lines := strings.Split(text, "\n")
	for i, want := range []string{
		",core_mhz,mem_mhz,cap_w,time_s,", ",1087,,,", ",1087,,200,", ",,,default/180,",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d, want %q:\n%s", i+1, want, text)
		}
	}
}
