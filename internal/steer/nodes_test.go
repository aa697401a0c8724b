package steer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func TestNodesThatDrawLessGetLowerWeights(t *testing.T) {
	w := newWorld()
	w.settings.Live.Weights = true
	w.settings.Live.Modes = map[string]live.Mode{"advise": live.Advise, "observe": live.Observe}
	w.node("t1", "t4", "gpu")
	w.node("a1", "a100", "gpu")
	w.node("v1", "", "gpu").Features = []string{"rack7", "V100"}
	w.node("x1", "unheard-of", "gpu")
	w.node("c1", "", "gpu").Gres = nil
	w.node("o1", "a100", "gpu", "observe")
	w.node("d1", "a100", "gpu", "advise")
	w.nodes["a1"].Weight = 100
	s := w.open(t)
	if r := step(t, s); r.Set != 2 {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]uint32{
		"t1": 1, "v1": 2, "a1": 102, "x1": 1, "c1": 1,
		"o1": 1, "d1": 1,
	} {
		if got := w.nodes[name].Weight; got != want {
			t.Errorf("%s: weight %d, want %d", name, got, want)
		}
	}
	if st := s.Status(); len(st.Advice) != 1 || st.Advice[0].Node != "d1" ||
		!strings.HasPrefix(st.Advice[0].Text, "weight 3 instead of 1") || st.Weights != 2 {
		t.Errorf("%+v", st)
	}
	w.nodes["a1"].Weight, w.nodes["v1"].Weight = 100, 55 // scontrol reconfigure; an administrator
	if r := step(t, s); r.Set != 1 || w.nodes["a1"].Weight != 102 || w.nodes["v1"].Weight != 55 {
		t.Errorf("%+v, a1 %d, v1 %d", r, w.nodes["a1"].Weight, w.nodes["v1"].Weight)
	}
	if st := s.Status(); len(st.Notes) != 1 ||
		!strings.Contains(st.Notes[0], "weight of node v1 was moved by someone else") {
		t.Errorf("%q", st.Notes)
	}
	w.settings.Live.Weights = false
	if r := step(t, s); r.Undone != 1 || w.nodes["a1"].Weight != 100 || w.nodes["v1"].Weight != 55 {
		t.Errorf("%+v, a1 %d, v1 %d", r, w.nodes["a1"].Weight, w.nodes["v1"].Weight)
	}
}

// sleeper returns a cluster of idle nodes whose nodes may sleep after a minute.
func sleeper(names ...string) *world {
	w := newWorld()
	w.saving, w.settings.Live.SleepAfter, w.settings.Live.SleepLearn = true, 60, false
	for _, name := range names {
		w.node(name, "v100", "gpu")
	}
	return w
}

// asleep returns the nodes that sleep.
func (w *world) asleep() []string {
	var names []string
	for name, n := range w.nodes {
		if n.State.IsPoweredDown() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Counts of other things are no GPUs, and GPUs of one model may be listed in several parts.
func TestTheNodeThatDrawsMostSleepsFirstHoweverItsGPUsAreListed(t *testing.T) {
	gpus := func(counts ...int64) (list []slurm.Gres) {
		for _, n := range counts {
			list = append(list, slurm.Gres{Name: "gpu", Type: "v100", Count: n})
		}
		return list
	}
	shards := slurm.Gres{Name: "shard", Count: 64}
	for _, c := range []struct{ most, less []slurm.Gres }{
		{gpus(5), gpus(4)},
		{gpus(4, 2), gpus(4)},
		{gpus(2, 4), gpus(4)},
		{gpus(3, 1, 1), gpus(4)},
		{gpus(5), append(gpus(4), shards)},
		{gpus(1, 5), append(gpus(2, 2), shards)},
	} {
		for _, first := range []string{"n1", "n2"} {
			w := sleeper("n1", "n2")
			for name, n := range w.nodes {
				if n.Gres = c.less; name == first {
					n.Gres = c.most
				}
			}
			s := w.open(t)
			step(t, s)
			w.now = w.now.Add(70 * time.Second)
			if step(t, s); !slices.Equal(w.asleep(), []string{first}) {
				t.Errorf("%+v beside %+v: %q sleep, want %q", c.most, c.less, w.asleep(), first)
			}
		}
	}
}

func TestIdleNodesSleepButOneOfEachPartitionStaysAwake(t *testing.T) {
	w := sleeper("n1", "n2", "n3")
	w.node("m1", "v100", "gpu", "other")
	w.node("p1", "v100", "gpu").State.Flags = []string{"PLANNED"}
	w.node("d1", "v100", "gpu").State.Flags = []string{"DRAIN"}
	w.node("b1", "v100", "gpu").CPUsInUse = 1
	s := w.open(t)
	step(t, s)
	if got := w.asleep(); got != nil {
		t.Errorf("%q sleep at once", got)
	}
	w.now = w.now.Add(30 * time.Second)
	j := w.job(1, 10, 100, "")
	j.State.Base, j.Nodes, j.End = slurm.Completed, []string{"n2"}, w.now // it ran on n2 between two steps
	w.now = w.now.Add(40 * time.Second)
	step(t, s)
	if got := w.asleep(); !slices.Equal(got, []string{"n1", "n3"}) {
		t.Errorf("%q sleep", got)
	}
	w.now = w.now.Add(time.Minute)
	// m1 is other's last.
	if r := step(t, s); r != (steer.StepReport{Set: 1}) ||
		!slices.Equal(w.asleep(), []string{"n1", "n2", "n3"}) {
		t.Errorf("%+v, %q sleep", r, w.asleep())
	}
	w.now = w.now.Add(time.Minute)
	if r := step(t, s); r != (steer.StepReport{}) {
		t.Errorf("%+v, %q sleep", r, w.asleep())
	}
	if st := s.Status(); st.Asleep != len(w.asleep()) {
		t.Errorf("%+v, %q sleep", st, w.asleep())
	}
	w.nodes["n1"].State.Flags = nil // Slurm woke it for a job
	w.nodes["n1"].State.Base = "ALLOCATED"
	step(t, s)
	if st := s.Status(); st.Asleep != len(w.asleep()) {
		t.Errorf("%+v, %q sleep", st, w.asleep())
	}
	if r, err := s.UndoAll(t.Context()); err != nil || len(w.asleep()) != 0 || r.Waiting != 0 {
		t.Errorf("%+v, %v, %q sleep", r, err, w.asleep())
	}
}

// rest lets time pass, with steps.
func (w *world) rest(tb testing.TB, s *steer.Steerer, d time.Duration) {
	tb.Helper()
	for end := w.now.Add(d); w.now.Before(end); step(tb, s) {
		w.now = w.now.Add(2 * time.Minute)
	}
}

// As many nodes as the budget lacks watts of sleep at once, whatever their rest, the last one of a partition
// too, and no more while they go off.
func TestWhereABudgetLacksWattsIdleNodesSleepAtOnce(t *testing.T) {
	w := sleeper("n1", "n2", "n3", "n4")
	w.node("m1", "v100", "own")
	lacks := map[string]dvfsmodel.Watt{}
	w.settings.Short = func(node string) dvfsmodel.Watt { return lacks[node] }
	s := w.open(t)
	step(t, s)
	if got := w.asleep(); len(got) != 0 {
		t.Fatalf("%v sleep before they have rested", got)
	}
	board, err := w.settings.Profiles.Lookup("V100")
	if err != nil {
		t.Fatal(err)
	}
	idle := (board.IdleW + board.HostW) * dvfsmodel.Watt(w.nodes["n1"].GPUCount())
	for name := range w.nodes {
		lacks[name] = idle * 3 / 2
	}
	step(t, s)
	first := w.asleep()
	if len(first) != 2 {
		t.Errorf("%v sleep, want two", first)
	}
	for _, name := range first { // it takes a while
		w.nodes[name].State.Flags = []string{"POWERING_DOWN"}
	}
	if r := step(t, s); r.Set != 0 {
		t.Errorf("%+v while two go off", r)
	}
	for _, name := range first {
		w.nodes[name].State.Flags = []string{"POWERED_DOWN"}
	}
	clear(lacks)
	lacks["m1"] = idle / 2
	step(t, s)
	if got := w.asleep(); !slices.Contains(got, "m1") {
		t.Errorf("%v sleep, want the only node of a partition too", got)
	}
	w.settings.Live.SleepAfter = 0
	step(t, s)
	if got := w.asleep(); len(got) != 0 {
		t.Errorf("%v sleep where the site has no node sleep", got)
	}
}

func TestNoNodeSleepsWhileAJobWaitsForOne(t *testing.T) {
	w := sleeper("n1", "n2", "n3")
	j := w.job(1, 10, 100, "")
	j.Partition = "other,gpu"
	s := w.open(t)
	step(t, s)
	w.rest(t, s, time.Hour)
	if got := w.asleep(); got != nil {
		t.Errorf("%q sleep", got)
	}
	j.Eligible = w.now.Add(time.Hour)
	step(t, s)
	if got := w.asleep(); !slices.Equal(got, []string{"n1", "n2"}) {
		t.Errorf("%q sleep", got)
	}
}

func TestWithoutPowerSavingNoNodeSleepsAndItIsSaid(t *testing.T) {
	w := sleeper("n1", "n2")
	w.saving = false
	s := w.open(t)
	step(t, s)
	w.now = w.now.Add(2 * time.Minute)
	for range 3 {
		if r := step(t, s); r != (steer.StepReport{}) {
			t.Errorf("%+v", r)
		}
	}
	if st := s.Status(); len(st.Notes) != 1 ||
		!strings.Contains(st.Notes[0], slurm.ErrNoPowerSaving.Error()) {
		t.Errorf("%q", st.Notes)
	}
	w.settings.Live.Mode, w.saving = live.Advise, true
	w.rest(t, s, time.Hour)
	if st := s.Status(); len(st.Advice) != 1 || st.Advice[0].Kind != steer.KindSleep ||
		st.Advice[0].Node != "n1" || len(w.asleep()) != 0 {
		t.Errorf("%+v", st)
	}
}

func TestWhatANodeDidWhileNobodyLookedIsntTakenForIdleness(t *testing.T) {
	w := sleeper("n1", "n2")
	s := w.open(t)
	step(t, s)
	w.now = w.now.Add(time.Hour)
	if r := step(t, s); r.Set != 0 {
		t.Errorf("%+v", r)
	}
	w.now = w.now.Add(time.Minute)
	if r := step(t, s); r.Set != 1 {
		t.Errorf("%+v", r)
	}
}

func TestANodeThatHasJustBootedHasJustBecomeIdle(t *testing.T) {
	w := sleeper("n1", "n2")
	s := w.open(t)
	step(t, s)
	w.now = w.now.Add(30 * time.Second)
	w.nodes["n1"].Boot, w.nodes["n2"].Boot = w.now, w.now
	w.now = w.now.Add(40 * time.Second)
	if r := step(t, s); r.Set != 0 {
		t.Errorf("%+v", r)
	}
}

func TestNodesThatSlurmConfKeepsAwakeStayAwake(t *testing.T) {
	for _, c := range []struct {
		name   string
		exempt slurm.PowerSaving
		want   []string // asleep
		note   string
	}{
		{"nothing", slurm.PowerSaving{}, []string{"n1", "n2", "n3"}, ""},
		{
			"nodes",
			slurm.PowerSaving{Awake: []slurm.AwakeNodes{
				{Nodes: []string{"n1"}}, {Nodes: []string{"n3", "elsewhere"}},
			}},
			[]string{"n2", "n4"},
			"SuspendExcNodes",
		},
		{
			"some of some", slurm.PowerSaving{
				Awake: []slurm.AwakeNodes{{Nodes: []string{"n1", "n2", "n3"}, Idle: 2}},
			}, []string{"n1", "n4"}, "",
		},
		{"a partition", slurm.PowerSaving{AwakeParts: []string{"gpu"}}, nil, "SuspendExcParts"},
		{
			"a state",
			slurm.PowerSaving{AwakeFlags: []string{"CLOUD"}},
			[]string{"n1", "n3", "n4"},
			"SuspendExcStates",
		},
		{"a node's SuspendTime", slurm.PowerSaving{Timed: true}, []string{"n1", "n2", "n4"}, "SuspendTime"},
		{"unread", slurm.PowerSaving{UnreadReason: "odd"}, nil, "odd"},
	} {
		w := sleeper("n1", "n2", "n3", "n4")
		w.exempt = c.exempt
		w.nodes["n2"].State.Flags = []string{"CLOUD"}
		w.nodes["n3"].NeverSuspends = true
		s := w.open(t)
		step(t, s)
		w.rest(t, s, 10*time.Minute)
		if got := w.asleep(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q sleep, want %q", c.name, got, c.want)
		}
		if notes := strings.Join(s.Status().Notes, "\n"); !strings.Contains(notes, c.note) ||
			c.note == "" && notes != "" {
			t.Errorf("%s: notes %q, want %q", c.name, notes, c.note)
		}
		// Whom the site names later is woken.
		w.exempt = slurm.PowerSaving{Awake: []slurm.AwakeNodes{{Nodes: []string{"n1", "n2", "n3", "n4"}}}}
		w.rest(t, s, 2*time.Minute)
		if got := w.asleep(); got != nil {
			t.Errorf("%s: %q sleep, which slurm.conf keeps awake by now", c.name, got)
		}
	}
}

// needOf is that a plan needs a node of the kind of another one.
func needOf(w *world, node string, at time.Time) live.NodeNeed {
	n := w.nodes[node]
	return live.NodeNeed{
		GPUModel: "V100", GPUs: int(n.Gres[0].Count), At: at,
		Partitions: slices.Sorted(slices.Values(n.Partitions)),
	}
}

// TestAPlanKeepsAwakeWhatItNeedsSoonAndNoMore: though a job waits, nodes beyond the plan's sleep.
func TestAPlanKeepsAwakeWhatItNeedsSoonAndNoMore(t *testing.T) {
	for soon, want := range map[int][]string{
		0: {"n1", "n2", "n3"}, // n4 is the one that always stays awake
		2: {"n1", "n2"},
		4: nil,
	} {
		w := sleeper("n1", "n2", "n3", "n4")
		w.job(1, 10, 100, "").Partition = "gpu"
		w.settings.Live.Plan.Mode = config.PlanEnforce
		plan := func() {
			w.rankAs("edl", 1)
			w.settings.Ranking.GPUModel = map[slurm.JobID]string{1: "V100"}
			w.settings.Ranking.Needs = nil
			for i := range 4 {
				at := w.now.Add(24 * time.Hour)
				if i < soon {
					at = w.now.Add(10 * time.Second)
				}
				w.settings.Ranking.Needs = append(w.settings.Ranking.Needs, needOf(w, "n1", at))
			}
		}
		plan()
		s := w.open(t)
		step(t, s)
		for range 30 {
			w.now = w.now.Add(2 * time.Minute)
			plan()
			step(t, s)
		}
		if got := w.asleep(); !slices.Equal(got, want) {
			t.Errorf("%d nodes are needed soon: %q sleep, want %q", soon, got, want)
		}
		w.settings.Live.Plan.Mode = config.PlanObserve
		if _, err := s.UndoAll(t.Context()); err != nil || len(w.asleep()) != 0 {
			t.Errorf("undone: %v, %q sleep", err, w.asleep())
		}
	}
}

// A plan's nodes are those of its partitions: alike ones elsewhere don't stand in for them.
func TestNodesThatAPlanNeedsAreOfItsPartition(t *testing.T) {
	w := newWorld()
	w.saving, w.settings.Live.SleepAfter, w.settings.Live.SleepLearn = true, 60, false
	w.settings.Live.Plan.Mode, w.settings.Live.WakeWait = config.PlanEnforce, 1e6
	for name, partition := range map[string]string{"a1": "a", "a2": "a", "b1": "b", "b2": "b"} {
		w.node(name, "v100", partition)
	}
	need := func() {
		w.rankAs("edl")
		w.settings.Ranking.GPUModel = map[slurm.JobID]string{}
		for _, node := range []string{"a1", "a2"} {
			w.settings.Ranking.Needs = append(w.settings.Ranking.Needs, needOf(w, node, w.now.Add(30*time.Second)))
		}
	}
	need()
	s := w.open(t)
	step(t, s)
	w.now = w.now.Add(2 * time.Minute)
	need()
	step(t, s)
	if got := w.asleep(); !slices.Equal(got, []string{"b1"}) { // one of each partition stays awake
		t.Errorf("%q sleep", got)
	}
}
