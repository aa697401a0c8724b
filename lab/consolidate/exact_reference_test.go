package consolidate_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/cputime"
	"github.com/epplan/epplan/lab/catstest"
	"github.com/epplan/epplan/lab/consolidate"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// bests is what a file of the data says of the best answers.
type bests struct {
	Reference struct {
		A best `json:"problem_a_as_printed"`
		B best `json:"problem_b_with_utilisation_limit"`
	} `json:"reference"`
}

type best struct {
	W      float64 `json:"best_w"`
	LowerW float64 `json:"lower_bound_w"`
	Proven bool    `json:"proven_optimal"`
}

func readBests(tb testing.TB, file string) map[share.Problem]best {
	tb.Helper()
	r := decoded[bests](tb, file)
	return map[share.Problem]best{share.AsPrinted: r.Reference.A, share.Safe: r.Reference.B}
}

func TestExactProvesWhatTheReferenceProves(t *testing.T) {
	for _, file := range catstest.Files(t) {
		in := catstest.Read(t, file)
		for problem, want := range readBests(t, file) {
			t.Run(filepath.Base(file)+" "+problem.String(), func(t *testing.T) {
				quick := consolidate.QuickBound(in, problem)
				if quick > want.W+1e-6 {
					t.Errorf("quick bound %.3f W above the reference's answer, %.3f", quick, want.W)
				}
				if !want.Proven {
					return
				}
				got := consolidate.Exact(context.Background(), in, problem, consolidate.ExactOptions{})
				if !got.Proven || math.Abs(got.PowerW-want.W) > 1e-6 || math.Abs(got.BoundW-want.W) > 1e-6 {
					t.Errorf("%.4f W, bound %.4f, proven %t; want %.4f", got.PowerW, got.BoundW,
						got.Proven, want.W)
				}
				verdict := share.Evaluate(in, got.Placement)
				if !verdict.FeasibleFor(problem) || math.Abs(verdict.PowerW-want.W) > 1e-6 {
					t.Errorf("by the judge %+v", verdict)
				}
			})
		}
	}
}

// TestExactProvesMoreThanTheReference holds what better answers than the
// reference's have to be: feasible by the judge, and not below a bound that was
// found in another way.
func TestExactProvesMoreThanTheReference(t *testing.T) {
	for _, c := range []struct {
		file    string
		problem share.Problem
		watts   float64
	}{
		{"c20-medium-64", share.Safe, 4333},
		{"c21-heavy-64", share.AsPrinted, 2735.35},
		{"c23-membound-128", share.AsPrinted, 9304.45},
	} {
		file := filepath.Join(filepath.Dir(catstest.Files(t)[0]), c.file+".json")
		in, known := catstest.Read(t, file), readBests(t, file)[c.problem]
		got := consolidate.Exact(context.Background(), in, c.problem, consolidate.ExactOptions{})
		if !got.Proven || math.Abs(got.PowerW-c.watts) > 1e-6 {
			t.Errorf("%s, %s: %.4f W, proven %t; want %.4f", c.file, c.problem, got.PowerW,
				got.Proven, c.watts)
		}
		if got.PowerW > known.W+1e-6 || got.PowerW < known.LowerW-1e-6 {
			t.Errorf("%s, %s: %.4f W; the reference has %.4f, and a bound of %.4f", c.file, c.problem,
				got.PowerW, known.W, known.LowerW)
		}
		verdict := share.Evaluate(in, got.Placement)
		if !verdict.FeasibleFor(c.problem) || math.Abs(verdict.PowerW-c.watts) > 1e-6 {
			t.Errorf("%s, %s: by the judge %+v", c.file, c.problem, verdict)
		}
	}
}

func TestImproveComesCloseToTheReference(t *testing.T) {
	sum, n := 0.0, 0
	for _, file := range catstest.Files(t) {
		in, want := catstest.Read(t, file), readBests(t, file)[share.Safe]
		if len(in.Tasks) > 32 {
			continue // see the benchmark and lab/docs/figures.md
		}
		place, watts := consolidate.Improve(context.Background(), in, share.Safe,
			share.Placement{}, consolidate.ImproveOptions{})
		verdict := share.Evaluate(in, place)
		if !verdict.Feasible() || math.Abs(verdict.PowerW-watts) > 1e-6 {
			t.Errorf("%s: %.4f W by its own account, by the judge %+v", in.Name, watts, verdict)
		}
		sum += 100 * (watts/want.W - 1)
		n++
	}
	if gap := sum / float64(n); gap > 0.1 {
		t.Errorf("%.3f %% above the reference on average, want 0.1", gap)
	}
}

// BenchmarkQuickBound, BenchmarkImprove and BenchmarkExact print what they find beside how long it
// takes; see lab/docs/figures.md.
func BenchmarkImprove(b *testing.B) { benchmark(b, improve) }

func BenchmarkQuickBound(b *testing.B) { benchmark(b, quickBound) }

func BenchmarkExact(b *testing.B) { benchmark(b, exactSearch) }

func quickBound(_ context.Context, in *sharing.Instance, problem share.Problem) consolidate.Result {
	bound := consolidate.QuickBound(in, problem)
	return consolidate.Result{PowerW: bound, BoundW: bound}
}

func improve(ctx context.Context, in *sharing.Instance, problem share.Problem) consolidate.Result {
	place, watts := consolidate.Improve(ctx, in, problem, share.Placement{},
		consolidate.ImproveOptions{})
	return consolidate.Result{Placement: place, PowerW: watts}
}

func exactSearch(ctx context.Context, in *sharing.Instance, problem share.Problem) consolidate.Result {
	return consolidate.Exact(ctx, in, problem, consolidate.ExactOptions{})
}

func benchmark(
	b *testing.B, solve func(context.Context, *sharing.Instance, share.Problem) consolidate.Result,
) {
	b.Helper()
	for _, file := range catstest.Files(b) {
		in := catstest.Read(b, file)
		for _, problem := range []share.Problem{share.Safe, share.AsPrinted} {
			want := readBests(b, file)[problem]
			b.Run(problem.String()+"/"+in.Name, func(b *testing.B) {
				var got consolidate.Result
				start := cputime.Used(b).Seconds()
				for b.Loop() {
					ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
					got = solve(ctx, in, problem)
					cancel()
				}
				b.ReportMetric((cputime.Used(b).Seconds()-start)*1000/float64(b.N), "cpu-ms/op")
				b.ReportMetric(got.PowerW, "W")
				b.ReportMetric(got.BoundW, "bound-W")
				b.ReportMetric(100*(got.PowerW/want.W-1), "%reference")
			})
		}
	}
}

// decoded returns what of a fixture a test looks at.
func decoded[T any](tb testing.TB, file string) T {
	tb.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var r T
	if err := json.Unmarshal(data, &r); err != nil {
		tb.Fatal(err)
	}
	return r
}
