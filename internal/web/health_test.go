package web

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/view"
)

// Whatever is wrong with a controller, the overview and a terminal say it, and nothing where nothing is.
func TestOverviewAndTerminalTellTheSameProblems(t *testing.T) {
	for seed := range uint64(200) {
		random, n := rand.New(rand.NewPCG(seed, 10)), int64(1)
		var want []string
		maybe := func(say func(n int64)) {
			if n += 1 + random.Int64N(50); random.IntN(2) == 0 {
				say(n)
			}
		}
		o := &epdapi.Overview{}
		s := &o.Status
		says := func(n int64, what string) { want = append(want, report.FormatCount(int(n))+what) }
		maybe(func(n int64) { s.Lost = n; says(n, " records were lost") })
		maybe(func(n int64) { s.Implausible = n; says(n, " outcomes are implausible") })
		maybe(func(n int64) { s.OutcomeErrors = n; says(n, " times an outcome couldn't be stored") })
		maybe(func(n int64) { s.Queue.Unread = int(n); says(n, " records of Slurm's jobs can't be read") })
		maybe(func(n int64) { s.Nodes.Failures, s.Nodes.Trouble = int(n), "odd"; says(n, " times in a row") })
		maybe(func(int64) { s.Trouble = "no room"; want = append(want, "records: no room") })
		health := healthOf(o, &epdapi.NodeList{}, &Request{})
		page := renderedText(t, "{{range .}}{{part .}}{{end}}", health.parts)
		terminal := view.ProblemsText(s)
		for _, what := range want {
			if !strings.Contains(page, what) || !strings.Contains(terminal, what) {
				t.Fatalf("seed %d: no %q on the page\n%s\nor the terminal\n%s", seed, what, page, terminal)
			}
		}
		if len(want) == 0 && (terminal != "" || !strings.Contains(page, "Nothing is wrong")) {
			t.Fatalf("seed %d: nothing is wrong, and they say %s%s", seed, page, terminal)
		}
	}
}
