package control

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/slurm"
)

const rackBudget = "[budget]\nmode = \"enforce\"\ncluster_w = 1000\npartitions_w = {gpu = 700}\n" +
	"[budget.nodes_w]\n\"n[1-2]\" = 900\n"

// leasing is a node whose agent takes every lease at once.
type leasing struct {
	name   string
	limits []dvfsmodel.Watt
}

// exchange asks for leases of GPUs of 100 to 300 W, and puts them in force.
func (n *leasing) exchange(r *rig) *epdapi.LeaseAnswer {
	r.t.Helper()
	request := &epdapi.LeaseRequest{Node: n.name}
	for i, limit := range n.limits {
		request.GPUs = append(request.GPUs, epdapi.LeaseGPU{
			UUID: n.name + string(rune('a'+i)), Model: "Tesla V100", Min: 100, Max: 300, InForce: limit, Prior: 300,
			Power: limit, Used: true,
		})
	}
	answer, err := r.Budget.Lease(r.t.Context(), request)
	if err != nil && !errors.Is(err, errUnknownNodes) {
		r.t.Fatal(err)
	}
	for i := range answer.Leases {
		n.limits[i] = answer.Leases[i].Watts
	}
	return &answer
}

func (n *leasing) taken() (watts dvfsmodel.Watt) {
	for _, limit := range n.limits {
		watts += limit + 25 // host_w_per_gpu
	}
	return watts
}

func TestGPUsGetLeasesWithinTheBudgetAndEventsLowerIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.json")
	r := newRig(t, func(o *Options) { o.BudgetEvents = file })
	if got := r.hear(&epdapi.NodeReport{Node: "n1"}); got.Budget {
		t.Error("a node is told of a budget, there is none")
	}
	n1, n2 := &leasing{"n1", []dvfsmodel.Watt{300, 300}}, &leasing{"n2", []dvfsmodel.Watt{300, 300}}
	if got := n1.exchange(r); len(got.Leases) > 0 || got.EveryS < 10 {
		t.Errorf("without a budget: %+v", got)
	}
	r.onSite(rackBudget)
	if got := r.hear(&epdapi.NodeReport{Node: "n1"}); !got.Budget {
		t.Error("a node isn't told of the budget")
	}
	settle := func() dvfsmodel.Watt {
		for range 12 {
			r.clock.move(time.Second)
			n1.exchange(r)
			n2.exchange(r)
		}
		return n1.taken() + n2.taken()
	}
	if got := settle(); math.Abs(float64(got)-900) > 1 {
		t.Errorf("they may take %v W, want all of the least budget, 900", got)
	}
	now := r.clock.read()
	set, err := r.Budget.Set(&epdapi.BudgetEvent{Watts: 600, Until: now.Add(time.Hour), RampS: 60}, "root")
	if err != nil || set.ID == "" || set.Scope != "cluster" || !set.From.Equal(now) {
		t.Fatalf("%+v, %v", set, err)
	}
	if got := settle(); math.Abs(float64(got)-600) > 1 {
		t.Errorf("they may take %v W during the event, want 600", got)
	}
	list := r.Budget.List()
	if len(list.Events) != 1 || len(list.Scopes) != 3 || list.Scopes[0].Budget.Or(0) != 600 {
		t.Errorf("%+v", list)
	}
	if s := list.Scopes[0]; s.GPUs != 4 || s.Slowed != 4 || !(s.Slowdown.Or(0) > 1.1) || s.Measured > 601 {
		t.Errorf("%+v", s)
	}
	again := newRig(t, func(o *Options) { o.BudgetEvents = file })
	if got := again.Budget.List().Events; len(got) != 1 || got[0].ID != set.ID {
		t.Errorf("after a restart: %+v", got)
	}
	if _, err := r.Budget.Cancel(set.ID); err != nil {
		t.Error(err)
	}
	if got := settle(); math.Abs(float64(got)-900) > 1 {
		t.Errorf("they may take %v W after the event was cancelled, want 900", got)
	}
	if _, err := r.Budget.Cancel(set.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("cancelled twice: %v", err)
	}
}

// A controller that has just begun gives no node what nodes of which it hasn't heard may take.
func TestAfterARestartNoNodeGetsWhatOthersHave(t *testing.T) {
	n1, n2 := &leasing{"n1", []dvfsmodel.Watt{180, 180}}, &leasing{"n2", []dvfsmodel.Watt{180, 180}}
	const most = 900
	for name, slurmTells := range map[string]bool{"where Slurm tells of nodes": true, "without Slurm": false} {
		r := newRig(t, func(o *Options) {
			if slurmTells {
				o.Resolve = (&ctld{}).resolve
			}
		})
		r.onSite("[budget]\nmode = \"enforce\"\ncluster_w = 900\n")
		for range 20 {
			r.clock.move(time.Second)
			n1.exchange(r)
			if got := n1.taken() + n2.taken(); got > most {
				t.Fatalf("%s: they may take %v W", name, got)
			}
			if slurmTells {
				continue
			}
			if n2.exchange(r); n1.taken()+n2.taken() > most {
				t.Fatalf("%s: they may take %v W", name, n1.taken()+n2.taken())
			}
		}
		if got := n1.taken() + n2.taken(); !slurmTells && got < most-1 {
			t.Errorf("%s: they may take %v W, want 900", name, got)
		}
	}
}

// A budget that a file lowers later holds from its moment on, and an event lowers it further.
func TestTheClustersBudgetFollowsItsSeries(t *testing.T) {
	r := newRig(t, nil)
	now := r.clock.read()
	file := filepath.Join(t.TempDir(), "hours.csv")
	var rows strings.Builder
	rows.WriteString("time,watts\n")
	for _, step := range []struct {
		after time.Duration
		watts int
	}{{-time.Hour, 2000}, {5 * time.Minute, 600}, {10 * time.Minute, 2000}} {
		fmt.Fprintf(&rows, "%s,%d\n", now.Add(step.after).Format(time.RFC3339Nano), step.watts)
	}
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r.onSite("[budget]\nmode = \"enforce\"\ncluster_w = 900\nseries = " + strconv.Quote(file) + "\n")
	n1, n2 := &leasing{"n1", []dvfsmodel.Watt{300, 300}}, &leasing{"n2", []dvfsmodel.Watt{300, 300}}
	for second := range 15 * 60 {
		r.clock.move(time.Second)
		n1.exchange(r)
		n2.exchange(r)
		taken, most := float64(n1.taken()+n2.taken()), 900.0
		switch {
		case second < 30: // they settle
			continue
		case second >= 5*60-1 && second < 10*60-1:
			most = 600
		}
		if taken > most+1 {
			t.Fatalf("after %d s nodes may take %v W, the budget is %v", second+1, taken, most)
		}
		if listed := r.Budget.List().Scopes[0].Budget.Or(0); second%60 == 30 && listed != most {
			t.Errorf("after %d s the budget is listed as %v W, want %v", second+1, listed, most)
		}
		if second == 4*60 || second == 14*60 {
			if taken < 890 {
				t.Errorf("after %d s nodes may take %v W of 900", second+1, taken)
			}
		}
	}
}

func TestEventsThatCantBeAreRefusedWithWhatIsWanted(t *testing.T) {
	r := newRig(t, nil)
	now := r.clock.read()
	fine := epdapi.BudgetEvent{Watts: 600, Until: now.Add(time.Hour)}
	refused := func(change func(*epdapi.BudgetEvent), want string) {
		t.Helper()
		e := fine
		change(&e)
		if _, err := r.Budget.Set(&e, "root"); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", e, err, want)
		}
	}
	refused(func(*epdapi.BudgetEvent) {}, "has no [budget]")
	r.onSite(rackBudget)
	refused(func(e *epdapi.BudgetEvent) { e.Scope = "rack" }, "want cluster, gpu, n[1-2]")
	refused(func(e *epdapi.BudgetEvent) { e.Watts = 0 }, "want more than 0")
	refused(func(e *epdapi.BudgetEvent) { e.Watts = dvfsmodel.Watt(math.NaN()) }, "want more than 0")
	refused(func(e *epdapi.BudgetEvent) { e.Until = now.Add(-time.Hour) }, "want a time after")
	refused(func(e *epdapi.BudgetEvent) {
		e.From, e.Until = now.Add(-2*time.Hour), now.Add(-time.Hour)
	}, "was over")
	refused(func(e *epdapi.BudgetEvent) {
		e.From, e.Until = now.AddDate(2, 0, 0), now.AddDate(3, 0, 0)
	}, "within a year")
	refused(func(e *epdapi.BudgetEvent) { e.RampS = -1 }, "a ramp of")
	for _, g := range []epdapi.LeaseGPU{
		{Min: -1}, {Min: 200, Max: 100}, {Power: dvfsmodel.Watt(math.NaN())}, {Max: 1e9},
	} {
		request := &epdapi.LeaseRequest{Node: "n1", GPUs: []epdapi.LeaseGPU{g}}
		if _, err := r.Budget.Lease(t.Context(), request); !errors.Is(err, ErrRequest) {
			t.Errorf("%+v: %v", g, err)
		}
	}
}

func TestABudgetThatIsOnlyWatchedGivesNoLease(t *testing.T) {
	r := newRig(t, nil)
	r.onSite("[budget]\ncluster_w = 500\n")
	got := r.hear(&epdapi.NodeReport{Node: "n1", GPUs: []epdapi.NodeGPU{{GPU: epdapi.GPU{
		UUID: "GPU-0", Model: "Tesla V100", Power: 280, Setting: dvfsmodel.Setting{Cap: 300},
	}}}})
	if got.Budget {
		t.Error("the agent is to ask for leases")
	}
	if got := (&leasing{"n1", []dvfsmodel.Watt{300}}).exchange(r); len(got.Leases) > 0 {
		t.Errorf("%+v", got)
	}
	list := r.Budget.List()
	if len(list.Scopes) != 1 || list.Scopes[0].Measured != 305 || list.Scopes[0].Spare.Or(0) != 175 {
		t.Errorf("%+v", list)
	}
}

func TestAUsersOwnPowerLimitIsSetWhereTheBoardTakesIt(t *testing.T) {
	for comment, want := range map[string]struct {
		setting dvfsmodel.Setting
		reason  string
	}{
		"epplan:cap=200":                {dvfsmodel.Setting{Cap: 200}, "power at most 200 W"},
		"epplan:cap=200W,fixed=1087":    {dvfsmodel.Setting{Core: 1087, Cap: 200}, "1087 MHz, power at most 200 W"},
		"epplan:cap=90":                 {dvfsmodel.Setting{}, "takes 100 W to below 250 W"},
		"epplan:cap=250":                {dvfsmodel.Setting{}, "takes 100 W to below 250 W"},
		"epplan:cap=200 epplan:off":     {dvfsmodel.Setting{}, "opted out"},
		"epplan:fixed=99,cap=200":       {dvfsmodel.Setting{}, "which the GPU doesn't support"},
		"epplan:cap=0":                  {dvfsmodel.Setting{}, "default clocks"},
		"epplan:cap=ten; epplan:cap=20": {dvfsmodel.Setting{}, "takes 100 W to below 250 W"},
	} {
		r := newRig(t, nil)
		j := r.job(7, func(j *slurm.Job) { j.Comment = comment })
		request := ask(j.ID)
		request.PowerLimit = epdapi.PowerLimit{InForce: 250, Min: 100, Max: 300}
		d, err := r.Decide(t.Context(), request)
		if err != nil || d.Setting != want.setting || d.Apply != (want.setting != dvfsmodel.Setting{}) ||
			!strings.Contains(d.Reason, want.reason) {
			t.Errorf("%s: %+v, %q, %v", comment, d.Setting, d.Reason, err)
		}
	}
	r := newRig(t, nil)
	j := r.job(7, func(j *slurm.Job) { j.Comment = "epplan:cap=200" })
	if d, err := r.Decide(t.Context(), ask(j.ID)); err != nil || d.Apply || !strings.Contains(d.Reason, "can't be set") {
		t.Errorf("without a limit: %+v, %v", d, err)
	}
}
