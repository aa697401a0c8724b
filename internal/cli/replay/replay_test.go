package replay

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/catalog"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// v100 returns the clocks of a GPU model.
func v100(t *testing.T) join.Hardware {
	t.Helper()
	h, err := catalog.New(config.BuiltinProfiles(), nil, nil).Hardware("V100")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestADrawnResponseIsExactAtDefaultClocksAndNeverBetterForFreeAtLowerOnes(t *testing.T) {
	h := v100(t)
	prior, err := pooled.NewResponsePrior(h.Table.Base())
	if err != nil {
		t.Fatal(err)
	}
	const power = 250
	for seed := range uint64(200) {
		m, err := prior.Model(power, (&pooled.ResponseDraw{Seed: seed}).Weights("ada\x00train", "V100"))
		if err != nil {
			t.Fatal(err)
		}
		at := h.Default.Scaling
		if time, watts := m.Time(at.Fc, at.Fm), float64(m.Power(at)); math.Abs(time-1) > 1e-9 ||
			math.Abs(watts-power) > 1e-9*power {
			t.Fatalf("seed %d: %v s and %v W at default clocks", seed, time, watts)
		}
		for _, at := range h.Table.Points() {
			s := at.Scaling
			if s.Fc <= 1 && s.Fm <= 1 && (m.Time(s.Fc, s.Fm) < 1 || m.Power(s) > power*(1+1e-9)) {
				t.Fatalf("seed %d: %v s and %v W at %+v", seed, m.Time(s.Fc, s.Fm), m.Power(s), s)
			}
		}
	}
}

// planning returns a history on two nodes with 4 V100 each, before any job.
func planning(t *testing.T) *historyReplay {
	t.Helper()
	c, err := config.Load(strings.NewReader("[cluster]\nname = \"lab\"\n[[cluster.nodes]]\nname = \"n\"\n"+
		"gpu_model = \"V100\"\ngpus = 4\ncount = 2\n"), "lab.toml", config.BuiltinProfiles())
	if err != nil {
		t.Fatal(err)
	}
	cluster := c.Cluster()
	return &historyReplay{
		setup: &setup.Setup{
			Config: c,
		},
		kinds:   make(map[string]*jobKind),
		unnamed: join.NewUnnamed(&cluster, "", nil),
		limits:  joblog.NewPowerLimits(nil),
	}
}

func TestAPastJobOnSeveralNodesStartsOnThemTogether(t *testing.T) {
	for name, c := range map[string]struct {
		gpus, nodes float64
		want        []int // GPUs of each task
		on          int   // nodes of it; 0: one
	}{
		"one node":               {4, 1, []int{4}, 0},
		"two nodes":              {8, 2, []int{8}, 2},
		"uneven":                 {3, 2, []int{2, 1}, 0},
		"too wide":               {8, 1, nil, 0},
		"too many nodes":         {3, 3, nil, 0},
		"nodes without":          {1, 3, []int{1}, 0},
		"unknown nodes":          {2, 0, []int{2}, 0},
		"unknown nodes, several": {8, 0, []int{8}, 2},
		"unknown nodes, uneven":  {7, 0, nil, 0},
	} {
		h, batch := planning(t), &queue.Batch{}
		begin := time.Date(2025, 7, 1, 9, 0, 0, 0, time.UTC)
		h.past = []record.HistoryJob{{
			JobID: "7", Submitted: begin, Started: begin, Ended: begin.Add(100), State: record.Completed,
			GPUs: live.Known(c.gpus), Nodes: live.Known(c.nodes),
		}}
		cluster := h.setup.Config.Cluster()
		h.add(batch, &cluster, 0)
		got := make([]int, 0, len(batch.Jobs))
		for i := range batch.Jobs {
			got = append(got, batch.Jobs[i].GPUs[0].Count)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] || batch.Jobs[i].Nodes != c.on {
				t.Errorf("%s: %v on %d nodes, want %v on %d", name, got, batch.Jobs[i].Nodes, c.want, c.on)
			}
		}
	}
}

func TestTheMiddleOfAnIntervalLiesWithinIt(t *testing.T) {
	i := report.IntervalOf(21, func(draw int) float64 { return float64(20 - draw) })
	if i != (report.Interval{Value: 10, Low: 1, High: 19}) {
		t.Errorf("got %+v", i)
	}
	if i := report.IntervalOf(3, func(int) float64 { return math.NaN() }); i != (report.Interval{}) {
		t.Errorf("nothing of nothing: %+v", i)
	}
}

func TestEnergyOfAWorkloadIsThatOfItsJobs(t *testing.T) {
	h := planning(t)
	h.learning = 0
	for i := range 3 {
		begin := time.Date(2025, 7, 1, 9, 0, 0, 0, time.UTC)
		h.past = append(h.past, record.HistoryJob{
			JobID: "7", Submitted: begin, Started: begin, Ended: begin.Add(3600e9), State: record.Completed,
			User: "ada", Name: []byte("train"),
			GPUs: live.Known(2), Nodes: live.Known(1), EnergyJ: live.Known(float64(i+1) * 1e6),
		})
	}
	h.setup.Batch = &queue.Batch{}
	cluster := h.setup.Config.Cluster()
	for i := range h.past {
		h.add(h.setup.Batch, &cluster, i)
	}
	p, err := h.problemFor(nil)
	if err != nil {
		t.Fatal(err)
	}
	var all dvfsmodel.Joule
	for i := range p.Tasks {
		o := &p.Tasks[i].Options[0]
		all += o.Response.Default().Energy * dvfsmodel.Joule(o.GPUs)
	}
	if math.Abs(float64(all)/6e6-1) > 1e-9 {
		t.Errorf("%v J at default clocks, want those of the log", all)
	}
}

// Numbered names are of one workload, as in an audit: its first jobs teach it, and jobs without energy take
// its mean power, at default clocks or not.
func TestNumberedJobsAreOneWorkload(t *testing.T) {
	h := planning(t)
	h.learning, h.name, h.terminal = 3, "numbered.csv", &terminal.Terminal{}
	for i := range 30 {
		begin := time.Date(2025, 7, 1, i, 0, 0, 0, time.UTC)
		p := record.HistoryJob{
			JobID: "7", Submitted: begin, Started: begin, Ended: begin.Add(time.Hour), State: record.Completed,
			User: "ada", Name: fmt.Appendf(nil, "md_run_%d", i), GPUs: live.Known(1),
			EnergyJ: live.Known(200 * 3600.0),
		}
		if i == 0 {
			p.Name = []byte("md_run")
		}
		if i%5 == 1 {
			p.EnergyJ = live.Number{}
		}
		if i == 6 {
			p.State = string(slurm.Timeout)
		}
		h.past = append(h.past, p)
	}
	if err := h.join(cli.NewContext(nil, flag.NewFlagSet("", flag.ContinueOnError), nil)); err != nil {
		t.Fatal(err)
	}
	if l := h.excluded; l.Learning != 3 || l.PriorKinds != 1 || l.PriorJobs != 26 || l.NoPower != 6 {
		t.Errorf("%+v", l)
	}
	for i := range h.setup.Problem.Tasks {
		watts := h.setup.Problem.Tasks[i].Options[0].Response.Default().Power
		if math.Abs(float64(watts)-200) > 1e-6 {
			t.Errorf("job %d takes %v W at default clocks, want the mean of its kind", i, watts)
		}
	}
	r := HistoryReport{Jobs: 1447, Learning: 3, Left: historyExclusions{Learning: 1002}}
	if text := r.workloadsText(); !strings.Contains(text, "1,002 of 1,447 ran at default clocks to learn") {
		t.Error(text)
	}
}

func TestTheHeadOfAReplaySaysWhatLowerClocksRanOverLimitsAndWhatWasNotPlaced(t *testing.T) {
	r := &HistoryReport{Scale: 1, LoggedWaitS: 1803, Policies: []historyPolicy{
		{Policy: "baseline", MeanWait: report.Interval{Value: 884_203}},
		{Policy: "constant", NotPlaced: 27, NotPlacedJobs: []string{"7", "9"}},
		{Policy: "edl", OverLimit: report.Interval{Value: 200, Low: 84, High: 242}},
	}}
	text := r.headText()
	for _, want := range []string{
		"Cluster     jobs wait far longer than in the log: 245:36:43 at default clocks, 0:30:03 by the log\n",
		"Waiting     0:30:03 on average by the log\n",
		"Limits      jobs run over their time limits by lower clocks: 200 (84 to 242) under edl; " +
			"jobs not placed, so that savings are of unequal work: 27 under constant (7, 9 and 25 more)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q isn't in\n%s", want, text)
		}
	}
	if lead := r.verdict(&r.Policies[2]); !strings.Contains(lead,
		" Limits: jobs run over their time limits") {
		t.Error(lead)
	}
}
