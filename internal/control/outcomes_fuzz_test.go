package control

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/savings"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
)

// runSums are what runs came to, of all or of a day.
type runSums struct {
	runs, measured, completed   int64
	treated, heldOut, constant  int64
	seconds, joules, nodeJoules float64
}

func (s *runSums) add(o *record.Outcome) {
	s.runs++
	s.seconds += o.TimeS.Or(0)
	s.joules += o.GPUEnergyJ.Or(0)
	s.nodeJoules += o.NodeEnergyJ.Or(0)
	if _, known := o.GPUEnergyJ.Get(); known {
		s.measured++
	}
	if o.ExitState == record.Completed {
		s.completed++
	}
	switch o.Arm {
	case live.ArmTreated:
		s.treated++
	case live.ArmHeldOut:
		s.heldOut++
	case live.ArmConstant:
		s.constant++
	case live.ArmExcluded:
	}
}

// want compares sums that are shown with those of the records.
func (s *runSums) want(t *testing.T, what string, shown *runSums) {
	t.Helper()
	for name, pair := range map[string][2]float64{
		"runs": {float64(shown.runs), float64(s.runs)}, "measured": {float64(shown.measured), float64(s.measured)},
		"completed": {float64(shown.completed), float64(s.completed)}, "seconds": {shown.seconds, s.seconds},
		"treated": {float64(shown.treated), float64(s.treated)}, "joules": {shown.joules, s.joules},
		"held out": {float64(shown.heldOut), float64(s.heldOut)}, "nodes": {shown.nodeJoules, s.nodeJoules},
		"constant": {float64(shown.constant), float64(s.constant)},
	} {
		if !(math.Abs(pair[0]-pair[1]) <= 1e-9*max(1, math.Abs(pair[1]))) {
			t.Fatalf("%s, %s: %v are shown, the records come to %v", what, name, pair[0], pair[1])
		}
	}
}

// outcomeBook is a controller without Slurm on a database of its own, to which outcomes come.
type outcomeBook struct {
	*Controller
	handler http.Handler
	store   *store.Store
	taken   int64 // outcomes that were acknowledged
}

// send has an outcome come as an agent sends it, and come again.
func (b *outcomeBook) send(t *testing.T, body string) {
	t.Helper()
	for again := range 2 {
		w := answerOf(t, b.handler, http.MethodPost, &url.URL{Path: epdapi.PathOutcome}, []byte(body),
			query.Caller{Admin: true})
		var answer struct{ Receipt, Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s: %s", body, w.Body)
		}
		if w.Code == http.StatusBadRequest && again == 0 {
			return
		}
		if w.Code != http.StatusOK || again > 0 && answer.Receipt == store.Stored.String() {
			t.Fatalf("%s: status %d: %s", body, w.Code, w.Body)
		}
		b.taken++
	}
}

// check compares what is shown with the records, each of which is there once.
func (b *outcomeBook) check(t *testing.T) {
	t.Helper()
	page, err := b.store.RecordedRuns(t.Context(), &store.RunFilter{Cluster: "alpha"}, false, 0, 1000)
	if err != nil || page.Next != 0 {
		t.Fatal(err, page.Next)
	}
	var all runSums
	days, states := make(map[time.Time]*runSums), make(map[string]int64)
	recorded := &machine{kept: make(map[string]*agentRun)}
	first := b.options.Clock().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-epdapi.OverviewDays)
	for i := range page.Runs {
		o := &page.Runs[i].Outcome
		key := o.Key()
		if recorded.kept[key.RunID+" "+key.Node] != nil {
			t.Fatalf("%+v is recorded twice", key)
		}
		if o.Unmatched {
			continue
		}
		recorded.kept[key.RunID+" "+key.Node] = &agentRun{kept: o}
		ended := o.Ended
		if ended.IsZero() {
			ended = page.Runs[i].Received
		}
		day := ended.UTC().Truncate(24 * time.Hour)
		if days[day] == nil {
			days[day] = &runSums{}
		}
		days[day].add(o)
		if all.add(o); !day.Before(first) {
			states[o.ExitState]++
		}
	}
	b.checkDays(t, &all)
	b.checkOverview(t, days, states)
	b.checkSavings(t, recorded.plainly())
	if n := b.status().Outcomes; n != b.taken {
		t.Fatalf("the status has %d outcomes, %d were acknowledged", n, b.taken)
	}
}

// checkDays compares the sums of all days.
func (b *outcomeBook) checkDays(t *testing.T, all *runSums) {
	t.Helper()
	sums, err := b.store.RunDays(t.Context(), "alpha", time.Unix(0, 0).AddDate(-1000, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	shown := *all // what days don't tell
	shown.runs, shown.measured, shown.seconds, shown.joules, shown.nodeJoules = 0, 0, 0, 0, 0
	for i := range sums {
		s := &sums[i]
		shown.runs, shown.measured = shown.runs+s.Runs, shown.measured+s.GPURuns
		shown.seconds, shown.joules = shown.seconds+s.TimeS, shown.joules+s.GPUEnergyJ
		shown.nodeJoules += s.NodeEnergyJ
	}
	all.want(t, "all days", &shown)
}

// checkOverview compares the days and the states that the overview shows.
func (b *outcomeBook) checkOverview(t *testing.T, days map[time.Time]*runSums, states map[string]int64) {
	t.Helper()
	o, err := b.Queries.Overview(t.Context(), query.ForEPD())
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.Days {
		d := &o.Days[i]
		want := days[d.Day]
		if want == nil {
			want = &runSums{}
		}
		want.want(t, d.Day.Format(time.DateOnly), &runSums{
			d.Runs, d.Measured, d.Completed, d.Treated, d.HeldOut, d.Constant, d.TimeS, d.GPUEnergyJ, d.NodeJ,
		})
	}
	for _, s := range o.States {
		if states[s.State] != s.Runs {
			t.Fatalf("%d runs are shown to have ended %q, %d did", s.Runs, s.State, states[s.State])
		}
		delete(states, s.State)
	}
	if len(states) > 0 {
		t.Fatalf("the overview doesn't show %v", states)
	}
}

// checkSavings compares what is shown to be saved.
func (b *outcomeBook) checkSavings(t *testing.T, want []savings.Stratum) {
	t.Helper()
	got, err := b.Queries.Savings(t.Context(), query.ForEPD(), time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if problem := differs(&got, want); problem != "" {
		t.Fatal(problem)
	}
	if _, err := json.Marshal(got); err != nil {
		t.Fatal(err)
	}
}

// newOutcomeBook opens a controller on a copy of an empty database.
func newOutcomeBook(t *testing.T, path string, empty []byte) *outcomeBook {
	t.Helper()
	if err := os.WriteFile(path, empty, 0o600); err != nil {
		t.Fatal(err)
	}
	clock := &hand{now: start.Add(48 * time.Hour)}
	s, err := store.Open(t.Context(), path, &store.Options{Now: clock.read})
	if err != nil {
		t.Fatal(err)
	}
	c := assemble(Options{
		Records: recordsIn(everythingIn{s, s.Learning}), Cluster: "alpha", Clock: clock.read, Seed: 7,
		StoreWait: 10 * time.Second,
	})
	return &outcomeBook{Controller: c, handler: c.Handler(), store: s}
}

// Whatever outcomes come, once or more often: those that are taken are recorded once, and what is shown of
// days, states, savings and the controller's status is the sum over the records. A line of an input is an
// outcome.
func FuzzOutcomesAddUp(f *testing.F) {
	storetest.NeedSQLite(f)
	const treated = `{"run_id":"r1","job_id":1,"node":"n1","gpus":["GPU-a"],"workload":"w","gpu_model":"V100",` +
		`"arm":"treated","submitted":"2026-05-04T09:00:00Z","ended":"2026-05-04T12:00:00Z","time_s":500,` +
		`"exit_state":"COMPLETED","gpu_energy_j":10000,"gpu_energy_source":"counter"}`
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(treated) }
	held := change("r1", "r3", "treated", "held_out", `"job_id":1`, `"job_id":3`, "10000", "12000")
	for _, lines := range [][]string{
		{treated},
		{treated, treated, held},
		{
			treated, change("r1", "r2", `"job_id":1`, `"job_id":2`, "10000", "11000"), held,
			change("r1", "r4", "treated", "held_out", `"job_id":1`, `"job_id":4`, "10000", "13000"),
		},
		{treated, change("n1", "n2", "10000", "9000")},
		{treated, change("10000", "9000")},
		{treated, change("r1", "r5", "COMPLETED", "FAILED")},
		{change("COMPLETED", "REQUEUED"), held},
		{change("10000", "1e308"), change("r1", "r6", "500", "1e300")},
		{change("10000", "-1"), held},
		{change("2026-05-04T12", "1969-12-31T23")},
		{change("2026-05-04T12", "9999-12-31T23")},
		{change(`"ended":"2026-05-04T12:00:00Z",`, "")},
		{change(`"arm"`, `"unmatched":true,"arm"`), treated},
		{change("treated", "constant"), change("treated", "constant", "r1", "r2", "500", "null")},
		{change(`"submitted":"2026-05-04T09:00:00Z",`, ""), change("r1", "r2")},
		{`{}`},
		{"x", treated},
	} {
		f.Add(strings.Join(lines, "\n"))
	}
	dir := quickDir(f)
	path := filepath.Join(dir, "empty.db")
	s, err := store.Open(f.Context(), path, nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	empty, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	n := 0
	f.Fuzz(func(t *testing.T, input string) {
		n++
		path := filepath.Join(dir, strconv.Itoa(n)+".db")
		b := newOutcomeBook(t, path, empty)
		lines := strings.Split(input, "\n")
		for _, line := range lines[:min(len(lines), 12)] {
			b.send(t, line)
		}
		b.check(t)
		if err := b.store.Close(); err != nil {
			t.Fatal(err)
		}
		for _, ending := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(path + ending)
		}
	})
}
