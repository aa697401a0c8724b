package policy_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/policy"
)

// Figures of policies over drawn batches that are all there at 0, on two GPU models,
// printed where they are asked for:
//
//	go test ./planner/policy -run xxx -bench OfflineFigures -offline 'edl-align;marginal' -jobs 300 -seeds 1:40
var (
	offlineFigures = flag.String("offline", "", "policies to print figures of, separated by semicolons")
	offlineJobs    = flag.Float64("jobs", 300, "jobs of each batch")
)

func BenchmarkOfflineFigures(b *testing.B) {
	if *offlineFigures == "" {
		b.Skip("-offline names no policies")
	}
	var first, last uint64
	if _, err := fmt.Sscanf(*onlineSeeds, "%d:%d", &first, &last); err != nil {
		b.Fatal(err)
	}
	var problems []*planner.Problem
	for seed := first; seed <= last; seed++ {
		if p := drawOffline(b, seed, *offlineJobs); len(p.Cluster.Classes) > 1 {
			problems = append(problems, p)
		}
	}
	for text := range strings.SplitSeq(*offlineFigures, ";") {
		b.Logf("%s, %d batches: %s", text, len(problems), offlineLine(b, problems, text))
	}
}

// offlineLine returns what a policy comes to on the problems.
func offlineLine(b *testing.B, problems []*planner.Problem, text string) string {
	b.Helper()
	n := len(problems)
	gap, energy, turnaround, took := make([]float64, 0, n), make([]float64, 0, n), make([]float64, 0, n),
		make([]float64, 0, n)
	late, easyLate := 0, 0
	for _, p := range problems {
		easy, m := pastDue(b, p, policy.EasyDefault)
		easyLate += m
		began := time.Now()
		plan, m := pastDue(b, p, text)
		took = append(took, time.Since(began).Seconds())
		late += m
		o, base := serviceOf(p, plan), serviceOf(p, easy)
		energy, turnaround = append(energy, o.energy/base.energy), append(turnaround, o.mean/base.mean)
		if m == 0 { // others are held against a weaker bound
			lower := bound.Of(p, plan)
			gap = append(gap, 100*lower.Gap(plan.Ledger.Total()))
		}
	}
	slices.Sort(took)
	line := ""
	if len(gap) > 0 {
		mean, half := meanOf(gap)
		line = fmt.Sprintf("gap %.2f±%.2f %% (most %.2f, of %d), ", mean, half, slices.Max(gap), len(gap))
	}
	e, eHalf := meanOf(energy)
	t, tHalf := meanOf(turnaround)
	return line + fmt.Sprintf("energy %.3f±%.3f and turnaround %.3f±%.3f of EASY's, past due %d (EASY %d), "+
		"%.2f s (most %.2f)",
		e, eHalf, t, tHalf, late, easyLate, took[n/2], took[n-1])
}

// drawOffline returns a batch of [drawOnline] that is all there at 0, without deadlines.
func drawOffline(tb testing.TB, seed uint64, jobs float64) *planner.Problem {
	tb.Helper()
	p := drawOnline(tb, seed, jobs, jobs)
	p.Mode = planner.Offline
	for i := range p.Tasks {
		t := &p.Tasks[i]
		t.Arrival, t.Deadline, t.Due = 0, math.Inf(1), math.Inf(1)
	}
	if err := policy.ImplyDue(context.Background(), p, 1.5); err != nil {
		tb.Fatal(err)
	}
	return p
}
