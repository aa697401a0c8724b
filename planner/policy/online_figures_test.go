package policy_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// Figures of online policies over drawn batches, printed where they are asked for:
//
//	go test ./planner/policy -run xxx -bench OnlineFigures -online 'replan;value' -seeds 1:60
var (
	onlineFigures = flag.String("online", "", "policies to print figures of, separated by semicolons")
	onlineSeeds   = flag.String("seeds", "1:40", "first and last seed of the batches that they are for")
	onlineWeight  = flag.Float64("weight", 0, "the objective's weight on time")
	onlineWait    = flag.Float64("wait", 0, "the price of waiting")
	onlineGangs   = flag.Bool("gangs", false, "some of the jobs run on several nodes")
	onlineEach    = flag.Bool("each", false, "print each batch, too")
)

func BenchmarkOnlineFigures(b *testing.B) {
	if *onlineFigures == "" {
		b.Skip("-online names no policies")
	}
	var first, last uint64
	if _, err := fmt.Sscanf(*onlineSeeds, "%d:%d", &first, &last); err != nil {
		b.Fatal(err)
	}
	draw := drawOnline
	if *onlineGangs {
		draw = drawGangsOnline
	}
	for text := range strings.SplitSeq(*onlineFigures, ";") {
		kinds := map[string]*figures{"all": {}} // by GPU models
		for seed := first; seed <= last; seed++ {
			p := draw(b, seed, 20, 2000)
			p.Objective.TimeWeight, p.WaitWeight = *onlineWeight, *onlineWait
			easy, _ := pastDue(b, p, policy.EasyDefault)
			began := time.Now()
			plan, _ := pastDue(b, p, text)
			took := time.Since(began).Seconds()
			o, base := serviceOf(p, plan), serviceOf(p, easy)
			for _, kind := range []string{"all", kindOf(p)} {
				if kinds[kind] == nil {
					kinds[kind] = &figures{}
				}
				kinds[kind].add(p, &o, &base)
				kinds[kind].longest = max(kinds[kind].longest, took)
			}
			if *onlineEach {
				one := &figures{}
				one.add(p, &o, &base)
				b.Logf("seed %d, %d jobs, %s: %s", seed, len(p.Tasks), kindOf(p), one)
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			b.Logf("%s, %s: %s", text, kind, kinds[kind])
		}
	}
}

// kindOf names the GPU models of a problem, the one that EASY takes first before.
func kindOf(p *planner.Problem) string {
	names := make([]string, 0, len(p.Cluster.Classes))
	for _, k := range slices.SortedFunc(slices.Values(p.Cluster.Classes),
		func(a, b planner.NodeClass) int { return cmp.Compare(a.Name, b.Name) }) {
		names = append(names, k.Model)
	}
	return strings.Join(names, " and ")
}

// figures are ratios to EASY at default clocks, by batch.
type figures struct {
	energy, mean, p95, late []float64
	wait, easyWait          float64 // sums over batches of the mean waiting, seconds
	// Deadlines missed in all, less EASY's; batches with more than EASY; jobs left out.
	misses, worse, lost int
	slow                int
	longest             float64 // seconds of planning
}

func (f *figures) add(p *planner.Problem, o, base *service) {
	f.energy = append(f.energy, o.energy/base.energy)
	f.mean, f.p95 = append(f.mean, o.mean/base.mean), append(f.p95, o.p95/base.p95)
	f.late = append(f.late, float64(o.late-base.late)/float64(len(p.Tasks)))
	f.wait, f.easyWait = f.wait+o.wait, f.easyWait+base.wait
	f.misses += o.misses - base.misses
	if o.misses > base.misses {
		f.worse++
	}
	f.lost += o.lost - base.lost
	f.slow += o.slow
}

// String returns one line.
func (f *figures) String() string {
	e, eHalf := meanOf(f.energy)
	m, mHalf := meanOf(f.mean)
	q, qHalf := meanOf(f.p95)
	l, lHalf := meanOf(f.late)
	return fmt.Sprintf("energy %.3f±%.3f mean %.3f±%.3f (max %.2f) p95 %.3f±%.3f (max %.2f) wait %.3f late "+
		"%+.4f±%.4f (max %+.3f) misses %+d (more in %d) lost %+d slow %d %.1fs",
		e, eHalf, m, mHalf, slices.Max(f.mean), q, qHalf, slices.Max(f.p95), f.wait/f.easyWait, l, lHalf,
		slices.Max(f.late), f.misses, f.worse, f.lost, f.slow, f.longest)
}

// meanOf returns a mean with half its 95 % interval.
func meanOf(all []float64) (mean, half float64) {
	for _, x := range all {
		mean += x / float64(len(all))
	}
	sum := 0.0
	for _, x := range all {
		sum += (x - mean) * (x - mean)
	}
	n := float64(len(all))
	return mean, 1.96 * math.Sqrt(sum/max(n-1, 1)/n)
}
