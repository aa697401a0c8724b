package accounting_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/accounting"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

var start = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// site is a Slurm with accounting, what is recorded, and a clock.
type site struct {
	version  slurm.Version
	rows     map[slurm.JobID]*slurm.AccountingRecord
	down     error
	outcomes []record.Outcome
	strata   []record.Stratum
	now      time.Time
	kind     config.AccountEnergy
	asked    int
	log      bytes.Buffer
	writer   *accounting.Writer
	// What another tool does each time that the AdminComment is read, or was written.
	onRead, onWritten func()
}

func (s *site) Version(context.Context) (slurm.Version, error) { return s.version, nil }

func (s *site) Accounted(_ context.Context, id slurm.JobID) (slurm.AccountingRecord, error) {
	s.asked++
	if s.onRead != nil {
		defer s.onRead()
	}
	row := s.rows[id]
	switch {
	case s.down != nil:
		return slurm.AccountingRecord{}, s.down
	case row == nil:
		return slurm.AccountingRecord{}, slurm.ErrNotFound
	}
	return *row, nil
}

func (s *site) AccountEnergy(_ context.Context, id slurm.JobID, joules float64) error {
	s.rows[id].Energy = joules
	return s.down
}

func (s *site) AccountComment(_ context.Context, id slurm.JobID, comment string) error {
	s.rows[id].AdminComment = comment
	if s.onWritten != nil {
		s.onWritten()
	}
	return s.down
}

func (s *site) OutcomesOfJob(_ context.Context, _ string, job int64) ([]record.Outcome, error) {
	var found []record.Outcome
	for _, o := range s.outcomes {
		if o.JobID == job {
			found = append(found, o)
		}
	}
	return found, nil
}

func (s *site) Strata(context.Context, string, time.Time, time.Time) ([]record.Stratum, error) {
	return s.strata, nil
}

// newSite has job 7 on two nodes, of which the first has told.
func newSite(version slurm.Version) *site {
	s := &site{
		version: version, now: start, kind: config.AccountGPU,
		rows: map[slurm.JobID]*slurm.AccountingRecord{7: {
			ID: 7, State: slurm.ParseJobState("COMPLETED"), Start: start.Add(-time.Hour), End: start,
			Nodes: []string{"n1", "n2"}, AdminComment: note,
		}},
	}
	s.writer = accounting.New(accounting.Options{
		Slurm: s, Records: s, Cluster: "c", Kind: func() config.AccountEnergy { return s.kind },
		Now: func() time.Time { return s.now }, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	s.ends("n1", 1000.4)
	return s
}

// ends has a node tell of job 7.
func (s *site) ends(node string, joules float64) {
	o := record.Outcome{
		Cluster: "c", JobID: 7, Node: node, Started: start.Add(-time.Hour), Ended: start, Workload: "w",
		GPUModel: "V100", Arm: live.ArmTreated, ExitState: record.Completed, GPUEnergyJ: live.Known(joules),
		NodeEnergyJ: live.Known(2 * joules), NodeSource: record.Modelled,
	}
	s.outcomes = append(s.outcomes, o)
	s.writer.Ended(&o)
}

// passes lets time go by, with a step each second.
func (s *site) passes(t *testing.T, d time.Duration) (steps int) {
	t.Helper()
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(time.Second) {
		if s.writer.Step(t.Context()) {
			steps++
		}
	}
	return steps
}

var (
	old    = slurm.Version{Major: 22, Minor: 5, Micro: 8}
	middle = slurm.Version{Major: 24, Minor: 11, Micro: 5}
	newest = slurm.Version{Major: 26, Minor: 5, Micro: 5}
)

// What a site and epd have in the AdminComment, and what is added.
const note, word = "a note of ours;epplan:TOKEN", ";epplan-energy-j:1500"

func TestTheEnergyOfAJobOnAllItsNodesIsWrittenOnce(t *testing.T) {
	for _, version := range []slurm.Version{old, middle, newest} {
		s := newSite(version)
		s.passes(t, 2*time.Minute)
		if row := s.rows[7]; row.Energy != 0 || strings.Contains(row.AdminComment, "energy") {
			t.Fatalf("%s: with one of two nodes: %+v", version, row)
		}
		s.ends("n2", 500)
		s.passes(t, 2*time.Minute)
		row, want := s.rows[7], note+word
		if version == newest {
			if row.Energy < 1500 || row.Energy >= 1501 || row.AdminComment != note {
				t.Errorf("%s: %+v", version, row)
			}
		} else if row.Energy != 0 || row.AdminComment != want {
			t.Errorf("%s: %q, want %q", version, row.AdminComment, want)
		}
		if asked := s.asked; s.passes(t, 3*time.Hour) > 0 || s.asked != asked {
			t.Errorf("%s: asked %d times after it was done", version, s.asked-asked)
		}
		if said := s.log.String(); said != "" {
			t.Errorf("%s: it says %s", version, said)
		}
	}
}

// What a shared GPU took isn't one job's to pay.
func TestOfAJobWithSharedGPUsNothingIsWritten(t *testing.T) {
	for name, version := range map[string]slurm.Version{"AdminComment": old, "ConsumedEnergy": newest} {
		s := newSite(version)
		s.ends("n2", 500)
		s.outcomes[1].Shared = true
		s.passes(t, 2*time.Hour)
		if row := s.rows[7]; row.Energy != 0 || row.AdminComment != note || s.asked != 1 {
			t.Errorf("%s: %v J, %q, asked %d times", name, row.Energy, row.AdminComment, s.asked)
		}
	}
}

func TestAJobIsntAskedForBeforeAMinuteNorMoreThanOneAtOnce(t *testing.T) {
	s := newSite(newest)
	for job := range 20 {
		s.writer.Ended(&record.Outcome{JobID: int64(100 + job)})
	}
	if steps := s.passes(t, time.Minute); steps != 0 || s.asked != 0 {
		t.Errorf("%d steps, asked %d times within the first minute", steps, s.asked)
	}
	if steps := s.passes(t, 10*time.Second); steps > 10 || s.asked > 10 {
		t.Errorf("%d steps, asked %d times in 10 s", steps, s.asked)
	}
}

func TestWhatSavedIsSaidWhereHeldOutJobsTellIt(t *testing.T) {
	for name, c := range map[string]struct {
		held  int64
		arm   live.Arm
		state string
		want  string
	}{
		"enough of them":     {3, live.ArmTreated, record.Completed, "epplan-energy-j:1500;epplan-saved-j:500"},
		"too few":            {2, live.ArmTreated, record.Completed, ""},
		"held out itself":    {3, live.ArmHeldOut, record.Completed, ""},
		"a job that failed":  {3, live.ArmTreated, "FAILED", ""},
		"none of its kind":   {0, live.ArmTreated, record.Completed, ""},
		"in no arm of a lot": {3, live.ArmExcluded, record.Completed, ""},
	} {
		s := newSite(newest)
		s.rows[7].AdminComment = ""
		s.strata = []record.Stratum{
			{
				WorkloadKey: record.WorkloadKey{Cluster: "c", Workload: "w", GPUModel: "V100"}, Arm: live.ArmHeldOut,
				GPU: record.Mean{Runs: c.held, Value: 2000},
			},
			{
				WorkloadKey: record.WorkloadKey{Cluster: "c", Workload: "other", GPUModel: "V100"}, Arm: live.ArmHeldOut,
				GPU: record.Mean{Runs: 100, Value: 9000},
			},
		}
		s.ends("n2", 500)
		for i := range s.outcomes {
			s.outcomes[i].Arm, s.outcomes[i].ExitState = c.arm, c.state
		}
		s.passes(t, 2*time.Minute)
		if got := s.rows[7]; got.AdminComment != c.want || got.Energy < 1500 {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

func TestWhatIsntMeasuredOrIsSomebodyElsesStaysAsItIs(t *testing.T) {
	capitals := func(s *site) { s.rows[7].AdminComment = "Ours" }
	for name, c := range map[string]struct {
		version slurm.Version
		change  func(*site)
		energy  float64
		comment string
	}{
		"Slurm's own meter": {newest, func(s *site) { s.rows[7].Energy = 42 }, 42, note + word},
		"a modelled energy": {newest, func(s *site) { s.kind = config.AccountNode }, 0, note},
		"nothing is wanted": {newest, func(s *site) { s.kind = config.AccountOff }, 0, note},
		"an unknown energy": {newest, func(s *site) { s.outcomes[1].GPUEnergyJ = live.Number{} }, 0, note},
		"an impossible one": {newest, func(s *site) {
			s.outcomes[1].Implausible = record.Implausible{Why: "more than it can draw"}
		}, 0, note},
		"a job of before with that number": {newest, func(s *site) {
			s.outcomes[0].Started, s.outcomes[0].Ended = start.Add(-9*time.Hour), start.Add(-8*time.Hour)
		}, 0, note},
		"a job that runs":                      {newest, func(s *site) { s.rows[7].End = time.Time{} }, 0, note},
		"quotes":                               {middle, func(s *site) { s.rows[7].AdminComment = `say "no"` }, 0, `say "no"`},
		"capitals, on a Slurm that keeps them": {middle, capitals, 0, "Ours" + word},
		"capitals, on one that doesn't":        {old, capitals, 0, "Ours"},
	} {
		s := newSite(c.version)
		s.ends("n2", 500)
		c.change(s)
		s.passes(t, 2*time.Minute)
		if got := s.rows[7]; got.AdminComment != c.comment || (got.Energy != c.energy) {
			t.Errorf("%s: %+v, want %v and %q", name, got, c.energy, c.comment)
		}
	}
}

// TestWhatAnotherToolWritesIsntLost has one write its summary at each moment around ours.
//
//nolint:gocognit // all moments in one table
func TestWhatAnotherToolWritesIsntLost(t *testing.T) {
	for _, theirs := range []string{"JS1:H4sIAAAAAAAA", "reviewed by anna"} {
		for read := 1; read <= 8; read++ {
			for _, written := range []bool{false, true} {
				s := newSite(middle)
				s.ends("n2", 500)
				n := 0
				write := func() {
					if n++; n == read {
						s.rows[7].AdminComment = theirs
					}
				}
				if written {
					s.onWritten = write
				} else {
					s.onRead = write
				}
				s.passes(t, 2*time.Hour)
				got, ours := s.rows[7].AdminComment, strings.Contains(s.rows[7].AdminComment, "epplan-energy-j:1500")
				switch {
				case n < read:
					if !ours {
						t.Errorf("nothing was written: %q", got)
					}
				// Between the last look and the write, there is nothing that could tell.
				case !strings.HasPrefix(got, theirs) && (written || read != 3):
					t.Errorf("%q, written %v at the %d. time, became %q", theirs, written, read, got)
				case theirs[0] == 'J' && ours && (written || read != 3),
					theirs[0] == 'r' && read < 4 && !ours:
					t.Errorf("%q, written %v at the %d. time: %q", theirs, written, read, got)
				}
				if foreign := s.writer.Foreign(); theirs[0] == 'J' && got == theirs && read < 4 && foreign != 1 {
					t.Errorf("%d jobs are counted", foreign)
				}
			}
		}
	}
}

func TestAnAccountingThatIsAwayIsSaidOnceAndTriedAgain(t *testing.T) {
	s := newSite(newest)
	s.ends("n2", 500)
	s.down = errors.New("connection refused")
	s.passes(t, 35*time.Minute)
	said := s.log.String()
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, "connection refused") {
		t.Errorf("it says %s", said)
	}
	if s.asked < 3 || s.asked > 5 {
		t.Errorf("asked %d times in half an hour", s.asked)
	}
	s.down = nil
	s.passes(t, 15*time.Minute)
	if s.rows[7].Energy < 1500 || !strings.Contains(s.log.String(), "again") {
		t.Errorf("%+v, %s", s.rows[7], &s.log)
	}
	// One that never comes is given up.
	s.writer.Ended(&record.Outcome{JobID: 8})
	if steps := s.passes(t, 5*time.Hour); steps != 7 {
		t.Errorf("tried %d times", steps)
	}
}

func TestABusyClustersJobsDontPileUp(t *testing.T) {
	s := newSite(newest)
	for job := range 20_000 {
		s.writer.Ended(&record.Outcome{JobID: int64(100 + job)})
	}
	s.writer.Step(t.Context())
	if said := s.log.String(); !strings.Contains(said, "too many jobs wait") || strings.Count(said, "\n") != 1 {
		t.Errorf("it says %s", said)
	}
}
