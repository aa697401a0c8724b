package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// The truth at the chosen clocks, and the upper bound that the decision
// states, both keep the limit, whatever the limit is.
func TestTheUpperTimeKeepsTheLimit(t *testing.T) {
	for name, p := range map[string]dvfsmodel.Params{
		"memory bound": memoryBound(),
		"core bound":   coreBound(),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			for id := range slurm.JobID(8) {
				r.run(id+1, p)
			}
			applied := 0
			for i := range slurm.JobID(60) {
				limit := time.Duration(500+20*i) * time.Second
				r.job(100+i, func(j *slurm.Job) { j.TimeLimit = live.LimitOf(limit) })
				d := r.decide(ask(100 + i))
				if !d.Apply {
					continue
				}
				applied++
				took, _ := r.ran(d, "x", p).TimeS.Get()
				upper, known := d.Upper.Get()
				if !known || upper > limit.Seconds()*(1+1e-9) || took > upper ||
					d.Predicted.Or(math.Inf(1))*1.1 > limit.Seconds()*(1+1e-9) {
					t.Errorf("limit %s: upper %v s, took %v s, predicted %v s", limit, upper,
						took, d.Predicted)
				}
			}
			if applied == 0 {
				t.Error("nothing was ever applied")
			}
		})
	}
}

func TestTheSameRunGetsTheSameAnswer(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
	}
	r.job(100, nil)
	first := r.decide(ask(100))
	if err := r.Reload(func() (*Settings, error) { return settings(t, mode(live.Observe)), nil }); err !=
		nil {
		t.Fatal(err)
	}
	again := r.decide(ask(100))
	if fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("asked again: %+v\nfirst: %+v", again, first)
	}
	other := ask(100)
	other.RunID = "requeued"
	if d := r.decide(other); d.Apply || d.ID == first.ID {
		t.Errorf("another run has the old answer: %+v", d)
	}
	node := ask(100)
	node.Node = "n2"
	if d := r.decide(node); d.Apply || d.Node != "n2" {
		t.Errorf("another node: %+v", d)
	}
	r.flush()
	stored, err := r.store.DecisionsOfJob(context.Background(), "alpha", 100)
	if err != nil || len(stored) != 3 {
		t.Errorf("%d decisions stored (%v), want 3: the run, the other run, the other node", len(stored), err)
	}
}

// forged returns a request about job 500 of which somebody else than its agent thought.
func forged(run string) *epdapi.DecideRequest {
	request := ask(500)
	request.RunID, request.Comment = run, "epplan:fixed=1087"
	return request
}

func TestOnlyARunWithAnIDIsDecided(t *testing.T) {
	r := newRig(t, nil)
	r.job(500, nil)
	for _, run := range []string{"", " ", "a\nb", "../x", ".x", "-x", "a.b", "ä", strings.Repeat("x", 101)} {
		_, err := r.Decide(t.Context(), forged(run))
		if !errors.Is(err, ErrRequest) || statusOf(err) != http.StatusBadRequest ||
			!strings.Contains(err.Error(), "1 to 100 letters, digits, dashes and underscores") {
			t.Errorf("run id %q: %v", run, err)
		}
	}
	if s := r.status(); s.Decisions != 0 || s.Decided != 0 || s.BadRequests != 9 {
		t.Errorf("something was decided: %+v", s)
	}
	for _, run := range []string{"x", rand.Text(), strings.Repeat("x", 100)} {
		if _, err := r.Decide(t.Context(), forged(run)); err != nil {
			t.Errorf("run id %q: %v", run, err)
		}
	}
}

func TestAJobThatSlurmDoesNotHaveGetsDefaultClocksAndNothingIsKept(t *testing.T) {
	slurmctld := &ctld{}
	r := newRig(t, func(o *Options) { o.Resolve = slurmctld.resolve })
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
	}
	before := r.status()
	asked := forged(ask(500).RunID)
	for _, node := range []string{"n1", "n1", "n2"} {
		asked.Node = node
		if d := r.decide(asked); d.Apply || d.Core != 0 ||
			d.Reason != "Slurm has no such job: default clocks" {
			t.Errorf("before the job exists: %+v", d)
		}
	}
	r.flush()
	if s := r.status(); s.Decisions != before.Decisions || s.Decided != before.Decided {
		t.Errorf("something was kept: %+v, before %+v", s, before)
	}
	if stored, err := r.store.DecisionsOfJob(t.Context(), "alpha", 500); err != nil || len(stored) != 0 {
		t.Errorf("stored %+v, %v", stored, err)
	}
	slurmctld.set(r.job(500, nil))
	second := rigAt(t, r.path, r.clock, enforceAll, func(o *Options) { o.Resolve = slurmctld.resolve })
	for name, restarted := range map[string]*rig{"": r, "after a restart": second} {
		if d := restarted.decide(ask(500)); d.Wish.Fixed || d.Core == 1087 ||
			strings.Contains(d.Reason, "fixed") || d.Workload == "" {
			t.Errorf("the job itself %s: %+v", name, d)
		}
	}
	slurmctld.purge(500)
	r.clock.move(2 * time.Minute)
	if d := r.decide(forged("later")); d.Apply || d.Reason != "Slurm has no such job: default clocks" {
		t.Errorf("after the job: %+v", d)
	}
	if d := r.decide(ask(500)); d.Reason == "Slurm has no such job: default clocks" {
		t.Errorf("the run that was decided isn't given its decision again: %+v", d)
	}
}

func TestWhatWasDecidedWithoutSlurmCountsForThatRunAlone(t *testing.T) {
	slurmctld := &ctld{}
	r := newRig(t, func(o *Options) { o.Resolve = slurmctld.resolve })
	slurmctld.fail(slurm.ErrUnreachable)
	first := r.decide(forged("one"))
	if !first.Apply || first.Core != 1087 {
		t.Errorf("Slurm doesn't answer: %+v", first)
	}
	slurmctld.fail(nil)
	if again := r.decide(forged("one")); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("asked again: %+v\nfirst: %+v", again, first)
	}
	slurmctld.set(r.job(500, nil))
	r.clock.move(2 * time.Minute)
	if d := r.decide(ask(500)); d.Apply || d.Wish.Fixed || d.ID == first.ID {
		t.Errorf("the job's own run: %+v", d)
	}
	r.flush()
	second := rigAt(t, r.path, r.clock, enforceAll, func(o *Options) { o.Resolve = slurmctld.resolve })
	if d := second.decide(forged("another")); d.Apply || d.Wish.Fixed {
		t.Errorf("another run after a restart: %+v", d)
	}
}

func TestAJobOfSeveralPartitionsIsRecordedInTheOneWhereItStarted(t *testing.T) {
	r := newRig(t, nil)
	r.job(100, func(j *slurm.Job) { j.Partition, j.State.Base = "gpu,main", slurm.Pending })
	request := ask(100)
	request.Partition = "main"
	r.decide(request)
	r.flush()
	if about := r.stored(100); about.Partition != "main" {
		t.Errorf("recorded in partition %q, want main", about.Partition)
	}
}

func TestTheEnergyOfAJobOfSeveralPartitionsCountsInTheOneWhereItStarted(t *testing.T) {
	var counted []string
	r := newRig(t, func(o *Options) {
		o.OnOutcome = func(_ *record.Outcome, partition string) { counted = append(counted, partition) }
	})
	r.job(100, func(j *slurm.Job) { j.Partition, j.State.Base = "gpu,main", slurm.Pending })
	request := ask(100)
	request.Partition = "main"
	d := r.decide(request)
	// Slurm's list isn't newer than the decision.
	r.record(r.ran(d, request.RunID, memoryBound()), store.Stored)
	if !slices.Equal(counted, []string{"main"}) {
		t.Errorf("counted in %q, want main alone", counted)
	}
}

func TestASubmissionToSeveralPartitionsCountsAsTheMostCarefulOne(t *testing.T) {
	r := newRig(t, nil)
	if err := r.Reload(func() (*Settings, error) {
		return settings(t, "[live]\nmode = \"enforce\"\nmodes = {obs = \"observe\", adv = \"advise\"}"), nil
	}); err != nil {
		t.Fatal(err)
	}
	for partitions, want := range map[string]live.Mode{
		"main": live.Enforce, "main,other": live.Enforce, "adv,main": live.Advise,
		"main,adv,obs": live.Observe, "": "",
	} {
		answer, err := r.Submit(context.Background(), &hooks.Submission{
			Version: hooks.ProtocolVersion, UID: 1000, Name: "train", Partition: hooks.Hex(partitions),
			TRESPerNode: "gres:gpu:1", Kind: "batch",
		})
		if err != nil {
			t.Fatal(err)
		}
		r.flush()
		token, _, _ := slurm.ParseToken(string(answer.AdminComment))
		d, err := r.store.DecisionByToken(context.Background(), "alpha", token)
		if err != nil || d.Mode != string(want) {
			t.Errorf("-p %q: mode %q (%v), want %q", partitions, d.Mode, err, want)
		}
	}
}

func TestARestartedControllerGivesTheSameAnswer(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
	}
	j := r.job(100, nil)
	first := r.decide(ask(100))
	r.flush()
	r.clock.move(time.Second)
	second := rigAt(t, r.path, r.clock, mode(live.Observe), nil)
	second.Jobs.Observe([]slurm.Job{j})
	again := second.decide(ask(100))
	if !again.Apply || again.Core != first.Core || again.Reason != first.Reason ||
		again.ConfigVersion != first.ConfigVersion {
		t.Errorf("after the restart: %+v\nbefore: %+v", again, first)
	}
	if o := second.ran(again, "run-100", memoryBound()); true {
		second.record(o, 0)
	}
	page, err := second.store.OutcomesOfJob(context.Background(), "alpha", 100)
	if err != nil || len(page) != 1 || page[0].DecisionID == 0 || page[0].Arm != live.ArmTreated {
		t.Errorf("outcome after the restart: %+v, %v", page, err)
	}
}

func TestAnotherJobOfTheSameIDIsDecidedAnew(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
	}
	r.job(100, nil)
	r.decide(ask(100))
	r.flush()
	second := rigAt(t, r.path, r.clock, mode(live.Observe), nil)
	second.job(100, nil) // submitted later
	request := ask(100)
	request.RunID = "much-later"
	if d := second.decide(request); d.Apply {
		t.Errorf("the old job's decision: %+v", d)
	}
}

func TestAWrongConfigurationChangesNothing(t *testing.T) {
	r := newRig(t, nil)
	before := r.Settings()
	for _, text := range []string{
		"[live]\nmode = \"enforced\"", "[live", "[live]\nmodes = {gpu = 1}",
		"[live]\nhold_out = 2", "[live]\nmin_core = 2\nmax_core = 1",
	} {
		err := r.Reload(func() (*Settings, error) {
			return ReadSettings(strings.NewReader(text), "new.toml")
		})
		if err == nil || !strings.Contains(err.Error(), "new.toml") {
			t.Errorf("%q: error %v", text, err)
		}
		if r.Settings() != before {
			t.Fatalf("%q changed the settings", text)
		}
	}
	if err := r.Reload(func() (*Settings, error) { return nil, errors.New("no file") }); err == nil ||
		r.Settings() != before {
		t.Errorf("no settings: %v", err)
	}
	if err := r.Reload(func() (*Settings, error) { return settings(t, "[live]\nmax_slowdown = 2"), nil }); err !=
		nil || r.Settings() == before {
		t.Errorf("right settings: %v", err)
	}
}

func TestAWeightChangesTheNextDecisionWithoutARestart(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
	}
	r.job(100, nil)
	if d := r.decide(ask(100)); !d.Apply {
		t.Fatal(d.Reason)
	}
	err := r.Reload(func() (*Settings, error) {
		return settings(t, enforceAll+"[objective]\nname = \"time\""), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.job(101, nil)
	if d := r.decide(ask(101)); d.Apply || !strings.Contains(d.Reason, "default clocks are the best") {
		t.Errorf("when only time counts: %+v", d)
	}
}

// TestClocksCostTheLeastMoneyWhereThatIsTheObjective: an hour of a GPU that costs much
// more than what it draws isn't made longer.
func TestClocksCostTheLeastMoneyWhereThatIsTheObjective(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
	}
	prices := enforceAll + "[factors]\ncost_per_kwh = 0.3\ncurrency = \"EUR\"\n[objective]\nname = \"cost\"\n"
	cores := make([]float64, 0, 2)
	for i, text := range []string{prices, prices + "cost_per_gpu_hour = 20\n"} {
		id := slurm.JobID(100 + i)
		if err := r.Reload(func() (*Settings, error) { return settings(t, text), nil }); err != nil {
			t.Fatal(err)
		}
		r.job(id, nil)
		d := r.decide(ask(id))
		cores = append(cores, float64(d.Core))
		view, err := r.Queries.Job(t.Context(), query.ForEPD(), id)
		if err != nil || view.Objective.Currency != "EUR" ||
			math.Abs(view.Objective.EnergyWeight*3.6e6-0.3) > 1e-12 {
			t.Errorf("%v, the objective is %+v, want 0.3 EUR a kWh", err, view.Objective)
		}
	}
	if cheap, dear := cores[0], cores[1]; !(cheap > 0 && cheap < dear) {
		t.Errorf("core %v MHz where only energy costs, %v MHz where time does, too; want more there", cheap,
			dear)
	}
}

func TestAJobThatStartsBeforeTheFirstSyncIsAskedForOnce(t *testing.T) {
	asked := make(chan slurm.JobID, 10)
	hold := make(chan struct{})
	r := newRig(t, func(o *Options) {
		o.ResolveTimeout = 10 * time.Second
		o.Resolve = func(_ context.Context, id slurm.JobID) (slurm.Job, error) {
			asked <- id
			<-hold
			return slurm.Job{
				ID: id, Name: "train", UID: 1000, Partition: "gpu", Submit: start.Add(time.Hour),
				Comment:   "epplan:off",
				TimeLimit: live.LimitOf(time.Hour), Allocated: slurm.TRES{"gres/gpu": 4},
			}, nil
		}
	})
	answers := make(chan live.Decision)
	for i := range 4 {
		go func() {
			request := ask(9)
			request.Node = fmt.Sprintf("n%d", i)
			d, _ := r.Decide(context.Background(), request)
			answers <- d
		}()
	}
	<-asked
	close(hold)
	for range 4 {
		if d := <-answers; !d.Wish.OptOut || !strings.Contains(d.Reason, "opted out") {
			t.Errorf("%+v", d)
		}
	}
	if more := len(asked); more > 3 {
		t.Errorf("asked %d more times", more)
	}
}

func TestASlurmThatHangsOrLiesLeavesDefaultClocks(t *testing.T) {
	for name, resolve := range map[string]func(context.Context, slurm.JobID) (slurm.Job, error){
		"hangs": func(ctx context.Context, _ slurm.JobID) (slurm.Job, error) {
			<-ctx.Done()
			return slurm.Job{}, ctx.Err()
		},
		"lies": func(context.Context, slurm.JobID) (slurm.Job, error) { return slurm.Job{ID: 8}, nil },
		"fails": func(context.Context, slurm.JobID) (slurm.Job, error) {
			return slurm.Job{}, errors.New("no slurmctld")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Resolve, o.ResolveTimeout = resolve, 20*time.Millisecond })
			if d := r.decide(ask(9)); d.Apply || !strings.Contains(d.Reason, "isn't known") {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestImpossibleRequestsAreRefused(t *testing.T) {
	r := newRig(t, nil)
	for name, change := range map[string]func(*epdapi.DecideRequest){
		"no job":         func(q *epdapi.DecideRequest) { q.Job = 0 },
		"no node":        func(q *epdapi.DecideRequest) { q.Node = "" },
		"node list":      func(q *epdapi.DecideRequest) { q.Node = "n[1-2]" },
		"NUL in node":    func(q *epdapi.DecideRequest) { q.Node = "n\x00" },
		"negative GPUs":  func(q *epdapi.DecideRequest) { q.GPUs = -1 },
		"many GPUs":      func(q *epdapi.DecideRequest) { q.GPUs = 1 << 30 },
		"model newline":  func(q *epdapi.DecideRequest) { q.GPUModel = "V100\nforged" },
		"model not text": func(q *epdapi.DecideRequest) { q.GPUModel = "V\xff" },
		"long model":     func(q *epdapi.DecideRequest) { q.GPUModel = strings.Repeat("V", 1000) },
		"NaN clock":      func(q *epdapi.DecideRequest) { q.Clocks[0].Core[0] = dvfsNaN },
		"zero clock":     func(q *epdapi.DecideRequest) { q.Clocks[0].Core[0] = 0 },
		"negative mem":   func(q *epdapi.DecideRequest) { q.Clocks[0].Mem = -1 },
		"infinite base":  func(q *epdapi.DecideRequest) { q.Default.Core = dvfsInf },
		"empty group":    func(q *epdapi.DecideRequest) { q.Clocks[0].Core = nil },
		"long comment": func(q *epdapi.DecideRequest) {
			q.Comment = hooks.Hex(strings.Repeat("x", slurm.MaxText+1))
		},
	} {
		request := ask(1)
		change(request)
		if _, err := r.Decide(context.Background(), request); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
