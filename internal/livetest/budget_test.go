package livetest_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// budgetSite is a lab under a power budget whose GPUs always work, and somebody who reads what they take.
type budgetSite struct {
	*lab

	hosts dvfsmodel.Watt // of all nodes

	mu    sync.Mutex
	steps []wattsFrom // what may be taken, by time
	reads int
}

type wattsFrom struct {
	at    time.Time
	watts dvfsmodel.Watt
}

// budget runs epplan budget at the controller.
func (s *budgetSite) budget(args ...string) []byte {
	s.Helper()
	all := append(append([]string{"budget"}, args...), "--json", "--socket", s.socket(controller))
	out, err := exec.Command(filepath.Join(s.bin, "epplan"), all...).Output() //nolint:noctx // our own
	if err != nil {
		s.Fatalf("%q: %v\n%s", all, err, out)
	}
	return out
}

// cluster returns the cluster's budget as the controller says; nil while it says nothing.
func (s *budgetSite) cluster() *epdapi.BudgetScope {
	s.Helper()
	var list epdapi.BudgetList
	if err := json.Unmarshal(s.budget("list"), &list); err != nil {
		s.Fatal(err)
	}
	if len(list.Scopes) == 0 {
		return nil
	}
	return &list.Scopes[0]
}

// kept has no more be taken than so much from a time on.
func (s *budgetSite) kept(from time.Time, watts dvfsmodel.Watt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, wattsFrom{from, watts})
}

// readings returns what each GPU takes now.
func (s *budgetSite) readings() (watts []dvfsmodel.Watt) {
	for _, node := range s.names {
		for _, sim := range s.sims(node) {
			r, err := sim.Read()
			if err != nil {
				s.Error(err)
			}
			watts = append(watts, r.Power)
		}
	}
	return watts
}

// taken returns what GPUs and hosts take now. The GPUs are read one by one, and twice: one whose limit was
// lowered before that of another was raised between two readings is counted as it was lowered.
func (s *budgetSite) taken() dvfsmodel.Watt {
	sum := s.hosts
	first, second := s.readings(), s.readings()
	for i := range first {
		sum += min(first[i], second[i])
	}
	return sum
}

// look compares what is taken with what may be.
func (s *budgetSite) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := time.Now()
	sum := s.taken()
	after := time.Now()
	most := dvfsmodel.Watt(0)
	for _, step := range s.steps {
		if !step.at.After(before) {
			most = step.watts
		} else if !step.at.After(after) { // it may be read before and after that
			most = max(most, step.watts)
		}
	}
	if most == 0 {
		return
	}
	if s.reads++; sum > most+0.5 {
		s.Errorf("%v: %v W of %v", before, sum, most)
	}
}

// watch looks twice a second until it is stopped.
func (s *budgetSite) watch() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second / 2):
				s.look()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// TestABudgetIsKeptWhoeverDies, on a real Slurm with jobs: by the readings of somebody else no more is taken
// than the budget at any time, also while the controller or an agent is dead, and limits are given back when
// the budget goes.
func TestABudgetIsKeptWhoeverDies(t *testing.T) {
	slurmlab.AnySlurm(t)
	const standing, lowered = 2300, 1900
	text := enforce + "[live.pick]\nevery_s = 1\n[budget]\nmode = \"enforce\"\nlease_s = 3\n"
	s := &budgetSite{lab: newLab(t, setup{
		config: text + fmt.Sprintf("cluster_w = %d\n", standing), gpu: atWork, roles: true, waits: true,
	})}
	board, err := config.BuiltinProfiles().Lookup("V100")
	if err != nil {
		t.Fatal(err)
	}
	s.hosts = 8 * board.HostW
	s.within(2*patience, "the budget is kept", func() bool {
		c := s.cluster()
		return c != nil && c.GPUs == 8 && c.InForce <= standing && s.taken() <= standing
	})
	s.kept(time.Now(), standing)
	stop := s.watch()
	jobs := make([]int64, 0, 3)
	jobs = append(jobs,
		s.submit("sleep 20", "--gres=gpu:2"), s.submit("sleep 20", "--gres=gpu:1", "--comment=epplan:off"))

	from := time.Now().Add(20 * time.Second).Truncate(time.Second)
	until := from.Add(40 * time.Second)
	s.budget("set", fmt.Sprint(lowered, "W"), "--from", from.Format(time.RFC3339),
		"--until", until.Format(time.RFC3339))
	s.kept(from.Add(5*time.Second), lowered) // it holds from its beginning on, where the machine is fast enough
	s.kept(until, standing)
	s.within(2*patience, "the event has begun", func() bool { return time.Now().After(from) })
	s.stopEPD(controller, syscall.SIGKILL)
	jobs = append(jobs, s.submit("sleep 5", "--gres=gpu:4"))
	<-time.After(6 * time.Second) // two leases
	s.startEPD(controller)
	s.stopEPD("n2", syscall.SIGKILL)
	<-time.After(6 * time.Second)
	s.startEPD("n2")
	s.within(2*patience, "the event is over, and limits rise again", func() bool {
		c := s.cluster()
		return time.Now().After(until) && c != nil && len(c.Silent) == 0 && c.InForce > (standing+lowered)/2
	})

	for _, job := range jobs {
		s.ends(job, "COMPLETED")
	}
	stop()
	if s.reads < 60 {
		t.Errorf("%d readings", s.reads)
	}

	// Where GPUs ignore their limits and others can't make up for them, that is said.
	for _, sim := range s.sims("n1") {
		if err := sim.InjectFault(gpu.FaultUnlimited); err != nil {
			t.Fatal(err)
		}
	}
	s.budget("set", fmt.Sprint(lowered, "W"), "--until", "+1h")
	s.within(2*patience, "GPUs that ignore their limits are named", func() bool {
		c := s.cluster()
		return c != nil && len(c.Ignoring) >= 4 && c.Measured > lowered && c.Short > 0
	})

	s.write("config.toml", enforce, 0o644)
	s.reloadController()
	for _, node := range s.names {
		s.within(2*patience, "the limits of "+node+" are given back", func() bool {
			for _, sim := range s.sims(node) {
				if limit, err := sim.PowerLimit(); err != nil || limit != board.BusyW {
					return false
				}
			}
			return len(s.journal(node)) == 0
		})
	}
	s.undrained()
}
