package policy_test

import (
	"context"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
)

// rapidChecks is held while rapid's number of cases, a flag of the whole process, is that of one test.
var rapidChecks sync.Mutex

// checkMany is rapid.Check with as many random cases as usual, or as in a long run; with -short a fifth of
// those of a long run, and no more than usual. It returns their number.
func checkMany(t *testing.T, usual, long int, property func(*rapid.T)) int {
	t.Helper()
	cases := shareddata.Rounds(min(5*usual, long), usual, long) // rapid draws a fifth of it with -short
	checks := flag.Lookup("rapid.checks").Value
	set := func(n string) {
		if err := checks.Set(n); err != nil {
			t.Error(err)
		}
	}
	rapidChecks.Lock()
	before := checks.String()
	set(strconv.Itoa(cases))
	begun := sync.OnceFunc(func() { // by then rapid has read it
		set(before)
		rapidChecks.Unlock()
	})
	defer begun()
	rapid.Check(t, func(t *rapid.T) {
		begun()
		property(t)
	})
	if testing.Short() {
		return cases / 5
	}
	return cases
}

// drawVariant draws what is exchanged in each policy: θ, ρ, clocks and parking.
func drawVariant(t *rapid.T) string {
	return oneOf(&drawer{T: t}, "variant", "", ",theta=0.8", "", ",theta=0.8", ",clocks=default",
		",theta=0.5,rho=0", ",park=never", ",rho=7.5")
}

// taken returns a policy string without the options that the policy doesn't take.
func taken(text string) string {
	name, options, _ := strings.Cut(text, ",")
	if options == "" {
		return text
	}
	for option := range strings.SplitSeq(options, ",") {
		if _, err := policy.Parse(name+","+option, policy.DefaultParams()); err == nil {
			name += "," + option
		}
	}
	return name
}

// solve plans a problem by a policy string, without the options that it doesn't
// take.
func solve(t *rapid.T, p *planner.Problem, text string) *planner.Plan {
	params := policy.DefaultParams()
	params.Queue.Look.Futures = 1 // there are thousands of problems
	pol, err := policy.Parse(taken(text), params)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := planner.Solve(context.Background(), p, pol, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return plan
}

// seen counts what random plans showed, so that a property isn't true because
// nothing ever happened.
type seen map[string]int

func (s seen) note(p *planner.Problem, plan *planner.Plan) {
	s[plan.Status.String()]++
	s[p.Mode.String()]++
	s[p.Start.String()]++
	for n := range plan.Nodes {
		if len(plan.Nodes[n].On) > 1 {
			s["woken node"]++
		}
	}
	type gpu struct {
		node int32
		set  planner.GPUSet
	}
	shares := map[gpu]int{}
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		switch {
		case a.Node < 0:
			continue
		case len(a.More) > 0:
			s["several nodes"]++
		case a.GPUs.Len() > 1:
			s["several GPUs"]++
		case p.Tasks[i].Share < 1:
			if shares[gpu{a.Node, a.GPUs}]++; shares[gpu{a.Node, a.GPUs}] == 2 {
				s["shared GPU"]++
			}
		}
		if a.Point.Core > 0 {
			s["clock table"]++
		}
		s["clocks: "+strconv.Itoa(int(a.Reason.Clocks))]++
		s["place: "+strconv.Itoa(int(a.Reason.Place))]++
	}
}

func TestEveryPolicysPlansPassCheckOnRandomProblems(t *testing.T) {
	t.Parallel()
	found, plans := seen{}, map[string]int{}
	problems := checkMany(t, 250, 10_000, func(t *rapid.T) {
		p, variant := drawProblem(t, atZero, atZero, atWholeSeconds, atAnyTime), drawVariant(t)
		for _, name := range drawPolicies(t) {
			plan := solve(t, p, name+variant)
			if err := check.Plan(p, plan); err != nil {
				t.Fatalf("%s: %v", name+variant, err)
			}
			plans[name]++
			found.note(p, plan)
		}
	})
	for name, n := range plans {
		want := problems
		if !slices.Contains(policy.Names(), name) {
			want = problems / len(policy.PlacementNames())
		}
		if n < want {
			t.Errorf("%s: %d plans checked, want %d", name, n, want)
		}
	}
	if want := len(policy.Names()) + len(policy.PlacementNames()); len(plans) != want {
		t.Errorf("%d policies, want %d", len(plans), want)
	}
	for _, what := range []string{
		"complete", "missed", "partial", "offline", "online", "clairvoyant", "slot", "continuous",
		"woken node", "several GPUs", "several nodes", "shared GPU", "clock table",
	} {
		if found[what] < problems/10 {
			t.Errorf("%s: seen %d times in %d problems, want it more often", what, found[what], problems)
		}
	}
	t.Logf("seen: %v", found)
}

func TestPlansAreTheSameEachTime(t *testing.T) {
	checkMany(t, 100, 200, func(t *rapid.T) {
		p, variant := drawProblem(t, atZero, atZero, atWholeSeconds, atAnyTime), drawVariant(t)
		for _, name := range drawPolicies(t) {
			if a, b := solve(t, p, name+variant), solve(t, p, name+variant); !reflect.DeepEqual(a, b) {
				t.Fatalf("%s: two answers\n%+v\n%+v", name+variant, a, b)
			}
		}
	})
}

// TestOnlinePlansUseNothingOfJobsThatHaveNotArrived leaves out the jobs that
// arrive after some time. What was started before then must not change.
func TestOnlinePlansUseNothingOfJobsThatHaveNotArrived(t *testing.T) {
	compared := 0
	problems := checkMany(t, 600, 2_000, func(t *rapid.T) {
		p, variant := drawProblem(t, atWholeSeconds, atAnyTime), drawVariant(t)
		p.Mode = planner.Online
		slot := max(1, p.Cluster.Slot)
		until := slot * float64((&drawer{T: t}).bits(5, "until slot"))
		past, kept := *p, []int{}
		past.Tasks = nil
		for i := range p.Tasks {
			if p.Tasks[i].Arrival <= until {
				past.Tasks = append(past.Tasks, p.Tasks[i])
				kept = append(kept, i)
			}
		}
		if len(kept) == 0 || len(kept) == len(p.Tasks) {
			return
		}
		for _, name := range drawPolicies(t) {
			if name == policy.Constant {
				continue // by hindsight, and says so
			}
			full, prefix := solve(t, p, name+variant), solve(t, &past, name+variant)
			for i, task := range kept {
				a, b := decision(full, task, until), decision(prefix, i, until)
				if a != b {
					t.Fatalf("%s: job %q of %d, jobs up to %v s\n all known: %s\nnot later: %s", name+variant,
						p.Tasks[task].ID, len(p.Tasks), until, a, b)
				}
				if a != "" {
					compared++
				}
			}
		}
	})
	if compared < 2*problems {
		t.Errorf("%d decisions compared of %d problems, want more", compared, problems)
	}
}

// decision returns what was decided about a task that started before a time; empty
// for any other.
func decision(plan *planner.Plan, task int, before float64) string {
	a := &plan.Assignments[task]
	if a.Node < 0 || a.Start >= before {
		return ""
	}
	return fmt.Sprintf("%+v", *a)
}

// TestCheckRefusesPlansWithOneNumberChanged spoils one number of a random plan
// by a millionth.
func TestCheckRefusesPlansWithOneNumberChanged(t *testing.T) {
	spoiled := seen{}
	checkMany(t, 1_000, 1_000, func(t *rapid.T) {
		p, variant := drawProblem(t, atZero, atWholeSeconds, atAnyTime), drawVariant(t)
		d := &drawer{T: t}
		plan := solve(t, p, oneOf(d, "policy", drawPolicies(t)...)+variant)
		i := d.bits(6, "job") % len(plan.Assignments)
		a, l := &plan.Assignments[i], &plan.Ledger
		if a.Node < 0 {
			return
		}
		row := &l.Nodes[a.Node]
		what := oneOf(d, "number", "start", "end", "time", "power", "energy", "volt", "run", "idle", "host",
			"turn-on", "sleep", "total", "last")
		for name, number := range map[string]*float64{
			"start": &a.Start, "end": &a.End, "time": &a.Point.Time,
			"power": (*float64)(&a.Point.Power), "energy": (*float64)(&a.Point.Energy),
			"volt": (*float64)(&a.Point.Scaling.V),
			"run":  (*float64)(&row.Run), "idle": (*float64)(&row.Idle), "host": (*float64)(&row.Host),
			"turn-on": (*float64)(&row.TurnOn), "sleep": (*float64)(&row.Sleep), "total": (*float64)(&l.Run),
			"last": &l.End,
		} {
			if name != what || *number < 1e-3 {
				continue
			}
			*number *= 1 + oneOf(d, "sign", 1e-6, -1e-6)
			spoiled[what]++
			if check.Plan(p, plan) == nil {
				t.Fatalf("%s of job %q changed to %v: Check finds nothing", what, p.Tasks[i].ID, *number)
			}
		}
	})
	if len(spoiled) != 13 {
		t.Errorf("spoiled %v, want all 13 numbers", spoiled)
	}
}

// drawPolicies lists the registered policies and two of those that are named
// by their placements.
func drawPolicies(t *rapid.T) []string {
	d, placements := &drawer{T: t}, policy.PlacementNames()
	names := policy.Names()
	for range 2 {
		name := oneOf(d, "placement", placements...)
		if name == "mix" {
			name = "mix:bestfit=1,fgd=2"
		}
		names = append(names, name)
	}
	return names
}
