package gpu

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

func parse(t *testing.T, text string) *Faults {
	t.Helper()
	f, err := ParseFaults(text)
	must(t, err)
	return f
}

func TestFaultsHitTheCallsTheyName(t *testing.T) {
	l, _ := openSim(t, "sim:2",
		SimOptions{Faults: parse(t, "lock:permission; 1/read:unsupported ;unlock:transient@1x2")})
	list := sims(t, l)
	if err := list[0].Set(CoreClock, 802); !errors.Is(err, ErrPermission) {
		t.Errorf("lock: %v", err)
	}
	if f, _ := list[0].Held(CoreClock); f != 0 {
		t.Errorf("locked at %v in spite of the error", f)
	}
	read(t, list[0])
	if _, err := list[1].Read(); !errors.Is(err, ErrNotSupported) {
		t.Errorf("read of the second GPU: %v", err)
	}
	var failed [4]bool
	for i := range failed {
		failed[i] = list[0].Release(CoreClock) != nil
	}
	if failed[0] || !failed[1] || !failed[2] || failed[3] {
		t.Errorf("unlock failed: %v, want only the second and third time", failed)
	}
}

func TestATransientFaultIsNoneOfTheKnownErrors(t *testing.T) {
	g, _ := oneSim(t, SimOptions{Faults: parse(t, "*:transientx1")})
	_, err := g.Read()
	if err == nil {
		t.Fatal("no error")
	}
	for _, known := range []error{ErrPermission, ErrNotSupported, ErrLost, ErrReloaded} {
		if errors.Is(err, known) {
			t.Errorf("%v is %v", err, known)
		}
	}
	read(t, g)
}

func TestALostGPUStaysLostUntilAReboot(t *testing.T) {
	dir := t.TempDir()
	l, _ := openSim(t, "sim", SimOptions{Dir: dir, Faults: parse(t, "read:lost@1")})
	g := sims(t, l)[0]
	must(t, g.Set(CoreClock, 802))
	read(t, g)
	if _, err := g.Read(); !errors.Is(err, ErrLost) {
		t.Errorf("read: %v", err)
	}
	if err := g.Release(CoreClock); !errors.Is(err, ErrLost) {
		t.Errorf("unlock: %v", err)
	}
	next, _ := openSim(t, "sim", SimOptions{Dir: dir})
	again := sims(t, next)[0]
	if _, err := again.Read(); !errors.Is(err, ErrLost) {
		t.Errorf("read by another process: %v", err)
	}
	must(t, again.Reboot())
	back := sims(t, next)[0]
	if r := read(t, back); r.Throttle&ThrottleLocked != 0 {
		t.Error("locked after a reboot")
	}
}

func TestFaultsThatChangeTheGPULetTheCallGoOn(t *testing.T) {
	g, clock := oneSim(t, SimOptions{Faults: parse(t, "read:reset@1;read:foreign@2")})
	must(t, g.Set(CoreClock, 1380))
	clock.advance(time.Minute)
	if r := read(t, g); r.Energy == 0 {
		t.Error("no energy before the reset")
	}
	if r := read(t, g); r.Energy != 0 {
		t.Errorf("energy %v after the reset", r.Energy)
	}
	if r := read(t, g); r.Core != 802 {
		t.Errorf("core clock %v after somebody else's change, want 802", r.Core)
	}
}

func TestAnUnlimitedGPUTellsItsLimitAndTakesMore(t *testing.T) {
	g, _ := oneSim(t, SimOptions{Faults: parse(t, "limit:unlimited@1")})
	must(t, g.Run(Work{PID: 1, Model: someParams().Scale(100)}))
	full := read(t, g).Power
	must(t, g.Set(PowerLimit, Value(full)*3/4))
	if r := read(t, g); r.Power >= full {
		t.Errorf("%v W under a limit", r.Power)
	}
	must(t, g.InjectFault(FaultUnlimited))
	r := read(t, g)
	if limit, err := g.PowerLimit(); err != nil || limit >= r.Power || r.Power != full {
		t.Errorf("%v W under a limit of %v W, want %v W; %v", r.Power, limit, full, err)
	}
	must(t, g.InjectFault(FaultReload))
}

func TestAStuckCounterGoesOnAfterAReload(t *testing.T) {
	dir := t.TempDir()
	l, clock := openSim(t, "sim", SimOptions{Dir: dir, Faults: parse(t, "read:stuck@1")})
	g := sims(t, l)[0]
	clock.advance(time.Minute)
	first := read(t, g)
	for range 3 {
		clock.advance(time.Minute)
		if r := read(t, g); r.Energy != first.Energy+dvfsmodel.Joule(60*float64(first.Power)) {
			t.Errorf("energy %v, stuck one minute after %v", r.Energy, first.Energy)
		}
	}
	must(t, g.InjectFault(FaultReload))
	back := sims(t, l)[0]
	clock.advance(time.Minute)
	if r := read(t, back); r.Energy != dvfsmodel.Joule(60*float64(r.Power)) {
		t.Errorf("energy %v after a reload", r.Energy)
	}
}

func TestAReloadDuringALockLeavesNoLock(t *testing.T) {
	l, _ := openSim(t, "sim", SimOptions{Faults: parse(t, "lock:reload@1")})
	g := sims(t, l)[0]
	must(t, g.Set(CoreClock, 802))
	if err := g.Set(CoreClock, 945); !errors.Is(err, ErrReloaded) {
		t.Errorf("lock: %v", err)
	}
	if f, _ := g.Held(CoreClock); f != 0 {
		t.Errorf("locked at %v", f)
	}
	must(t, sims(t, l)[0].Set(CoreClock, 945))
}

func TestASlowCallHappensAtItsEndAndHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := OpenSim("sim", builtinBoards, &SimOptions{Faults: parse(t, "lock:slow=3s")})
		must(t, err)
		g := sims(t, l)[0]
		began := time.Now()
		done := make(chan error)
		go func() { done <- g.Set(CoreClock, 802) }()
		synctest.Wait()
		if r := read(t, g); r.Throttle&ThrottleLocked != 0 || time.Since(began) != 0 {
			t.Errorf("locked %v after %v", r.Throttle, time.Since(began))
		}
		must(t, <-done)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
		if f, _ := g.Held(CoreClock); f != 802 {
			t.Errorf("locked at %v", f)
		}
	})
}

func TestAFaultOfAnyCallWaitsForOneOfAGPU(t *testing.T) {
	l, _ := openSim(t, "sim", SimOptions{Faults: parse(t, "*:lost")})
	devices, err := l.Devices()
	must(t, err)
	if _, err := devices[0].Sharing(); !errors.Is(err, ErrLost) {
		t.Errorf("sharing: %v", err)
	}
}

func TestOpeningCanFail(t *testing.T) {
	faults := parse(t, "open:permissionx1")
	l, _ := openSim(t, "sim", SimOptions{Faults: faults})
	if _, err := l.Devices(); !errors.Is(err, ErrPermission) {
		t.Errorf("first: %v", err)
	}
	if _, err := l.Devices(); err != nil {
		t.Errorf("second: %v", err)
	}
	faults.Add(Fault{GPU: -1, Op: OpAny, Kind: FaultTransient})
	if _, err := l.Devices(); err == nil {
		t.Error("an added fault is not met")
	}
	faults.Clear()
	if _, err := l.Devices(); err != nil {
		t.Errorf("cleared: %v", err)
	}
}

func TestWrongFaultsSayWhatIsWanted(t *testing.T) {
	for text, want := range map[string]string{
		"lock":                                  "operation:kind",
		"look:lost":                             `operation "look"`,
		"lock:broken":                           `kind "broken"`,
		"read:slow":                             "slow=3s",
		"read:slow=y":                           "duration",
		"read:slow=-1s":                         "duration",
		"read:lost=3s":                          "slow=3s",
		"read:lostx0":                           "count",
		"read:lost@-1":                          "calls before",
		"a/read:lost":                           `GPU "a"`,
		"open:lost":                             "1/open:lost",
		"read:lost;;x:y":                        `operation "x"`,
		"read:transient@1x99999999999999999999": "count",
	} {
		_, err := ParseFaults(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
	if _, err := ParseFaults(" ; "); err != nil {
		t.Errorf("no faults: %v", err)
	}
}

func TestWrongSpecsSayWhatIsWanted(t *testing.T) {
	for spec, want := range map[string]string{
		"": "want sim", "nvml": "want sim", "sim:0": "from 1 to", "sim:65": "from 1 to", "sim:x": "from 1 to",
		"sim,colour=red": "simulator option", "sim,": "simulator option", "sim,model=": "simulator option",
		"sim,model=V10": `want one of V100, `, "sim,model=paper": "GPU model paper",
		"sim,lock=some": "simulator option",
		"sim,speed=0":   "above 0", "sim,speed=fast": "above 0", "sim,speed=NaN": "above 0",
		"sim,speed=1e7": "above 0", "sim,speed": "above 0",
	} {
		_, err := OpenSim(spec, builtinBoards, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", spec, err, want)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	for _, s := range []string{
		"lock:permission;read:slow=3s;*:lost", "1/unlock:transient@2x3",
		"read:slow=1h2m@7x8;;", "x/y:z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseFaults(text)
		if err != nil {
			return
		}
		for _, fault := range list {
			again, err := parseFaults(fault.String())
			if err != nil || len(again) != 1 || again[0] != fault {
				t.Fatalf("%+v is written %q and read as %+v, %v", fault, fault.String(), again, err)
			}
		}
	})
}

func FuzzParseSimSpec(f *testing.F) {
	for _, s := range []string{
		"sim", "sim:4", "sim:4,model=V100",
		"sim:64,lock=both,energy=off,minor=reverse,mig,mps,speed=60",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSimSpec(text)
		if err == nil && (s.count < 1 || s.count > MaxSims || s.model == "" || !(s.speed > 0)) {
			t.Fatalf("%q gives %+v", text, s)
		}
	})
}

func FuzzSimState(f *testing.F) {
	l, err := OpenSim("sim:2,model=GTX1080Ti", builtinBoards, &SimOptions{Now: newClock().now})
	if err != nil {
		f.Fatal(err)
	}
	m := l.machine
	m.states[1].Set[CoreClock], m.states[0].Work = 1800, []Work{{PID: 4, Model: someParams(), Done: 0.5, Mem: 1}}
	good, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(strings.Replace(string(good), "0.5", "1e-300", 1)))
	f.Add([]byte(`{"Version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		states, err := m.decode(data)
		if err != nil {
			return
		}
		for i := range states {
			states[i].advanceTo(m.model, newClock().now().AddDate(10, 0, 0))
			if r := states[i].reading(m.model, newClock().now()); !(r.Power >= 0) || !(r.Core > 0) {
				t.Fatalf("reading %+v", r)
			}
			if err := states[i].validate(m.model); err != nil {
				t.Fatalf("ten years on: %v", err)
			}
		}
	})
}

func TestOneGPUOfSeveralIsLostOrMissingWhenTheyAreOpened(t *testing.T) {
	for _, c := range []struct {
		faults string
		want   []int // by place in the list: the GPU's index, -1 for one that couldn't be opened
		err    error
	}{
		{"", []int{0, 1, 2, 3}, nil},
		{"1/open:lost", []int{0, -1, 2, 3}, ErrLost},
		{"1/open:permission", []int{0, -1, 2, 3}, ErrPermission},
		{"1/open:missing", []int{0, 2, 3}, nil},
		{"0/open:missing;3/open:lost", []int{1, 2, -1}, ErrLost},
		{"open:permission", nil, ErrPermission},
	} {
		l, _ := openSim(t, "sim:4,minor=reverse", SimOptions{Faults: parse(t, c.faults)})
		devices, err := l.Devices()
		if !errors.Is(err, c.err) || len(devices) != len(c.want) {
			t.Errorf("%q: %d devices, %v", c.faults, len(devices), err)
			continue
		}
		for i, want := range c.want {
			switch d := devices[i]; {
			case want < 0 && d != nil, want >= 0 && (d == nil || d.Identity() != l.machine.ids[want]):
				t.Errorf("%q: %v in place %d, want GPU %d", c.faults, d, i, want)
			}
		}
	}
}

func TestABootNumbersTheDeviceFilesWithoutTheMissingGPU(t *testing.T) {
	dir := t.TempDir()
	l, _ := openSim(t, "sim:4,minor=2/0/3/1", SimOptions{Dir: dir})
	must(t, sims(t, l)[1].InjectFault(FaultMissing))
	must(t, sims(t, l)[2].Set(CoreClock, 802))
	minors := func() (list []int) {
		next, _ := openSim(t, "sim:4,minor=2/0/3/1", SimOptions{Dir: dir})
		devices, err := next.Devices()
		must(t, err)
		for _, d := range devices {
			list = append(list, d.Identity().Minor)
		}
		return list
	}
	if got := minors(); !slices.Equal(got, []int{2, 3, 1}) {
		t.Errorf("minor numbers %v after the loss", got)
	}
	must(t, l.Reboot())
	if got := minors(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("minor numbers %v after a boot without it", got)
	}
	must(t, sims(t, l)[1].Reboot())
	must(t, l.Reboot())
	if got := minors(); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("minor numbers %v after it was put back", got)
	}
	if f, err := sims(t, l)[2].Held(CoreClock); f != 0 || err != nil {
		t.Errorf("locked at %v after a boot, %v", f, err)
	}
}

func TestWrongMinorNumbersSayWhatIsWanted(t *testing.T) {
	for _, spec := range []string{
		"sim:2,minor=0", "sim:2,minor=0/0", "sim:2,minor=0/x", "sim:2,minor=0/-1",
		"sim:2,minor=", "sim,minor=0/1", "sim:2,minor=0/999",
	} {
		if _, err := OpenSim(spec, builtinBoards, nil); err == nil || !strings.Contains(err.Error(), "minor=") {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"3.5,2\n# x\n\n1,1", "", "1", "1,2,3", "1e999,1", "-1,1", "NaN,1", "1," + strings.Repeat("1", 70_000),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		phases, err := parseLoad(strings.NewReader(text))
		if (err == nil) != (len(phases) > 0) {
			t.Fatalf("%v, %v", phases, err)
		}
		for _, p := range phases {
			if !(p.Busy > 0 && p.Wait > 0 && p.Busy+p.Wait < 1e7) {
				t.Fatalf("%+v", p)
			}
		}
	})
}
