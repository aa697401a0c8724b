package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/commandtest"
)

// demo are the flags of the demo's cluster.
var demo = []string{
	"--cluster", "../../testdata/demo/cluster.toml", "--models", "../../testdata/demo/models.toml",
}

// demoTimes returns the demo's batch several times over.
func demoTimes(t *testing.T, times int) string {
	t.Helper()
	text, err := os.ReadFile("../../testdata/demo/batch.csv")
	if err != nil {
		t.Fatal(err)
	}
	head, rows, _ := strings.Cut(string(text), "\n")
	var all strings.Builder
	all.WriteString(head + "\n")
	for i := range times {
		for row := range strings.Lines(rows) {
			fmt.Fprintf(&all, "%d-%s", i, row)
		}
	}
	name := filepath.Join(t.TempDir(), "batch.csv")
	if err := os.WriteFile(name, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestASignalCutsTheSearchAndTheBestPlanSoFarIsPrinted(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			args := append([]string{"plan", "../../testdata/demo/batch.csv", "--json", "--effort", "10000"},
				demo...)
			p := startOnTerminal(t, nil, args...)
			p.waitFor(t, "search", "%", "best", "MJ, 0 past due")
			p.signalled(t, signal)
			if state := p.ended(t); state.ExitCode() != terminal.ExitDone {
				t.Fatalf("%v: %q", state, p.shown())
			}
			var plan struct {
				Search   string
				JobCount int  `json:"jobs_total"`
				PastDue  *int `json:"past_due"`
				Baseline map[string]any
				Jobs     []any
			}
			if err := json.Unmarshal(p.stdout.Bytes(), &plan); err != nil {
				t.Fatalf("%v in %s", err, &p.stdout)
			}
			if plan.Search != "cut" || plan.JobCount != 40 || len(plan.Jobs) != 40 || plan.PastDue == nil ||
				*plan.PastDue != 0 || plan.Baseline == nil {
				t.Errorf("%+v", plan)
			}
			if said := p.shown(); !strings.Contains(said,
				"note: interrupted: the search stopped, this is the best plan so far") {
				t.Errorf("nothing of it in %q", said)
			}
		})
	}
}

func TestASecondSignalEndsTheProgramAtOnce(t *testing.T) {
	unread, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unread.Close(), stdout.Close() })
	// The plan is more than the pipe holds: the first signal ends the search, nothing ends the printing.
	p := startOnTerminal(t, stdout,
		append([]string{"plan", demoTimes(t, 20), "--json", "--effort", "10000"}, demo...)...)
	p.waitFor(t, "search", "best")
	p.signalled(t, os.Interrupt)
	p.waitFor(t, "note: interrupted")
	p.signalled(t, os.Interrupt)
	status, ok := p.ended(t).Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended by %v, want the second signal", p.ProcessState)
	}
}

func TestASignalBeforeThereIsAPlanIsAnError(t *testing.T) {
	p := startOnTerminal(t, nil,
		append([]string{"plan", demoTimes(t, 4), "--policy", "lookahead,futures=10000"}, demo...)...)
	p.waitFor(t, "lookahead", "%")
	p.signalled(t, os.Interrupt)
	if state := p.ended(t); state.ExitCode() != terminal.ExitInterrupted || p.stdout.Len() > 0 ||
		!strings.Contains(p.shown(), "error: interrupted") {
		t.Errorf("%v: printed %q, %q", state, &p.stdout, p.shown())
	}
}

func TestASignalLeavesRowsOfAComparisonUnfinished(t *testing.T) {
	p := startOnTerminal(t, nil, append([]string{
		"compare", demoTimes(t, 2), "--json", "--time-limit", "1h", "--policy", "baseline", "--policy",
		"lookahead,futures=10000",
	}, demo...)...)
	p.waitFor(t, "lookahead", "50 %", "best baseline")
	p.signalled(t, os.Interrupt)
	if state := p.ended(t); state.ExitCode() != terminal.ExitDone {
		t.Fatalf("%v: %q", state, p.shown())
	}
	rows := rowsOf(t, p.stdout.Bytes())
	if rows[0].Status == unfinishedRow || rows[0].Energy == nil || rows[1].Status != unfinishedRow ||
		rows[1].Energy != nil {
		t.Errorf("%s", &p.stdout)
	}
	if !strings.Contains(p.shown(), "note: unfinished: lookahead,futures=10000 (interrupted)") {
		t.Errorf("nothing of it in %q", p.shown())
	}
}

// unfinishedRow is the status of a row that isn't done.
const unfinishedRow = "unfinished"

// comparedRow is what tests look at of a row.
type comparedRow struct {
	Policy   string
	Status   string
	Energy   *float64 `json:"energy_j"`
	Planning float64  `json:"planning_s"`
}

func rowsOf(t *testing.T, text []byte) (rows []comparedRow) {
	t.Helper()
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return rows
}

func TestEachRowOfAComparisonMayTakeAsManyEvaluations(t *testing.T) {
	args := append([]string{
		"compare", demoTimes(t, 3), "--json", "--policy", "lookahead", "--policy", "edl",
		"--policy", "edl-align",
	}, demo...)
	code, stdout, stderr := inProcess(t, args...)
	if code != terminal.ExitDone {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	for _, row := range rowsOf(t, []byte(stdout)) {
		if stopped := row.Policy == "lookahead"; stopped != (row.Status == unfinishedRow) ||
			stopped == (row.Energy != nil) {
			t.Errorf("%+v", row)
		}
	}
	if !strings.Contains(stderr,
		"note: unfinished: lookahead (each row may take 50,000,000 evaluations; --time-limit") {
		t.Errorf("says %q", stderr)
	}
}

func TestATimeLimitCutsRowsOfAComparison(t *testing.T) {
	args := append([]string{
		"compare", "../../testdata/demo/batch.csv", "--json", "--time-limit", "1ns", "--policy", "edl",
		"--policy", "lookahead",
	}, demo...)
	code, stdout, stderr := inProcess(t, args...)
	if code != terminal.ExitDone ||
		!strings.Contains(stderr, "note: unfinished: edl, lookahead (--time-limit gives each row 1ns)") {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	for _, row := range rowsOf(t, []byte(stdout)) {
		if row.Status != unfinishedRow || row.Energy != nil {
			t.Errorf("%+v", row)
		}
	}
	code, _, stderr = inProcess(t,
		append([]string{"compare", "../../testdata/demo/batch.csv", "--time-limit", "0s"}, demo...)...)
	if code != terminal.ExitUsage || !strings.Contains(stderr, "--time-limit 0s, want more than 0") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

// onFakeTerminal runs the program as on a terminal whose clock goes on by a second each
// time somebody looks.
func onFakeTerminal(t *testing.T, isOne bool, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	now := time.Unix(0, 0)
	term := newProgram().NewTerminal(strings.NewReader(""), &out, &errs)
	term.Progress = isOne
	term.Now = func() time.Time {
		now = now.Add(time.Second)
		return now
	}
	if code := term.Finish(t.Context(),
		term.Execute(t.Context(), append([]string{"epplan"}, args...))); code != terminal.ExitDone {
		t.Fatalf("exit status %d: %s", code, &errs)
	}
	return out.String(), errs.String()
}

func TestProgressIsOnTerminalsOnlyAndGoneInTheEnd(t *testing.T) {
	plan := append([]string{"plan", "../../testdata/demo/batch.csv", "--json"}, demo...)
	compare := append([]string{
		"compare", "../../testdata/demo/batch.csv", "--json", "--policy", "edl", "--policy", "edl-align",
	}, demo...)
	for _, c := range []struct {
		args []string
		want []string // of one line
	}{
		{plan, []string{"search  [", "%", "best ", "MJ, 0 past due"}},
		{compare, []string{"edl-align  [", "50 %", "best ", "MJ, 0 past due"}},
	} {
		quiet, said := onFakeTerminal(t, false, c.args...)
		if said != "" {
			t.Errorf("%s says %q where there is no terminal", c.args[0], said)
		}
		stdout, said := onFakeTerminal(t, true, c.args...)
		if withoutTimes(t, stdout) != withoutTimes(t, quiet) {
			t.Errorf("%s prints something else on a terminal", c.args[0])
		}
		if !strings.HasSuffix(said, "\r\x1b[K") {
			t.Errorf("%s leaves its line: …%q", c.args[0], said[max(0, len(said)-100):])
		}
		found := false
		for line := range strings.SplitSeq(said, "\r") {
			all := true
			for _, word := range c.want {
				all = all && strings.Contains(line, word)
			}
			found = found || all
		}
		if !found {
			t.Errorf("%s has no line with %q", c.args[0], c.want)
		}
	}
}

// withoutTimes is JSON without how long planning took.
func withoutTimes(t *testing.T, text string) string {
	t.Helper()
	var all any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	if rows, ok := all.([]any); ok {
		for _, row := range rows {
			if object, ok := row.(map[string]any); ok {
				delete(object, "planning_s")
			}
		}
	}
	plain, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

func TestEffortIsRefusedWhereNothingIsSearched(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{
			"--effort 2 --policy edl",
			"--effort does nothing for policy edl, want it left out, or another policy: edl-align takes it",
		},
		{"--effort 0", "--effort 0, want a number above 0 and up to 10000"},
		{"--effort 1e9", "--effort 1e+09, want a number above 0 and up to 10000"},
	} {
		args := append([]string{"plan", "../../testdata/demo/batch.csv"}, demo...)
		code, _, stderr := inProcess(t, append(args, strings.Fields(c.args)...)...)
		if code != terminal.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d, %q", c.args, code, stderr)
		}
	}
}

func TestACommandThatPlansIsWaitedForWhenItIsInterrupted(t *testing.T) {
	for _, plans := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var term terminal.Terminal
			term.KeepsPartial.Store(plans)
			done := make(chan error, 1)
			time.AfterFunc(time.Minute, func() { done <- nil })
			if err := term.Await(commandtest.Cancelled(t), done); (err == nil) != plans {
				t.Errorf("plans: %t, ended with %v", plans, err)
			}
		})
	}
}

// TestThePlansTimeLimitHoldsForWhatItIsHeldAgainst, too: nobody waits for constant clocks.
func TestThePlansTimeLimitHoldsForWhatItIsHeldAgainst(t *testing.T) {
	for limit, cut := range map[string]bool{"1ns": true, "10m": false} {
		code, stdout, stderr := inProcess(t,
			append([]string{"plan", "../../testdata/demo/batch.csv", "--json", "--time-limit", limit},
				demo...)...)
		var plan struct {
			Search         string
			Easy, Constant map[string]any
		}
		if err := json.Unmarshal([]byte(stdout), &plan); code != terminal.ExitDone || err != nil {
			t.Fatalf("exit status %d, %v: %s", code, err, stderr)
		}
		told := strings.Contains(stderr, "note: at --time-limit: the search stopped") &&
			strings.Contains(stderr, "note: at --time-limit: constant clocks weren't looked for to the "+
				"end, and are left out")
		if (plan.Search == "cut") != cut || (plan.Constant == nil) != cut || plan.Easy == nil || told != cut {
			t.Errorf("%s: search %s, EASY %v, constant %v, %q", limit, plan.Search, plan.Easy,
				plan.Constant, stderr)
		}
	}
}
