package nodepower_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/nodepower"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// tree is a fake /sys/class/powercap.
type tree fstest.MapFS

func (f tree) add(folder, name string, energy, span uint64) {
	for file, text := range map[string]string{
		"name": name, "energy_uj": strconv.FormatUint(energy, 10),
		"max_energy_range_uj": strconv.FormatUint(span, 10),
	} {
		f[folder+"/"+file] = &fstest.MapFile{Data: []byte(text + "\n"), Mode: 0o444}
	}
}

func (f tree) count(folder string, energy uint64) {
	f[folder+"/energy_uj"].Data = []byte(strconv.FormatUint(energy, 10) + "\n")
}

// server returns the tree of a machine with two packages, one with memory.
func server() tree {
	f := tree{"intel-rapl/enabled": {Data: []byte("1\n")}, "dtpm/x": {}}
	f.add("intel-rapl:0", "package-0", 1_000_000, 262_143_328_850)
	f.add("intel-rapl:0:0", "core", 7, 262_143_328_850)
	f.add("intel-rapl:0:1", "dram", 500_000, 65_712_999_613)
	f.add("intel-rapl:1", "package-1", 0, 262_143_328_850)
	f.add("intel-rapl:2", "psys", 9, 262_143_328_850)
	f.add("intel-rapl-mmio:0", "package-0", 1_000_000, 262_143_328_850)
	return f
}

func open(t interface{ Fatal(...any) }, f fs.FS) *nodepower.Meter {
	m, err := nodepower.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func next(t interface{ Fatal(...any) }, m *nodepower.Meter, at time.Duration) nodepower.EnergyStep {
	s, err := m.Next(noon.Add(at))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPackagesAndMemoryAreSummedAndNothingTwice(t *testing.T) {
	f := server()
	m := open(t, fstest.MapFS(f))
	if got := m.Domains(); !slices.Equal(got, []string{"package-0", "dram", "package-1"}) {
		t.Fatalf("domains %q", got)
	}
	if s := next(t, m, 0); s != (nodepower.EnergyStep{}) {
		t.Errorf("first step %+v", s)
	}
	f.count("intel-rapl:0", 101_000_000)
	f.count("intel-rapl:0:0", 90_000_000)
	f.count("intel-rapl:0:1", 10_500_000)
	f.count("intel-rapl:1", 40_000_000)
	f.count("intel-rapl:2", 900_000_000)
	f.count("intel-rapl-mmio:0", 101_000_000)
	if s := next(t, m, time.Second); s !=
		(nodepower.EnergyStep{Energy: 150, Time: time.Second, Known: true}) {
		t.Errorf("step %+v", s)
	}
	if s := next(t, m, time.Second); s != (nodepower.EnergyStep{}) {
		t.Errorf("the same moment again: %+v", s)
	}
}

// The kernel shows folders of the class as links to the devices.
func TestFoldersThatAreLinksAreFollowed(t *testing.T) {
	root := t.TempDir()
	device := filepath.Join(root, "devices", "intel-rapl:0")
	class := filepath.Join(root, "class")
	if err := errors.Join(os.MkdirAll(device, 0o700), os.Mkdir(class, 0o700),
		os.Symlink(device, filepath.Join(class, "intel-rapl:0"))); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"name": "package-0\n", "energy_uj": "5\n",
		"max_energy_range_uj": "65532610987\n",
	} {
		if err := os.WriteFile(filepath.Join(device, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := open(t, os.DirFS(class)).Domains(); !slices.Equal(got, []string{"package-0"}) {
		t.Errorf("domains %q", got)
	}
}

// denied refuses to open one file.
type denied struct {
	fs.FS
	path string
}

func (d denied) Open(name string) (fs.File, error) {
	if name == d.path {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Open(name)
}

func TestWithoutCountersOrTheRightToReadThemThereIsNoMeter(t *testing.T) {
	torn := server()
	torn["intel-rapl:1/energy_uj"].Data = []byte("many\n")
	blind := server()
	delete(blind, "intel-rapl:0/max_energy_range_uj")
	for name, c := range map[string]struct {
		files fs.FS
		want  error
	}{
		"no powercap":   {os.DirFS(filepath.Join(t.TempDir(), "none")), nodepower.ErrAbsent},
		"empty":         {fstest.MapFS{}, nodepower.ErrAbsent},
		"no package":    {fstest.MapFS{"intel-rapl:0/name": {Data: []byte("psys\n")}}, nodepower.ErrAbsent},
		"not allowed":   {denied{fstest.MapFS(server()), "intel-rapl:0:1/energy_uj"}, fs.ErrPermission},
		"no number":     {fstest.MapFS(torn), strconv.ErrSyntax},
		"without range": {fstest.MapFS(blind), fs.ErrNotExist},
	} {
		if m, err := nodepower.Open(c.files); m != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFailedReadingLosesNoEnergy(t *testing.T) {
	f := server()
	m := open(t, fstest.MapFS(f))
	next(t, m, 0)
	f.count("intel-rapl:0", 51_000_000)
	good := f["intel-rapl:1/energy_uj"]
	delete(f, "intel-rapl:1/energy_uj")
	if s, err := m.Next(noon.Add(time.Second)); err == nil || s != (nodepower.EnergyStep{}) {
		t.Errorf("%+v, %v", s, err)
	}
	f["intel-rapl:1/energy_uj"] = good
	if s := next(t, m, 2*time.Second); s !=
		(nodepower.EnergyStep{Energy: 50, Time: 2 * time.Second, Known: true}) {
		t.Errorf("step %+v", s)
	}
}

func TestWhatCountersCannotTellIsNotMadeUp(t *testing.T) {
	const span = 65_532_610_987 // 65 s at 1000 W
	for name, c := range map[string]struct {
		before, after uint64
		elapsed       time.Duration
	}{
		"a reset":                     {30_000_000_000, 5, time.Second},
		"a jump":                      {0, 3_000_000_000, time.Second},
		"time for more than one wrap": {0, 10_000_000, 2 * time.Minute},
		"a counter beyond its range":  {span + 10, 5, time.Second},
		"a jump to beyond its range":  {0, 2 * span, time.Minute},
	} {
		f := tree{}
		f.add("intel-rapl:0", "package-0", c.before, span)
		m := open(t, fstest.MapFS(f))
		next(t, m, 0)
		f.count("intel-rapl:0", c.after)
		if s := next(t, m, c.elapsed); s.Known || s.Energy != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		f.count("intel-rapl:0", c.after+1_000_000)
		if s := next(t, m, c.elapsed+time.Second); !s.Known || s.Energy != 1 {
			t.Errorf("%s, the step after: %+v", name, s)
		}
	}
}

// Whatever a machine draws, wherever its counters stand and wherever they wrap
// around: the steps add up to what was used.
func TestStepsAddUpOverAnyWrapAround(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := tree{}
		n := rapid.IntRange(1, 4).Draw(t, "packages")
		spans, used := make([]uint64, n), make([]uint64, n)
		folder := func(i int) string { return "intel-rapl:" + strconv.Itoa(i) }
		for i := range n {
			spans[i] = rapid.Uint64Range(60_001_000_000, 300_000_000_000).Draw(t, "span")
			used[i] = rapid.Uint64Range(0, spans[i]-1).Draw(t, "counter")
			f.add(folder(i), "package-"+strconv.Itoa(i), used[i], spans[i])
		}
		m := open(t, fstest.MapFS(f))
		next(t, m, 0)
		var want uint64
		got, at := 0.0, time.Duration(0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			ms := rapid.Uint32Range(1, 60_000).Draw(t, "ms")
			d := time.Duration(ms) * time.Millisecond
			for i := range n {
				e := rapid.Uint64Range(0, uint64(ms)*1_000_000).Draw(t, "microjoules")
				used[i], want = used[i]+e, want+e
				f.count(folder(i), used[i]%spans[i])
			}
			at += d
			s := next(t, m, at)
			if !s.Known || s.Time != d {
				t.Fatalf("step %+v", s)
			}
			got += float64(s.Energy)
		}
		if math.Abs(got-float64(want)/1e6) > 1e-6*(1+got) {
			t.Fatalf("%g J, want %g", got, float64(want)/1e6)
		}
	})
}
