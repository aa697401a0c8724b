package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/statedir"
)

// ledger is a controller that keeps outcomes, and says when a job ended.
type ledger struct {
	kept    []record.Outcome
	ended   time.Time
	away    error // of Outlook
	endings int   // questions at the end of a run
	decided live.Decision
	takes   time.Duration // to decide
}

func (l *ledger) Decide(context.Context, *epdapi.DecideRequest) (live.Decision, error) {
	<-time.After(l.takes)
	return l.decided, nil
}

func (l *ledger) Record(_ context.Context, outcome []byte) error {
	var o record.Outcome
	err := json.Unmarshal(outcome, &o)
	l.kept = append(l.kept, o)
	return err
}

func (l *ledger) Outlook(_ context.Context, r epdapi.OutlookRequest) (live.Outlook, error) {
	if r.Ending {
		l.endings++
	}
	return live.Outlook{Life: live.LifeAlive, Ended: l.ended}, l.away
}

func (*ledger) Report(context.Context, *epdapi.NodeReport) (epdapi.ReportAnswer, error) {
	return epdapi.ReportAnswer{}, nil
}

// noded runs a test in a bubble, with a node of one GPU that runs a program all the
// time.
func noded(t *testing.T, l *ledger, test func(t *testing.T, d *AgentServer)) {
	t.Helper()
	nodedWith(t, l, "", test)
}

// nodedWith is noded on a node where something goes wrong with GPUs.
func nodedWith(t *testing.T, l *ledger, faults string, test func(t *testing.T, d *AgentServer)) {
	t.Helper()
	nodedOn(t, "sim,busy", l, faults, test)
}

// nodedOn is nodedWith on a node with certain GPUs.
func nodedOn(t *testing.T, spec string, l *ledger, faults string, test func(t *testing.T, d *AgentServer)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		wrong, err := gpu.ParseFaults(faults)
		if err != nil {
			t.Fatal(err)
		}
		library, err := gpu.OpenSim(spec, config.BuiltinProfiles().Board, &gpu.SimOptions{Faults: wrong})
		if err != nil {
			t.Fatal(err)
		}
		var folders [2]statedir.FS
		for i, name := range []string{"journal", "runs"} {
			if folders[i], err = statedir.OpenFolder(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		outbox, err := spool.Open(filepath.Join(dir, "spool"), nil)
		if err != nil {
			t.Fatal(err)
		}
		d := NewAgentServer(Options{
			Node: "n1", Controller: l, Spool: outbox, Slurm: true, Simulated: true,
			Agent: agent.New(agent.Options{
				Journal: folders[0], Runs: folders[1], Library: library, Boot: "boot",
			}),
		})
		d.Start(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { d.Run(ctx); close(done) }()
		test(t, d)
		cancel()
		<-done
	})
}

func sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble
	synctest.Wait()
}

// late plays a job of two seconds whose Epilog comes so much later, which is told when
// the job ended, or isn't, and returns what is recorded.
func (d *AgentServer) late(t *testing.T, l *ledger, by time.Duration, told bool) *record.Outcome {
	t.Helper()
	event := hooks.Event{
		Version: hooks.ProtocolVersion, Kind: hooks.Prolog, Job: 7, Node: "n1", GPUs: []int{0},
		GPUsKnown: true,
	}
	d.prolog(t.Context(), &event)
	sleep(2 * time.Second)
	l.ended = time.Now().Truncate(time.Second)
	sleep(by)
	event.Kind = hooks.Epilog
	if told {
		event.End, l.ended = l.ended.Unix(), time.Time{}
	}
	d.epilog(t.Context(), &event)
	synctest.Wait()
	if len(l.kept) != 1 {
		t.Fatalf("%d outcomes", len(l.kept))
	}
	return &l.kept[0]
}

// The times of a job of two seconds whose end Slurm has to the second: from half of
// one less to half of one more.
const shortest, longest = 1.5, 2.5

func TestTheEndOfARunWhoseEpilogIsLateIsSlurms(t *testing.T) {
	for _, c := range []struct {
		name       string
		told, away bool
		late       float64 // s, of the outcome
		endings    int
	}{
		{name: "the Epilog says it", told: true},
		{name: "the controller does", endings: 1},
		{name: "nobody does", away: true, late: 7, endings: 1},
		{name: "the Epilog does, and no controller answers", told: true, away: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &ledger{}
			if c.away {
				l.away = errors.New("away")
			}
			noded(t, l, func(t *testing.T, d *AgentServer) {
				t.Helper()
				o := d.late(t, l, 7*time.Second, c.told)
				seconds, joules := o.TimeS.Or(0)-c.late, o.GPUEnergyJ.Or(0)
				if seconds < shortest || seconds > longest ||
					math.Abs(o.Ended.Sub(o.Started).Seconds()-o.TimeS.Or(0)) > 1e-6 {
					t.Errorf("%v s from %s to %s, want two", o.TimeS, o.Started, o.Ended)
				}
				if power := joules / o.TimeS.Or(0); o.GPUSource != record.Counter ||
					math.Abs(power-o.MeanPowerW.Or(0)) > 0.01*power {
					t.Errorf("%v J from %q at %v W", joules, o.GPUSource, o.MeanPowerW)
				}
				if l.endings != c.endings {
					t.Errorf("asked %d times, want %d", l.endings, c.endings)
				}
			})
		})
	}
}

func TestTheEndOfARunWhoseEpilogIsInTimeIsTheNodes(t *testing.T) {
	for _, told := range []bool{true, false} {
		l := &ledger{}
		noded(t, l, func(t *testing.T, d *AgentServer) {
			t.Helper()
			const delay = 345 * time.Millisecond
			if o := d.late(t, l, delay, told); o.TimeS != live.Known((2*time.Second + delay).Seconds()) {
				t.Errorf("told %v: %v s", told, o.TimeS)
			}
		})
	}
}

// A job that starts anew without an Epilog leaves two runs that ended, of which the
// Epilog is the last one's.
func TestAnEpilogSaysNothingOfTheRunThatItsRunReplaced(t *testing.T) {
	l := &ledger{}
	noded(t, l, func(t *testing.T, d *AgentServer) {
		t.Helper()
		const jobs = 12 // outcomes are delivered in any order
		for job := range jobs {
			event := hooks.Event{
				Version: hooks.ProtocolVersion, Kind: hooks.Prolog, Job: slurm.JobID(job + 1), Node: "n1",
				GPUs: []int{0}, GPUsKnown: true,
			}
			d.prolog(t.Context(), &event)
			sleep(time.Second)
			d.prolog(t.Context(), &event)
			sleep(time.Second)
			event.Kind, event.Code, event.End = hooks.Epilog, 1, time.Now().Unix()
			d.epilog(t.Context(), &event)
			synctest.Wait()
		}
		slices.SortStableFunc(l.kept, func(x, y record.Outcome) int { return x.Started.Compare(y.Started) })
		if len(l.kept) != 2*jobs {
			t.Fatalf("%d outcomes", len(l.kept))
		}
		for i, o := range l.kept {
			if want := []string{"", string(slurm.Failed)}[i%2]; o.ExitState != want {
				t.Errorf("run %d of job %d ended as %q, want %q", i%2+1, o.JobID, o.ExitState, want)
			}
		}
	})
}

// From its end on it is known of a run that it ended, whatever becomes of its outcome.
func TestARunThatEndedIsNeverUnknown(t *testing.T) {
	dir := t.TempDir()
	disk := func(name string) statedir.FS {
		folder, err := statedir.OpenFolder(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return folder
	}
	library, err := gpu.OpenSim("sim", config.BuiltinProfiles().Board, nil)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := spool.Open(filepath.Join(dir, "spool"), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := agent.New(agent.Options{Journal: disk("journal"), Runs: disk("runs"), Library: library})
	d := NewAgentServer(Options{Node: "n1", Controller: &ledger{}, Spool: outcomes, Agent: a})
	d.Start(t.Context())
	const runs = 40
	for job := range uint32(runs) {
		if _, err := a.Apply(t.Context(), live.Run{ID: agent.NewRunID(), Job: job + 1, Node: "n1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.End(t.Context(), job+1, "n1"); err != nil {
			t.Fatal(err)
		}
		delivered := make(chan struct{})
		go func() {
			d.outbox.deliver(t.Context())
			close(delivered)
		}()
		for done := false; !done; {
			select {
			case <-delivered:
				done = true
			default:
			}
			if !d.outbox.hasEnded(runOf{job + 1, "n1"}) {
				t.Fatalf("run %d isn't known to have ended", job+1)
			}
		}
	}
}
