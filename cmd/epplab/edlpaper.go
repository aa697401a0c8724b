package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/reproduction"
	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/planner/policy"
)

// edlPaper computes the figures of the EDL paper (arXiv:2104.00486).
type edlPaper struct{ *reproducer }

func (e *edlPaper) experiments(section string) ([]experiment, error) {
	switch section {
	case "single":
		return e.meanSavings()
	case "table3":
		return e.table3(), nil
	case "offline":
		return e.offline(), nil
	case "online":
		return e.online(), nil
	case "figure7":
		return e.servers(), nil
	}
	return e.dailySavings(), nil
}

// meanSavings returns the mean saving of the library's applications on their own (§5.2).
func (e *edlPaper) meanSavings() ([]experiment, error) {
	apps, err := taskset.Library()
	if err != nil {
		return nil, err
	}
	saving := func(r dvfsmodel.Range) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) {
			sum := 0.0
			for _, app := range apps {
				p := app.Model
				sum += 1 - float64(r.FreeOptimum(p).Energy/p.At(dvfsmodel.DefaultScaling()).Energy)
			}
			return 100 * sum / float64(len(apps)), nil
		}
	}
	return []experiment{
		{
			reproduction.Finding{Section: "single", What: "mean saving, wide interval", Unit: "%", Paper: 36.4},
			saving(dvfsmodel.WideRange()),
		},
		{
			reproduction.Finding{Section: "single", What: "mean saving, narrow interval", Unit: "%"},
			saving(dvfsmodel.NarrowRange()),
		},
	}, nil
}

// table3 returns the paper's five-task example: optimal times and powers.
func (e *edlPaper) table3() []experiment {
	rows := []struct{ delta, deadline, power, time float64 }{
		{0, 50, 125.23, 25.83},
		{1, 36, 176.31, 36},
		{0.5, 60, 135.20, 35.44},
		{0.8, 100, 141.39, 39.10},
		{0.2, 300, 127.60, 30.86},
	}
	all := make([]experiment, 0, 2*len(rows))
	for i, row := range rows {
		solve := func() (dvfsmodel.Point, error) {
			p := dvfsmodel.Params{P0: 100, C: 200, D: 25, Delta: row.delta, T0: 5}
			return dvfsmodel.WideRange().Optimum(p, dvfsmodel.MinEnergy(), row.deadline)
		}
		name := fmt.Sprintf("J%d (δ %g, deadline %g)", i+1, row.delta, row.deadline)
		all = append(all,
			experiment{
				reproduction.Finding{Section: "table3", What: name + " power", Unit: "W", Paper: row.power},
				func(context.Context) (float64, error) {
					pt, err := solve()
					return float64(pt.Power), err
				},
			},
			experiment{
				reproduction.Finding{Section: "table3", What: name + " time", Unit: "slots", Paper: row.time},
				func(context.Context) (float64, error) {
					pt, err := solve()
					return pt.Time, err
				},
			})
	}
	return all
}

// The figures that the paper's text states for its offline and online runs.
const (
	paperOfflineSaving = 33.5   // % at l = 1, mean over utilisations (§5.3.2)
	paperRunDefault    = 120.22 // MJ (§5.4.1)
	paperRunDVFS       = 79.87  // MJ (§5.4.2)
)

// offline returns the saving over utilisation, l and θ (figures 5, 8 and 9), and the
// normalised energy without DVFS (figure 6).
func (e *edlPaper) offline() []experiment {
	var all []experiment
	for _, u := range []float64{0.2, 0.6, 1, 1.6} {
		for _, l := range []int{1, 4, 16} {
			for _, name := range []string{"edl:1", "edl:0.9", "edl:0.8", "edf-bf", "edf-wf", "lpt-ff"} {
				f := reproduction.Finding{
					Section: "offline", Unit: "% saved", What: fmt.Sprintf("%s, U %g, l %d", name, u, l),
				}
				if l == 1 && name == "edl:1" {
					f.Paper = paperOfflineSaving
				}
				all = append(all, e.meanOverSets(f, taskset.Spec{Offline: u}, l, name,
					func(p *planner.Problem, plan *planner.Plan) float64 {
						return 100 * (1 - float64(plan.Ledger.Total()/planner.DefaultEnergy(p, plan)))
					}))
			}
		}
	}
	for _, name := range []string{"edl", "lpt-ff"} {
		f := reproduction.Finding{Section: "offline", Unit: "% idle", What: name + " without DVFS, U 0.2, l 16"}
		if name == "lpt-ff" {
			f.Paper = 31
		}
		all = append(all, e.meanOverSets(f, taskset.Spec{Offline: 0.2}, 16, name+",clocks=default",
			func(p *planner.Problem, plan *planner.Plan) float64 {
				return 100 * float64(plan.Ledger.Idle/planner.DefaultEnergy(p, plan))
			}))
	}
	return all
}

// online returns the energy of the paper's day, by l, θ and ρ (figures 10 to 13).
func (e *edlPaper) online() []experiment {
	day := paperDay()
	mega := func(energy func(*planner.Ledger) dvfsmodel.Joule) func(*planner.Problem, *planner.Plan) float64 {
		return func(_ *planner.Problem, plan *planner.Plan) float64 {
			return float64(energy(&plan.Ledger)) / 1e6
		}
	}
	run := mega(func(l *planner.Ledger) dvfsmodel.Joule { return l.Run })
	total := mega(func(l *planner.Ledger) dvfsmodel.Joule { return l.Total() })
	idle := mega(func(l *planner.Ledger) dvfsmodel.Joule { return l.Idle })
	at := func(what string, paper float64) reproduction.Finding {
		return reproduction.Finding{Section: "online", What: what, Unit: "MJ", Paper: paper}
	}
	stated := []experiment{
		e.meanOverSets(at("run energy at default clocks", paperRunDefault), day, 1,
			"edl,clocks=default", run),
		e.meanOverSets(at("run energy with DVFS", paperRunDVFS), day, 1, "edl", run),
		e.meanOverSets(at("total, edl:1, l 16", 102.49), day, 16, "edl:1", total),
		e.meanOverSets(at("total, edl:0.9, l 16", 99.73), day, 16, "edl:0.9", total),
		e.meanOverSets(at("total, edl-bin, l 16", 85.27), day, 16, "edl-bin", total),
		e.meanOverSets(at("idle, edl without DVFS, l 16", 18.44), day, 16, "edl,clocks=default", idle),
		e.meanOverSets(at("idle, edl:1, l 16", 22.61), day, 16, "edl:1", idle),
		e.meanOverSets(at("idle, edl:0.9, l 16", 19.82), day, 16, "edl:0.9", idle),
		// Without sleep, θ pays as the paper's does.
		e.meanOverSets(at("total without sleep, edl:1, l 16", 0), day, 16, "edl:1,park=never", total),
		e.meanOverSets(at("total without sleep, edl:0.9, l 16", 0), day, 16, "edl:0.9,park=never", total),
		e.meanOverSets(at("total without sleep, edl:0.8, l 16", 0), day, 16, "edl:0.8,park=never", total),
	}
	sizes, thetas, rhos := []int{1, 2, 4, 8, 16}, []float64{0.8, 0.85, 0.9, 0.95, 1}, []float64{0, 10}
	all := slices.Grow(stated, len(sizes)*(len(thetas)+len(rhos)))
	for _, l := range sizes {
		for _, theta := range thetas {
			name := fmt.Sprintf("edl:%g", theta)
			all = append(all,
				e.meanOverSets(at(fmt.Sprintf("total, %s, l %d", name, l), 0), day, l, name, total))
		}
		for _, rho := range rhos {
			name := fmt.Sprintf("edl,rho=%g", rho)
			all = append(all,
				e.meanOverSets(at(fmt.Sprintf("total, %s, l %d", name, l), 0), day, l, name, total))
		}
	}
	return all
}

// servers returns the servers in use over utilisation, by policy, with and without DVFS.
func (e *edlPaper) servers() []experiment {
	loads, names := []float64{0.2, 0.6, 1, 1.6}, []string{"edl", "edf-bf", "edf-wf", "lpt-ff"}
	all := make([]experiment, 0, 2*len(loads)*len(names))
	for _, u := range loads {
		for _, name := range names {
			for _, clocks := range []string{"", ",clocks=default"} {
				f := reproduction.Finding{
					Section: "figure7", Unit: "servers", What: fmt.Sprintf("%s, U %g", name+clocks, u),
				}
				all = append(all, e.meanOverSets(f, taskset.Spec{Offline: u}, 1, name+clocks,
					func(_ *planner.Problem, plan *planner.Plan) float64 {
						used := 0
						for _, node := range plan.Ledger.Nodes {
							if node.Run > 0 {
								used++
							}
						}
						return float64(used)
					}))
			}
		}
	}
	return all
}

// dailySavings returns the energy saved on the paper's day against EDL at default clocks, by l and θ.
func (e *edlPaper) dailySavings() []experiment {
	sizes, thetas := []int{1, 2, 4, 8, 16}, []float64{0.8, 0.85, 0.9, 0.95, 1}
	all := make([]experiment, 0, len(sizes)*len(thetas))
	total := func(_ *planner.Problem, plan *planner.Plan) float64 { return float64(plan.Ledger.Total()) }
	for _, l := range sizes {
		for _, theta := range thetas {
			name := fmt.Sprintf("edl:%g", theta)
			f := reproduction.Finding{Section: "figure13", Unit: "% saved", What: fmt.Sprintf("%s, l %d", name, l)}
			all = append(all, experiment{f, func(ctx context.Context) (float64, error) {
				before, err := e.meanOverSets(f, paperDay(), l, "edl,clocks=default", total).run(ctx)
				if err != nil {
					return 0, err
				}
				ours, err := e.meanOverSets(f, paperDay(), l, name, total).run(ctx)
				return 100 * (1 - ours/before), err
			}})
		}
	}
	return all
}

func paperDay() taskset.Spec { return taskset.Spec{Offline: 0.4, Online: 1.6} }

// meanOverSets returns the mean of a quantity over the task sets, planned by a policy.
func (e *edlPaper) meanOverSets(
	f reproduction.Finding, spec taskset.Spec, l int, name string,
	measure func(*planner.Problem, *planner.Plan) float64,
) experiment {
	return experiment{f, func(ctx context.Context) (float64, error) {
		sum := 0.0
		for set := range e.sets {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			problem, err := e.problem(spec, l, e.seed+uint64(set))
			if err != nil {
				return 0, err
			}
			pol, err := policy.Parse(name, policy.DefaultParams())
			if err != nil {
				return 0, err
			}
			plan, err := planner.Solve(ctx, problem, pol, nil)
			if err != nil {
				return 0, err
			}
			if plan.Status != planner.Complete {
				return 0, fmt.Errorf("policy %s: plan is %v", name, plan.Status)
			}
			sum += measure(problem, plan)
		}
		return sum / float64(e.sets), nil
	}}
}

func (e *edlPaper) problem(spec taskset.Spec, l int, seed uint64) (*planner.Problem, error) {
	batch, err := taskset.Generate(spec, rand.New(rand.NewPCG(seed, seed)))
	if err != nil {
		return nil, err
	}
	wide := dvfsmodel.WideRange()
	cluster, known := config.PaperCluster(l), setup.NewCatalog(config.BuiltinProfiles(), nil, &wide)
	tasks, _, err := join.Tasks(batch, &cluster, known, join.Margins{})
	if err != nil {
		return nil, err
	}
	p := &planner.Problem{Cluster: cluster, Tasks: tasks, Mode: planner.ModeOf(tasks)}
	if p.Mode == planner.Online {
		p.Start = planner.StartSlot
	}
	return p, nil
}

var paperEDL = paper{ //nolint:gochecknoglobals // constant
	reproduction.Paper{
		Name: "edl", Title: "EDL: energy-aware non-preemptive scheduling with deadlines",
		Page: "lab/docs/papers/edl.md", Sections: edlSections,
	},
	computeEDL,
}

var edlSections = []string{"single", "table3", "offline", "online", "figure7", "figure13"}

type experiment struct {
	reproduction.Finding
	run func(ctx context.Context) (float64, error)
}

// computeEDL runs the experiments of the sections, in parallel.
func computeEDL(ctx context.Context, r *reproducer) (*reproduction.Result, error) {
	e, all := &edlPaper{r}, []experiment(nil)
	for _, section := range r.sections {
		some, err := e.experiments(section)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	progress := r.count("", len(all))
	defer progress.Finish()
	findings := make([]reproduction.Finding, len(all))
	err := terminal.InParallel(ctx, 0, len(all), func(ctx context.Context, i int) error {
		defer progress.Add(1)
		value, err := all[i].run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", all[i].What, err)
		}
		findings[i] = all[i].Finding
		findings[i].Ours = value
		return nil
	})
	if err != nil {
		return nil, err
	}
	found := r.result(findings)
	if slices.Contains(r.sections, "offline") || slices.Contains(r.sections, "online") {
		found.Drawn = fmt.Sprintf("random task sets per figure: %d, seed %d", r.sets, r.seed)
	}
	return found, nil
}
