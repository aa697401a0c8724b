package agent_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/nodepower"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// hostSpan is where the counter begins again: every five minutes at 200 W.
const hostSpan = 60_000_000_000

// burning is the powercap folder of a node that draws 200 W.
type burning struct {
	since  time.Time
	broken *atomic.Bool
}

func (b burning) Open(name string) (fs.File, error) {
	if b.broken.Load() && name != "." {
		return nil, fs.ErrPermission
	}
	used := time.Since(b.since).Microseconds() * 200
	return fstest.MapFS{
		"intel-rapl:0/name":                {Data: []byte("package-0\n")},
		"intel-rapl:0/energy_uj":           {Data: []byte(strconv.FormatInt(used%hostSpan, 10))},
		"intel-rapl:0/max_energy_range_uj": {Data: []byte(strconv.Itoa(hostSpan))},
	}.Open(name)
}

// metered runs a test in a bubble, with an agent that watches a node of 200 W.
func metered(t *testing.T, trouble func(error), test func(h *host, a *agent.Agent, broken *atomic.Bool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, twoGPUs)
		broken := &atomic.Bool{}
		meter, err := nodepower.Open(burning{time.Now(), broken})
		if err != nil {
			t.Fatal(err)
		}
		h.options = func(o *agent.Options) { o.Host = meter }
		a := h.started()
		stop := watching(t, a, trouble)
		sleep(time.Hour) // nobody looks at the counters of an idle node
		test(h, a, broken)
		stop()
	})
}

// hostOf returns what the node beside the GPUs used; less than 0: not known.
func hostOf(o *record.Outcome) float64 { return o.NodeEnergyJ.Or(-1) - o.GPUEnergyJ.Or(0) }

func wantHost(t *testing.T, a *agent.Agent, job uint32, want float64) {
	t.Helper()
	closed, err := a.End(t.Context(), job, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if got := a.HostEnergy(closed.Run.ID); math.Abs(got-want) > 1e-3*want {
		t.Errorf("job %d: %v J, want %v", job, got, want)
	}
}

func noTrouble(t *testing.T) func(error) {
	t.Helper()
	return func(err error) { t.Errorf("trouble: %v", err) }
}

func TestTheHostsEnergyIsSharedByTheGPUsThatAreInUse(t *testing.T) {
	metered(t, noTrouble(t), func(h *host, a *agent.Agent, _ *atomic.Bool) {
		apply(h, a, "alone-first", 1, quick, 0)
		sleep(30 * time.Minute)
		apply(h, a, "beside-it", 2, quick, 1)
		sleep(10*time.Minute + 300*time.Millisecond)
		wantHost(h.t, a, 2, 100*600.3)
		sleep(100 * time.Millisecond)
		wantHost(h.t, a, 1, 200*1800+100*600.3+200*0.1)
	})
}

func TestRunsThatShareAGPUShareItsPartOfTheHost(t *testing.T) {
	metered(t, noTrouble(t), func(h *host, a *agent.Agent, _ *atomic.Bool) {
		apply(h, a, "r1", 1, quick, 0)
		apply(h, a, "r2", 2, quick, 0, 1)
		sleep(100 * time.Second)
		wantHost(h.t, a, 1, 200*100/4)
		sleep(100 * time.Second)
		wantHost(h.t, a, 2, 200*100*3/4+200*100)
	})
}

func TestWhileTheHostCannotBeReadItsEnergyIsUnknownAndItIsSaidOnce(t *testing.T) {
	var said []error
	metered(t, func(err error) { said = append(said, err) },
		func(h *host, a *agent.Agent, broken *atomic.Bool) {
			apply(h, a, "r1", 1, quick, 0)
			apply(h, a, "r2", 2, quick, 1)
			sleep(100 * time.Second)
			broken.Store(true)
			sleep(30 * time.Second)
			broken.Store(false)
			sleep(time.Second)
			wantHost(h.t, a, 2, 100*131) // the step after made up for it
			broken.Store(true)
			sleep(10 * time.Minute)
			closed, err := a.End(h.t.Context(), 1, "n1")
			if host := hostOf(&closed.Outcome); host >= 0 || err != nil {
				h.t.Errorf("%+v, %v", closed.Outcome, err)
			}
		})
	if len(said) != 2 || !errors.Is(said[0], fs.ErrPermission) {
		t.Errorf("said %v", said)
	}
}

func TestWithoutCountersTheHostsEnergyIsUnknown(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, quick, 0)
	closed, err := a.End(t.Context(), 1, "n1")
	if host := hostOf(&closed.Outcome); host >= 0 || err != nil {
		t.Errorf("%+v, %v", closed.Outcome, err)
	}
}

func TestTheHostsEnergyIsFilledInOnlyForASmallPartOfARun(t *testing.T) {
	for _, c := range []struct {
		covered float64
		partial bool
		want    float64
	}{
		{100, false, 1000},
		{95, false, 1000.0 * 100 / 95},
		{100.4, false, 1000},
		{89, false, -1},
		{0, false, -1},
		{100, true, -1},
	} {
		s := agent.NewSampler(live.Run{GPUs: []string{"GPU-1"}, Started: noon})
		if c.partial {
			s.MarkPartial()
		}
		for i := range 101 {
			s.Add("GPU-1", gpu.Reading{At: noon.Add(time.Duration(i) * time.Second), Power: 100, Energy: -1})
		}
		s.AddHost(noon, nodepower.EnergyStep{
			Energy: 1000, Time: time.Duration(c.covered * float64(time.Second)), Known: true,
		}, 1)
		out := s.Close(noon.Add(100 * time.Second))
		if got := hostOf(&out); got < 0 != (c.want < 0) || got >= 0 && !near(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// However runs overlap, no more and no less than the whole host is shared.
func TestThePartsOfTheHostAddUpToOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHost(t, "sim:4,model=GTX1080Ti,profiles")
		a := h.started()
		for i := range rapid.IntRange(1, 6).Draw(rt, "runs") {
			gpus := rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 4, rapid.ID[int]).Draw(rt, "gpus")
			apply(h, a, fmt.Sprintf("r%d", i), uint32(i+1), quick, gpus...)
		}
		sum := 0.0
		for id, part := range a.HostParts() {
			if sum += part; part <= 0 {
				rt.Fatalf("%s has part %v", id, part)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			rt.Fatalf("parts add up to %v", sum)
		}
	})
}
