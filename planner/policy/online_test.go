package policy_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

func TestTryVariants(t *testing.T) {
	setHP(t)
	pol := &planner.Policy{Name: "hold", Tune: tune.Optimum(1), Place: place.Hold, Pick: pick.Held, Park: park.DRS{Rho: 2}}
	nv, _ := strconv.Atoi(os.Getenv("NV"))
	for _, set := range strings.Fields(os.Getenv("VSETS")) {
		for _, interval := range []string{"wide", "narrow"} {
			for _, l := range []int{1, 2, 4, 8, 16} {
				if !strings.Contains(os.Getenv("LS"), ","+strconv.Itoa(l)+",") {
					continue
				}
				sum, sq, worst := 0.0, 0.0, 0.0
				for v := range nv {
					p := paperProblem(t, set, interval, l, planner.StartRule(v%2))
					rng := rand.New(rand.NewPCG(uint64(v), 7))
					kept := p.Tasks[:0]
					b := 0.0
					for _, tk := range p.Tasks {
						if rng.Float64() > 0.06 {
							kept = append(kept, tk)
							pt, _ := tk.Options[0].Response.Optimum(dvfsmodel.MinEnergy(), tk.Deadline-tk.Arrival)
							b += float64(pt.Energy)
						}
					}
					p.Tasks = kept
					plan, err := planner.Solve(context.Background(), p, pol, nil)
					if err != nil {
						t.Fatal(err)
					}
					g := 100 * (float64(plan.Ledger.Total())/b - 1)
					sum += g
					sq += g * g
					worst = max(worst, g)
				}
				n := float64(nv)
				t.Logf("%s %s l=%d mean %.3f sd %.3f worst %.3f", set, interval, l, sum/n, math.Sqrt(max(0, sq/n-sum*sum/n/n)), worst)
			}
		}
	}
}

func TestTryHold(t *testing.T) {
	setHP(t)
	bound := map[string]float64{}
	for _, row := range readTable(t, shareddata.Path(t, "edl/bounds.csv")) {
		bound[row["set"]+row["interval"]] = num(t, row["lower_bound"])
	}
	sets := os.Getenv("SETS")
	ls := os.Getenv("LS")
	pol := &planner.Policy{Name: "hold", Tune: tune.Optimum(1), Place: place.Hold, Pick: pick.Held, Park: park.DRS{Rho: 2}}
	score, n := 0.0, 0
	byL := map[string]float64{}
	for _, row := range readTable(t, shareddata.Path(t, "edl/results.csv")) {
		if row["algorithm"] != "greedy" || (sets != "" && !strings.Contains(row["set"]+"/"+row["interval"]+"/"+row["start_rule"], sets)) || (ls != "" && !strings.Contains(ls, ","+row["l"]+",")) {
			continue
		}
		start, _ := planner.ParseStartRule(row["start_rule"])
		p := paperProblem(t, row["set"], row["interval"], int(num(t, row["l"])), start)
		began := time.Now()
		plan, err := planner.Solve(context.Background(), p, pol, nil)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		b := bound[row["set"]+row["interval"]]
		opens := 0
		for i := range plan.Nodes {
			opens += len(plan.Nodes[i].On)
		}
		pct := func(e float64) float64 { return math.Round(e/b*1e6) / 1e4 }
		gap, ref := pct(float64(plan.Ledger.Total())-b), num(t, row["over_bound_pct"])
		score += gap / ref
		byL[row["interval"]+row["start_rule"]+row["l"]] += gap / ref
		n++
		flag := ""
		if gap >= ref {
			flag = "WORSE"
		}
		if false {
			if len(plan.Assignments) < 3000 {
				for i, a := range plan.Assignments {
					tk := &p.Tasks[i]
					t.Logf("A task %d arr %.1f due %.1f node %d gpu %d start %.1f end %.1f want %.1f", i, tk.Arrival, tk.Due, a.Node, a.GPUs.First(), a.Start, a.End, a.Reason.Want)
				}
			}
			busy := make([]float64, len(plan.Nodes))
			for _, a := range plan.Assignments {
				busy[a.Node] += a.End - a.Start
			}
			for n := range plan.Nodes {
				o := plan.Nodes[n].On[0]
				t.Logf("node %d on %.0f off %.0f idle %.0f = %.4f%%", n, o.From, o.To, o.Len()*float64(p.Cluster.Classes[0].GPUs)-busy[n], (o.Len()*float64(p.Cluster.Classes[0].GPUs)-busy[n])*37/b*100)
			}
		}
		t.Logf("%-13s %-6s %-10s l=%2s gap %8.4f ref %8.4f (%.2f) run %7.4f idle %7.4f on %7.4f nodes %d misses %d unplaced %d %v %s", row["set"], row["interval"], row["start_rule"], row["l"],
			gap, ref, gap/ref, pct(float64(plan.Ledger.Run)-b), pct(float64(plan.Ledger.Idle)), pct(float64(plan.Ledger.TurnOn)), opens, len(plan.Misses), len(plan.Unplaced), took.Round(time.Millisecond), flag)
	}
	for _, l := range []string{"1", "2", "4", "8", "16"} {
		t.Logf("SUM l=%s wide slot %.3f cont %.3f narrow slot %.3f cont %.3f", l, byL["wideslot"+l], byL["widecontinuous"+l], byL["narrowslot"+l], byL["narrowcontinuous"+l])
	}
	t.Logf("score %.4f", score/float64(n))
}

func setHP(t *testing.T) { t.Helper() }
