package join_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/queue"
)

// boards is a catalog of GPU models that no workload has a model on, with their highest power limits.
type boards map[string]dvfsmodel.Watt

func (b boards) Hardware(gpuModel string) (join.Hardware, error) {
	limit, ok := b[gpuModel]
	if !ok {
		return join.Hardware{}, errors.New("unknown GPU model " + gpuModel)
	}
	wide := dvfsmodel.WideRange()
	return join.Hardware{
		Name: gpuModel, Range: &wide, Default: dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling()},
		Typical: 100, MaxPower: limit, IdlePower: 20,
	}, nil
}

func (boards) Workload(string, string) (dvfsmodel.Response, error) { return nil, nil }

func (boards) CheckWorkload(string) error { return nil }

func (boards) Uncertainty(string, string) *dvfsmodel.Uncertainty { return nil }

var fourBoards = boards{"A": 400, "B": 700, "C": 0, "D": 300}

// clusterOf has a class of nodes of eight GPUs for each GPU model.
func clusterOf(models ...string) *planner.Cluster {
	c := &planner.Cluster{}
	for _, model := range models {
		c.Classes = append(c.Classes, planner.NodeClass{Name: model, Model: model, GPUs: 8})
	}
	return c
}

// joinBatch joins the jobs of a CSV file on nodes of GPU models, after the batch was changed.
func joinBatch(
	t *testing.T, text string, change func(*queue.Batch), models ...string,
) ([]planner.Task, []error, error) {
	t.Helper()
	batch, err := queue.Read(strings.NewReader(text), "jobs.csv", queue.Auto)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(batch)
	}
	return join.Tasks(batch, clusterOf(models...), fourBoards, join.Margins{})
}

func groupOf(warnings []error, kind queue.WarningKind) *queue.WarningGroup {
	groups := queue.GroupWarnings(warnings)
	for i := range groups {
		if groups[i].Kind == kind {
			return &groups[i]
		}
	}
	return &queue.WarningGroup{}
}

const timedElsewhere = "id,runtime_s,power_w,runtime_gpu_model,gpus\n" +
	"a,80,90,A,B:1;C:1\nb,30,90,B,\nc,50,90,D,\n"

func TestRunTimesOfGPUModelsOnWhichTheJobsCannotRunAreRefusedWithTheirNumberAndModels(t *testing.T) {
	_, _, err := joinBatch(t, timedElsewhere, nil, "A", "B", "C")
	wrong, ok := errors.AsType[*join.ElsewhereError](err)
	if !ok || wrong.Jobs != 2 || wrong.Of != 3 || !slices.Equal(wrong.On, []string{"A", "D"}) ||
		!slices.Equal(wrong.Here, []string{"A", "B", "C"}) {
		t.Fatalf("%+v", err)
	}
	const want = "jobs.csv:2:1: 2 of 3 jobs, the first of them a, have their run times on A and D, where they can't " +
		"run here: nothing says how long on A, B or C"
	if wrong.Error() != want {
		t.Errorf("got %s\nwant %s", wrong, want)
	}
}

func TestARunTimeIsTakenElsewhereByStatedSpeedsOrAsTheSameOnAll(t *testing.T) {
	tasks, warnings, err := joinBatch(t, timedElsewhere, func(b *queue.Batch) { b.RunOn(queue.AnyModel) },
		"A", "B", "C")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tasks[0].Options); n != 2 || tasks[0].Options[1].Response.Default().Time != 80 {
		t.Errorf("%+v", tasks[0].Options)
	}
	if g := groupOf(warnings, queue.WarnRunTime); g.Count != 2 ||
		!strings.HasPrefix(g.Text(), "2 jobs may run on GPU models on which their run times weren't measured, "+
			`such as jobs.csv:2:1: job "a" says how long it runs on A: as long assumed on B`) {
		t.Errorf("%+v", g)
	}
	speeds, err := queue.ParseSpeeds("A=1, B=2,D=0.5")
	if err != nil {
		t.Fatal(err)
	}
	tasks, warnings, err = joinBatch(t, timedElsewhere, func(b *queue.Batch) { b.Speeds = speeds },
		"A", "B", "C")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]float64{{"B": 40}, {"A": 60, "B": 30}, {"A": 25, "B": 12.5}} {
		got := map[string]float64{}
		for _, o := range tasks[i].Options {
			got[o.Model] = o.Response.Default().Time
			if p := o.Response.Default().Power; p != 90 {
				t.Errorf("%v W on %s, want what is stated elsewhere", p, o.Model)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("job %s: %v, want %v", tasks[i].ID, got, want)
		}
	}
	if g := groupOf(warnings, queue.WarnRunTime); g.Count != 3 {
		t.Errorf("%+v, want a warning of 3 jobs", g)
	}
}

func TestSpeedsThatCannotBeReadAreRefused(t *testing.T) {
	for _, text := range []string{
		"A", "A=", "=1", "A=0", "A=-1", "A=NaN", "A=Inf", "A=1,A=2", "A=1,,B=2", "A=x",
	} {
		if s, err := queue.ParseSpeeds(text); err == nil {
			t.Errorf("%q: %v, want an error", text, s)
		}
	}
	_, _, err := joinBatch(t, "id,runtime_s\na,1\n",
		func(b *queue.Batch) { b.Speeds = []queue.Speed{{Model: "X", Factor: 1}} }, "A")
	if err == nil || !strings.Contains(err.Error(), "speed of X: unknown GPU model X") {
		t.Error(err)
	}
}

// statement is what a drawn job says of itself.
type statement struct {
	on    map[string]float64 // run times by GPU model
	may   []string           // GPU models that it may run on; none: all
	power float64            // W on the GPU models of its run times; 0: not said
}

// knownOn returns the oracle: how long the job takes on GPU models of the cluster, by what it states and by
// what was stated of GPU models.
func (s *statement) knownOn(cluster []string, speeds map[string]float64, same bool) map[string]float64 {
	known, longest := map[string]float64{}, 0.0
	for _, seconds := range s.on {
		longest = math.Max(longest, seconds)
	}
	for _, m := range cluster {
		if len(s.may) > 0 && !slices.Contains(s.may, m) {
			continue
		}
		if seconds, ok := s.on[m]; ok {
			known[m] = seconds
			continue
		}
		for from, seconds := range s.on {
			if speeds[from] > 0 && speeds[m] > 0 {
				known[m] = math.Max(known[m], seconds*speeds[from]/speeds[m])
			}
		}
	}
	if len(known) == 0 && same {
		for _, m := range cluster {
			if len(s.may) == 0 || slices.Contains(s.may, m) {
				known[m] = longest
			}
		}
	}
	return known
}

// drawBatch draws jobs whose run times are of drawn GPU models, as a CSV file.
func drawBatch(r *rand.Rand, all []string) (string, []statement) {
	var b strings.Builder
	b.WriteString("id,gpus")
	for _, m := range all {
		fmt.Fprintf(&b, ",runtime_s.%s,power_w.%s", m, m)
	}
	b.WriteString("\n")
	jobs := make([]statement, 1+r.IntN(6))
	for i := range jobs {
		s := &jobs[i]
		s.on = map[string]float64{}
		for len(s.on) == 0 || r.IntN(3) == 0 {
			s.on[all[r.IntN(len(all))]] = float64(1 + r.IntN(100))
		}
		if r.IntN(3) == 0 {
			s.may = []string{all[r.IntN(len(all))]}
		}
		if r.IntN(2) == 0 {
			s.power = float64(1 + r.IntN(3000))
		}
		gpus := ""
		if len(s.may) > 0 {
			gpus = s.may[0] + ":1"
		}
		fmt.Fprintf(&b, "j%d,%s", i, gpus)
		for _, m := range all {
			seconds, ok := s.on[m]
			switch {
			case !ok:
				b.WriteString(",,")
			case s.power == 0:
				fmt.Fprintf(&b, ",%v,", seconds)
			default:
				fmt.Fprintf(&b, ",%v,%v", seconds, s.power)
			}
		}
		b.WriteString("\n")
	}
	return b.String(), jobs
}

func TestNoJobIsPlannedWhereNothingIsKnownNorWithMorePowerThanABoardHas(t *testing.T) {
	all := []string{"A", "B", "C", "D"}
	r := rand.New(rand.NewPCG(7, 7))
	refused, assumed := 0, 0
	for range 2000 {
		cluster := slices.Clone(all)
		r.Shuffle(len(cluster), func(i, j int) { cluster[i], cluster[j] = cluster[j], cluster[i] })
		cluster = cluster[:1+r.IntN(3)]
		text, jobs := drawBatch(r, all)
		speeds, stated := drawSpeeds(r, all)
		same := r.IntN(4) == 0
		tasks, warnings, err := joinBatch(t, text,
			func(b *queue.Batch) { b.Speeds, b.SameElsewhere = stated, same }, cluster...)
		unknown, elsewhere := 0, 0
		for i := range jobs {
			want := jobs[i].knownOn(cluster, speeds, same)
			unknown += jobs[i].countIf(len(want) == 0 && jobs[i].mayRunOn(cluster))
			elsewhere += jobs[i].countIf(jobs[i].isElsewhere(want))
			if err == nil {
				checkOptions(t, text, &tasks[i], want)
			}
		}
		if unknown > 0 {
			refused++
			if wrong, _ := errors.AsType[*join.ElsewhereError](err); wrong == nil || wrong.Jobs != unknown {
				t.Fatalf("%s: %v, want %d jobs refused", text, err, unknown)
			}
			continue
		}
		assumed += elsewhere
		if g := groupOf(warnings, queue.WarnRunTime); err != nil || g.Count != elsewhere {
			t.Fatalf("%s: %v, %d warned of, want %d", text, err, g.Count, elsewhere)
		}
	}
	if refused < 100 || assumed < 100 {
		t.Errorf("%d refused, %d assumed: too few to mean something", refused, assumed)
	}
}

// drawSpeeds draws how fast some GPU models are, or nothing.
func drawSpeeds(r *rand.Rand, all []string) (speeds map[string]float64, stated []queue.Speed) {
	if r.IntN(2) > 0 {
		return nil, nil
	}
	speeds = map[string]float64{}
	for _, m := range all {
		if r.IntN(3) > 0 {
			speeds[m] = float64(1 + r.IntN(4))
			stated = append(stated, queue.Speed{Model: m, Factor: speeds[m]})
		}
	}
	return speeds, stated
}

// countIf returns one job, or none.
func (*statement) countIf(counts bool) int {
	if counts {
		return 1
	}
	return 0
}

// mayRunOn reports whether the job may run on a GPU model of the cluster.
func (s *statement) mayRunOn(cluster []string) bool {
	return len(s.may) == 0 || slices.Contains(cluster, s.may[0])
}

// isElsewhere reports whether the job is planned where it wasn't measured.
func (s *statement) isElsewhere(known map[string]float64) bool {
	for m := range known {
		if _, measured := s.on[m]; !measured {
			return true
		}
	}
	return false
}

// checkOptions checks run times by GPU model, and that no board uses more than it can.
func checkOptions(t *testing.T, text string, task *planner.Task, want map[string]float64) {
	t.Helper()
	if len(task.Options) != len(want) {
		t.Fatalf("%s: %+v, want %v", text, task.Options, want)
	}
	for _, o := range task.Options {
		at, limit := o.Response.Default(), fourBoards[o.Model]
		if limit == 0 {
			limit = 2000
		}
		if math.Abs(at.Time-want[o.Model]) > 1e-9*at.Time || !(at.Power > 0 && at.Power <= limit) {
			t.Fatalf("%s: %s on %s: %v s at %v W, want %v", text, task.ID, o.Model, at.Time, at.Power, want)
		}
	}
}

func TestAPowerThatTheBoardCannotHaveIsTakenForUnknown(t *testing.T) {
	for csv, want := range map[string]string{
		"id,runtime_s,power_w,gpus\na,80,2400,4\n": `job "a" states 2400 W, and a GPU of model A uses 400 W at most: ` +
			"taken for unknown; want the mean power of one GPU",
		"id,runtime_s,power_w,gpus\na,80,1200,4\n": `job "a" states 1200 W, and a GPU of model A uses 400 W at most: ` +
			"taken for unknown; of its 4 GPUs, each would use 300 W: power_w is of one GPU",
		"id,runtime_s,power_w,gpus\na,80,5,4\n": `job "a" states 5 W, and an idle GPU of model A uses 20 W: ` +
			"taken for unknown; want the mean power of one GPU",
		"id,runtime_s,power_w.A,gpus\na,80,0.3,4\n": `job "a" states 0.3 W, and an idle GPU of model A uses 20 W: ` +
			"taken for unknown; want the mean power of one GPU",
		"id,runtime_s,power_w,gpus\na,80,400,4\n": "",
	} {
		tasks, warnings, err := joinBatch(t, csv, nil, "A")
		if err != nil {
			t.Fatal(err)
		}
		g := groupOf(warnings, queue.WarnPowerLimit)
		if want == "" {
			if g.Count > 0 || tasks[0].Options[0].Response.Default().Power != 400 {
				t.Errorf("%s: %v", csv, warnings)
			}
			continue
		}
		if g.Count != 1 || g.Text() != "jobs.csv:2:1: "+want {
			t.Errorf("%s: %v", csv, warnings)
		}
		if at := tasks[0].Options[0]; at.Response.Default().Power != 100 || !at.Assumed {
			t.Errorf("%s: %+v, want a usual power, marked as assumed", csv, at)
		}
	}
}

func TestAJobThatCannotEndWithinItsLimitIsPlannedForIt(t *testing.T) {
	tasks, warnings, err := joinBatch(t,
		"id,runtime_s.A,runtime_s.B,power_w.A,limit_s\na,80,60,200,50\nb,80,60,200,70\nc,80,60,200,\n", nil,
		"A", "B")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range tasks[0].Options {
		if at := o.Response.Default(); at.Time != 50 || math.Abs(float64(at.Energy-at.Power.Over(50))) > 1e-9 ||
			o.Response.MinTime() != 50 {
			t.Errorf("%+v on %s, want the limit", at, o.Model)
		}
	}
	for i, want := range []float64{50, 80, 80} {
		if at := tasks[i].Options[0].Response.Default(); at.Time != want {
			t.Errorf("job %s takes %v s, want %v", tasks[i].ID, at.Time, want)
		}
	}
	if g := groupOf(warnings, queue.WarnKilled); g.Count != 1 || g.Text() != `jobs.csv:2:1: job "a" needs 60 s at the `+
		"fastest clocks, its limit is 50 s: planned for its limit, at which it will be killed" {
		t.Errorf("%v", warnings)
	}
}
