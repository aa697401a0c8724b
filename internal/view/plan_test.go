package view_test

import (
	htmlpkg "html"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func TestAPlanInForceIsShownWithWhatItHasForWhom(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.Local)
	p := &live.Plan{
		Policy: "edl:0.8", At: at, TookS: 0.5, EnergyJ: 3e6, Without: 2, Stale: "it is old", Trouble: "no answer",
		Record: live.PlanRecord{
			Starts: map[live.PlanKept]int64{live.KeptAsPlanned: 3, live.KeptLater: 1, live.KeptHeldOut: 2}, Ended: 2,
			PlannedJ: 1000, MeasuredJ: 2000, Longer: 1, NotLocked: 4,
		},
		Recent: []live.PlanStart{{
			Job: 11, User: "eve", At: at, GPUModel: "T4", How: live.KeptElsewhere,
			Planned: &live.PlannedJob{NodeClass: "v100x8"},
		}},
		Jobs: []live.PlannedJob{
			{
				Task: "12_3", User: "ada", Start: at, End: at.Add(time.Hour), NodeClass: "v100x4",
				Setting: dvfsmodel.Setting{Core: 1087}, Reason: "readjusted",
			},
			{Task: "13", User: "bob", HeldOut: true, Reason: "default clocks"},
		},
	}
	shown := bothOf(t, view.Plan(p, 20))
	for where, text := range shown {
		for _, want := range []string{
			"edl:0.8 of 2026-03-02 12:00:00: 2 tasks, 3.000 MJ", "2 have no place in it", "no more: it is old",
			"no newer plan: no answer", "75.0 % as planned (3 as planned, 1 later, 2 held out at random)",
			"2 at planned clocks, planned 1.000 kJ, measured 2.000 kJ; 1 took over a tenth longer",
			"4 runs didn't get the planned clocks",
			"12_3", "13:00:00", "v100x4", "core 1087 MHz", "readjusted", "default clocks; held out at random",
			"11", "eve", "T4", "v100x8", "on another GPU model",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q isn't on the %s:\n%s", want, where, text)
			}
		}
	}
}

// bothOf returns a view as a terminal and as a page show it.
func bothOf(t *testing.T, v *view.View) map[string]string {
	t.Helper()
	var html strings.Builder
	if err := page.WriteReport(&html, &page.Report{Title: "view", Parts: v.Parts()}); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString(v.Text())
	for _, table := range v.Tables {
		text.WriteString(table.Text(&report.TextOptions{}))
	}
	return map[string]string{
		"terminal": text.String(), "page": htmlpkg.UnescapeString(strings.ReplaceAll(html.String(), "\u00a0", " ")),
	}
}

// What is moved, and what isn't, is drawn: whatever there is, a terminal and a page say all of it.
func TestTerminalAndPageHaveTheSameFactsOfLevers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		count := func(name string) int { return rapid.IntRange(0, 3).Draw(r, name) }
		text := func(name string) string { return rapid.StringMatching(`[a-z]{12}`).Draw(r, name) }
		s := &steer.Status{
			Nice: count("nice"), Prefer: count("prefer"), Weights: count("weights"), Asleep: count("asleep"),
			Paused: rapid.Bool().Draw(r, "paused"), Policy: text("policy"), More: 1 + count("more"),
		}
		wants := []string{"by policy " + s.Policy}
		for n, words := range map[*int]string{
			&s.Nice: "by their Nice", &s.Prefer: "prefer nodes with a feature",
			&s.Weights: "nodes with another weight", &s.Asleep: "nodes powered down",
		} {
			if *n > 1 {
				wants = append(wants, strconv.Itoa(*n)+" ", words)
			}
		}
		if s.Nice+s.Prefer+s.Weights+s.Asleep == 0 {
			wants = append(wants, "nothing in Slurm is changed")
		}
		if s.Paused {
			wants = append(wants, "All levers were taken back")
		}
		for range count("jobs") {
			id := slurm.JobID(rapid.Uint32Range(1, 1<<30).Draw(r, "job"))
			s.Order, s.Left = append(s.Order, id), append(s.Left, id+1)
			a := steer.Advice{Kind: steer.KindLimit, Job: id, User: text("user"), Text: text("text")}
			s.Advice = append(s.Advice, a)
			wants = append(wants, id.String(), (id + 1).String(), "job "+id.String(), a.User, a.Text, "more advices aren't listed", "somebody else changed")
		}
		for range count("notes") {
			s.Notes = append(s.Notes, text("note"))
		}
		if s.Trouble = rapid.SampledFrom([]string{"", "no answer"}).Draw(r, "trouble"); s.Trouble != "" {
			wants = append(wants, "The last step failed: no answer")
		}
		s.Shared = &colocate.Order{Job: 17, Nodes: []colocate.Node{
			{Name: text("node"), Why: text("why")},
			{Name: text("node"), Fits: true, RisesW: 101},
			{Name: text("node"), Fits: true, Beside: []slurm.JobID{3}, Correlation: -.97, Slowdown: 1.08},
		}}
		wants = append(append(wants, s.Notes...), "for job 17", s.Shared.Nodes[0].Name+": doesn't fit: "+
			s.Shared.Nodes[0].Why, s.Shared.Nodes[1].Name+": a GPU alone, for 101 W more",
			s.Shared.Nodes[2].Name+": correlation -0.97, 1.08 times the time alone, for 0 W more")
		for where, shown := range bothOf(t, view.Levers(s)) {
			for _, want := range wants {
				if !strings.Contains(shown, want) {
					r.Fatalf("%q isn't on the %s:\n%s", want, where, shown)
				}
			}
		}
	})
}
