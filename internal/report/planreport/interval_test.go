package planreport_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/catalog"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/trace"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
)

// lab knows how workloads truly respond on two GPU models, which nobody else does, and
// measures them with noise.
type lab struct {
	*rand.Rand
	profiles  *config.Profiles
	models    []string // GPU models, the first of which run times are of
	workloads []string
	truth     map[[2]string]func(core, mem dvfsmodel.MHz) dvfsmodel.Point // by workload and GPU model
}

// def returns what a repetition of a workload truly takes at default clocks.
func (l *lab) def(tb testing.TB, workload, gpu string) dvfsmodel.Point {
	tb.Helper()
	profile, err := l.profiles.Lookup(gpu)
	if err != nil {
		tb.Fatal(err)
	}
	return l.truth[[2]string{workload, gpu}](profile.Default.Core, profile.Default.Mem)
}

// measuredLab knows what was measured on two GPU models, of workloads that ran on both.
func measuredLab(tb testing.TB, seed uint64, files, models []string) *lab {
	tb.Helper()
	l := &lab{
		Rand:     rand.New(rand.NewPCG(seed, 6)),
		profiles: config.BuiltinProfiles(), models: models,
		truth: make(map[[2]string]func(core, mem dvfsmodel.MHz) dvfsmodel.Point),
	}
	for i, model := range models {
		file := files[i]
		f, err := os.Open(shareddata.Path(tb, "dvfs/"+file))
		if err != nil {
			tb.Fatal(err)
		}
		apps, err := trace.ReadDVFS(f, file)
		if err != nil || f.Close() != nil {
			tb.Fatal(err)
		}
		for _, app := range apps {
			at := make(map[dvfsmodel.Setting]dvfsmodel.Sample)
			for _, s := range app.Samples {
				at[dvfsmodel.Setting{Core: s.Core, Mem: s.Mem}] = s
			}
			l.truth[[2]string{app.App, model}] = func(core, mem dvfsmodel.MHz) dvfsmodel.Point {
				s := at[dvfsmodel.Setting{Core: core, Mem: mem}]
				return dvfsmodel.Point{Core: core, Mem: mem, Time: s.Time, Power: s.Power, Energy: s.Energy()}
			}
		}
	}
	for key := range l.truth {
		if key[1] == models[0] && l.truth[[2]string{key[0], models[len(models)-1]}] != nil {
			l.workloads = append(l.workloads, key[0])
		}
	}
	slices.Sort(l.workloads)
	l.Shuffle(len(l.workloads), func(i, k int) {
		l.workloads[i], l.workloads[k] = l.workloads[k], l.workloads[i]
	})
	return l
}

var labBase = dvfsmodel.Setting{Core: 1400, Mem: 900}

const labWorkloads = 10

// newLab draws a lab.
func newLab(tb testing.TB, seed uint64) *lab {
	tb.Helper()
	const profiles = `
[[gpu]]
name = "fast"
default_core_mhz = 1400
default_mem_mhz = 900
idle_w = 30
host_w_per_gpu = 25
clocks = [{ mem_mhz = [900], core_mhz = { from = 700, to = 1500, step = 100 } }]
[[gpu]]
name = "slow"
default_core_mhz = 1400
default_mem_mhz = 900
idle_w = 15
host_w_per_gpu = 25
clocks = [{ mem_mhz = [900], core_mhz = { from = 700, to = 1500, step = 100 } }]
`
	own, err := config.ReadProfiles(strings.NewReader(profiles), "profiles.toml")
	if err != nil {
		tb.Fatal(err)
	}
	l := &lab{
		Rand:     rand.New(rand.NewPCG(seed, 5)),
		profiles: config.BuiltinProfiles().With(own),
		truth:    make(map[[2]string]func(core, mem dvfsmodel.MHz) dvfsmodel.Point),
		models:   []string{"fast", "slow"},
	}
	for i := range labWorkloads {
		l.workloads = append(l.workloads, fmt.Sprint("w", i))
		for k, gpu := range l.models {
			draw := func(low, high float64) float64 { return low + (high-low)*l.Float64() }
			f, err := dvfsmodel.NewFitted(dvfsmodel.Form{Time: "log-quadratic", Power: "log-quadratic"},
				labBase, []dvfsmodel.Coefficient{
					{Name: "time.log_t", Value: draw(-1, 1) + 0.6*float64(k)},
					{Name: "time.log_fc", Value: -draw(0.2, 0.9)},
					{Name: "time.log_fc2", Value: draw(0, 0.2)},
					{Name: "power.log_p", Value: draw(4.8, 5.4) - 0.3*float64(k)},
					{Name: "power.log_fc", Value: draw(1.2, 2)},
					{Name: "power.log_fc2", Value: draw(0.4, 1)},
				})
			if err != nil {
				tb.Fatal(err)
			}
			l.truth[[2]string{l.workloads[i], gpu}] = f.At
		}
	}
	return l
}

// fit fits models to some of the settings, each measured once. Every run is off by so
// much.
func (l *lab) fit(tb testing.TB, workloads []string, settings int, noise float64) *config.Models {
	tb.Helper()
	var all []config.Model
	for _, name := range workloads {
		for _, gpu := range l.models {
			profile, err := l.profiles.Lookup(gpu)
			if err != nil {
				tb.Fatal(err)
			}
			pairs := profile.Pairs()
			var samples []dvfsmodel.Sample
			for _, i := range l.Perm(len(pairs))[:min(settings, len(pairs))] {
				at := l.truth[[2]string{name, gpu}](pairs[i].Core, pairs[i].Mem)
				samples = append(samples, dvfsmodel.Sample{
					Core: at.Core, Mem: at.Mem,
					Time:  at.Time * math.Exp(noise*l.NormFloat64()),
					Power: at.Power * dvfsmodel.Watt(math.Exp(noise*l.NormFloat64())),
				})
			}
			fitted, err := dvfsmodel.Fit(samples, profile.Default, nil)
			if err != nil {
				continue // its jobs don't run there
			}
			m := config.NewModel(name, gpu, fitted)
			if _, err := config.NewModels(m); err != nil {
				continue
			}
			if _, err := m.Response(profile); err == nil {
				all = append(all, m)
			}
		}
	}
	set, err := config.NewModels(all...)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// batch draws jobs of some workloads whose run times were measured on the first GPU
// model, perhaps with their powers.
func (l *lab) batch(tb testing.TB, jobs int, workloads []string, power bool) *queue.Batch {
	tb.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "id,workload,runtime_s.%s,gpus,power_w.%[1]s\n", l.models[0])
	for i := range jobs {
		w := workloads[l.IntN(len(workloads))]
		watts := ""
		if power {
			watts = fmt.Sprintf("%.6g", float64(l.def(tb, w, l.models[0]).Power))
		}
		fmt.Fprintf(&text, "j%d,%s,%.0f,%d,%s\n", i, w, 1200*math.Exp(l.NormFloat64()), 1+l.IntN(2), watts)
	}
	b, err := queue.Read(strings.NewReader(text.String()), "jobs.csv", queue.Auto)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// plan plans a batch by models, and what it is held against.
func (l *lab) plan(
	tb testing.TB, b *queue.Batch, models *config.Models, prior bool, policyText string,
) *planreport.Result {
	tb.Helper()
	ctx, catalog := context.Background(), catalog.New(l.profiles, models, nil)
	if prior {
		catalog.UsePrior()
	}
	cluster := planner.Cluster{}
	for _, gpu := range l.models {
		cluster.Classes = append(cluster.Classes, planner.NodeClass{
			Name: gpu, Model: gpu, Count: 3, GPUs: 4, IdleW: 20, HostW: 25, TurnOn: 2000, TurnOnDelay: 60,
		})
	}
	tasks, _, err := join.Tasks(b, &cluster, catalog, join.Margins{})
	if err != nil {
		tb.Fatal(err)
	}
	p := &planner.Problem{Cluster: cluster, Tasks: tasks}
	if err := policy.ImplyDue(ctx, p, 2); err != nil {
		tb.Fatal(err)
	}
	pol, err := policy.Parse(policyText, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	plan, err := policy.SolveChecked(ctx, p, pol, nil)
	if err != nil {
		tb.Fatal(err)
	}
	fcfs, err := policy.Parse("baseline", policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	reference, err := policy.SolveChecked(ctx, p, fcfs, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return &planreport.Result{Problem: p, Plan: plan, Reference: reference, Baseline: reference.Ledger.Total()}
}

// energy returns what a plan truly takes: jobs start in the plan's
// order on the plan's GPUs, as soon as these are free, and nodes stay on for as much
// longer as it takes.
func (l *lab) energy(tb testing.TB, r *planreport.Result, b *queue.Batch, plan *planner.Plan) float64 {
	tb.Helper()
	type gpu struct {
		node int32
		at   int
	}
	free, last := make(map[gpu]float64), make(map[int32]float64)
	order := make([]int, len(plan.Assignments))
	for i := range order {
		order[i] = i
	}
	sortBy(order, func(i int) float64 { return plan.Assignments[i].Start })
	run, other := 0.0, float64(plan.Ledger.Total()-plan.Ledger.Run)
	for _, i := range order {
		a, t := &plan.Assignments[i], &r.Problem.Tasks[i]
		truth := l.truth[[2]string{b.Jobs[i].Workload, t.Options[a.Option].Model}]
		measured := l.def(tb, b.Jobs[i].Workload, l.models[0])
		at := truth(a.Point.Core, a.Point.Mem)
		seconds := b.Jobs[i].Measured[0].Runtime * at.Time / measured.Time
		run += seconds * float64(at.Power) * float64(a.GPUCount())
		start := 0.0
		for _, g := range a.GPUs.Indexes() {
			before, used := free[gpu{a.Node, g}]
			if !used {
				before = a.Start
			}
			start = max(start, before)
		}
		for _, g := range a.GPUs.Indexes() {
			free[gpu{a.Node, g}] = start + seconds
		}
		k := &r.Problem.Cluster.Classes[plan.Nodes[a.Node].Class]
		longer := max(last[a.Node], start+seconds) - last[a.Node] // the node is on for
		last[a.Node] += longer
		other += longer * float64(k.HostW+k.IdleW*dvfsmodel.Watt(k.GPUs))
		other -= seconds * float64(k.IdleW) * float64(a.GPUCount())
	}
	// The same sums of the plan as it is stated were in it already.
	ends := make(map[int32]float64)
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		k := &r.Problem.Cluster.Classes[plan.Nodes[a.Node].Class]
		longer := max(ends[a.Node], a.End) - ends[a.Node]
		ends[a.Node] += longer
		other -= longer * float64(k.HostW+k.IdleW*dvfsmodel.Watt(k.GPUs))
		other += (a.End - a.Start) * float64(k.IdleW) * float64(a.GPUCount())
	}
	return run + other
}

// sortBy sorts by a key, ties by number.
func sortBy(list []int, key func(int) float64) {
	for i := 1; i < len(list); i++ {
		for k := i; k > 0 && key(list[k]) < key(list[k-1]); k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
}

// tally counts in how many draws the true saving is in the interval.
type tally struct {
	draws, inside int
	// Sums: of intervals, of true savings, and of these less those that were told.
	width, saved, off float64
}

// count plans a batch of a lab by models fitted to so many settings, and looks at what
// it truly saves.
func (c *tally) count(tb testing.TB, l *lab, settings int, noise float64, power bool, policyText string) {
	tb.Helper()
	workloads := l.workloads[:labWorkloads]
	models := l.fit(tb, workloads, settings, noise)
	b := l.batch(tb, 30, workloads, power)
	r := l.plan(tb, b, models, false, policyText)
	s := planreport.Summarise(r)
	if s.SavingInterval == nil {
		tb.Fatal("no interval")
	}
	plan := l.energy(tb, r, b, r.Plan)
	before := l.energy(tb, r, b, r.Reference)
	c.add(1-plan/before, s.Saving(), s.SavingInterval)
}

func (c *tally) add(truth, told float64, between *planreport.Interval) {
	c.draws++
	if between.Low <= truth && truth <= between.High {
		c.inside++
	}
	c.width += between.High - between.Low
	c.saved += truth
	c.off += truth - told
}

func (c *tally) String() string {
	n := float64(c.draws)
	return fmt.Sprintf("%d of %d inside, intervals of %.4f, savings of %.4f, off by %.4f", c.inside, c.draws,
		c.width/n, c.saved/n, c.off/n)
}

// report says it as a benchmark does.
func (c *tally) report(b *testing.B) {
	b.Helper()
	n := float64(c.draws) / 100
	b.ReportMetric(float64(c.inside)/n, "%inside")
	b.ReportMetric(c.width/n, "points-wide")
	b.ReportMetric(c.off/n, "points-off")
}

// TestTheIntervalHoldsTheTrueSaving fits models to noisy measurements of known truths,
// plans by them, and looks at what the plan truly saves. Not only is the truth inside, the
// interval is also no wider than it takes.
func TestTheIntervalHoldsTheTrueSaving(t *testing.T) {
	draws := uint64(60)
	if testing.Short() {
		draws = 20
	}
	var c tally
	for seed := range draws {
		c.count(t, newLab(t, seed), 7, 0.02, false, "marginal")
	}
	t.Log(&c)
	if c.inside < c.draws*80/100 || c.width/float64(c.draws) > 0.12 {
		t.Errorf("%v; want 9 of 10, and .12", &c)
	}
}

// BenchmarkSavingIntervals prints how often the interval holds the true saving: of drawn
// workloads, and of measured ones.
func BenchmarkSavingIntervals(b *testing.B) {
	const draws = 200
	for _, c := range []struct {
		settings int
		noise    float64
		power    bool
		policy   string
	}{
		{5, 0.02, false, "marginal"},
		{7, 0.02, false, "marginal"},
		{9, 0.02, false, "marginal"},
		{7, 0.05, false, "marginal"},
		{7, 0.01, true, "marginal"},
		{7, 0.02, false, "edl-align"},
	} {
		b.Run(fmt.Sprintf("drawn-%d-settings-noise-%v-power-%v-%s", c.settings, c.noise, c.power, c.policy),
			func(b *testing.B) {
				for b.Loop() {
					var sum tally
					for seed := range uint64(draws) {
						sum.count(b, newLab(b, seed), c.settings, c.noise, c.power, c.policy)
					}
					sum.report(b)
				}
			})
	}
	for _, c := range []struct {
		files, models []string
	}{
		{[]string{"v100_2022.csv", "gtx1080ti.csv"}, []string{"V100-2022", "GTX1080Ti"}},
		{[]string{"gtx1080ti.csv", "rtx2070s.csv"}, []string{"GTX1080Ti", "RTX2070S"}},
		{[]string{"gtx980_high.csv", "gtx980_low.csv"}, []string{"GTX980", "GTX980-low"}},
		{[]string{"v100.csv", "rtx2070s.csv"}, []string{"V100", "RTX2070S"}},
	} {
		for _, settings := range []int{6, 8, 100} {
			b.Run(fmt.Sprintf("measured-%s-%s-%d-settings", c.models[0], c.models[1], settings),
				func(b *testing.B) {
					for b.Loop() {
						var sum tally
						for seed := range uint64(draws) {
							sum.count(b, measuredLab(b, seed, c.files, c.models), settings, 0,
								false, "marginal")
						}
						sum.report(b)
					}
				})
		}
	}
}

// countPrior plans jobs of workloads without a model beside such as have one, and looks at
// what those truly save, and how many of them end when they are said to, or before.
func (c *tally) countPrior(tb testing.TB, l *lab, known, settings int, noise float64) (jobs, inTime int) {
	tb.Helper()
	models := l.fit(tb, l.workloads[:known], settings, noise)
	b := l.batch(tb, 30, l.workloads, true)
	r := l.plan(tb, b, models, true, "marginal")
	s := planreport.Summarise(r)
	taken, before := 0.0, 0.0
	for i := range r.Plan.Assignments {
		a, o := &r.Plan.Assignments[i], &r.Problem.Tasks[i].Options[r.Plan.Assignments[i].Option]
		if !o.Prior {
			continue
		}
		def := l.def(tb, b.Jobs[i].Workload, o.Model)
		at := l.truth[[2]string{b.Jobs[i].Workload, o.Model}](a.Point.Core, a.Point.Mem)
		seconds := b.Jobs[i].Measured[0].Runtime * at.Time / def.Time
		taken += seconds * float64(at.Power) * float64(o.GPUs)
		before += b.Jobs[i].Measured[0].Runtime * float64(def.Power) * float64(o.GPUs)
		jobs++
		if seconds <= (a.End-a.Start)*(1+1e-9) {
			inTime++
		}
	}
	if jobs > 0 {
		c.add(1-taken/before, s.Prior.Saving, s.Prior.Between)
	}
	return jobs, inTime
}

// TestJobsWithoutAModelSaveWhatIsTold draws workloads of which some have a model.
func TestJobsWithoutAModelSaveWhatIsTold(t *testing.T) {
	draws := uint64(60)
	if testing.Short() {
		draws = 20
	}
	var c tally
	jobs, inTime := 0, 0
	for seed := range draws {
		n, k := c.countPrior(t, newLab(t, seed), 6, 9, 0.01)
		jobs, inTime = jobs+n, inTime+k
	}
	t.Logf("%v; %d of %d jobs in time", &c, inTime, jobs)
	if c.draws < int(draws) || c.inside < c.draws*80/100 || inTime < jobs*92/100 {
		t.Errorf("%v; %d of %d jobs in time; want 9 of 10, and 19 of 20", &c, inTime, jobs)
	}
	if off := math.Abs(c.off / float64(c.draws)); off > 0.02 {
		t.Errorf("savings are off by %.3f in the mean", off)
	}
}

// BenchmarkPriorSavings prints the same of measured workloads, half of which have a model.
func BenchmarkPriorSavings(b *testing.B) {
	for _, c := range []struct{ file, model string }{
		{"v100_2022.csv", "V100-2022"},
		{"v100.csv", "V100"},
		{"gtx1080ti.csv", "GTX1080Ti"},
		{"rtx2070s.csv", "RTX2070S"},
		{"gtx980_high.csv", "GTX980"},
	} {
		b.Run(c.model, func(b *testing.B) {
			for b.Loop() {
				var sum tally
				jobs, inTime := 0, 0
				for seed := range uint64(200) {
					l := measuredLab(b, seed, []string{c.file}, []string{c.model})
					n, k := sum.countPrior(b, l, len(l.workloads)/2, 100, 0)
					jobs, inTime = jobs+n, inTime+k
				}
				sum.report(b)
				b.ReportMetric(float64(inTime)/float64(jobs)*100, "%in-time")
				b.ReportMetric(sum.saved/float64(sum.draws)*100, "%saved")
			}
		})
	}
}
