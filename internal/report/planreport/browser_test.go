package planreport_test

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/internal/testkit/browsertest"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }

// opened returns the address of a report in a file.
func opened(t *testing.T, write func(w io.Writer) error) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return "file://" + file
}

// jobsOf returns the jobs of a problem, of some users and workloads with names as
// nobody should have them.
func jobsOf(p *planner.Problem) []queue.Job {
	users := []string{"ada", "grace", "<b>eve</b>\x1b[31m\u202e"}
	jobs := make([]queue.Job, len(p.Tasks))
	for i := range jobs {
		jobs[i] = queue.NewJob(p.Tasks[i].ID)
		jobs[i].User, jobs[i].Workload = users[i%len(users)], "workload-"+strconv.Itoa(i%4)
	}
	return jobs
}

func TestReportsOfPlansAreReadableInABrowser(t *testing.T) {
	for _, c := range []struct {
		name    string
		problem *planner.Problem
		view    *browsertest.View // nil: all of them
		says    []string
	}{
		{"small", smallProblem(t), nil, []string{"train-resnet", "tight", "can't be planned", "<b>"}},
		{
			"late", lateProblem(t), &browsertest.View{Width: browsertest.Phone, Dark: true},
			[]string{"first", "second", "1 misses its deadline"},
		},
		{
			"many", manyProblem(t, 400), &browsertest.View{Width: browsertest.A4, Print: true},
			[]string{"all 400 jobs", "job-7"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := solve(t, c.problem, "edl")
			address := opened(t, func(w io.Writer) error {
				return planreport.WritePlanPage(w, &planreport.PlanPage{
					Result: r, Name: c.name + " batch", Jobs: jobsOf(c.problem),
					Origin: page.Facts{{Name: "command", Text: "epplan plan " + c.name}},
				})
			})
			says := append(c.says, "Plan of "+c.name+" batch", "Policy edl")
			var p *browsertest.Page
			if c.view == nil {
				p = browsertest.Inspect(t, "plan-"+c.name, address, says...)
				p.SkipsToMain()
			} else {
				p = browsertest.Open(t, address, *c.view)
				p.Screenshot("plan-" + c.name)
				p.Says(says...)
				p.FitsWidth()
				p.NoBarriers()
			}
			if p.Count("svg.pic") < 2 || p.Count("table") < 2 {
				t.Errorf("%d pictures and %d tables", p.Count("svg.pic"), p.Count("table"))
			}
		})
	}
}

func TestReportsOfComparisonsAreReadableInABrowser(t *testing.T) {
	policies := []string{"baseline", "edl", "lpt-ff", "edf-bf", "edl-align"}
	runs := make([]planreport.Run, len(policies))
	for i, policy := range policies {
		runs[i] = planreport.Run{
			Summary: planreport.Summarise(solve(t, manyProblem(t, 80), policy)), Planning: time.Millisecond,
		}
	}
	address := opened(t, func(w io.Writer) error {
		return planreport.WriteComparePage(w, &planreport.ComparePage{Runs: runs, Name: "one batch"})
	})
	browsertest.Inspect(t, "compare", address, "Policies compared on one batch", "edl-align",
		"lpt-ff", "baseline")
}
