package gpucheck_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/gpu/gpucheck"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// looked returns the report of one simulated GPU, by profiles.
func looked(t *testing.T, spec, profiles string) gpucheck.GPU {
	t.Helper()
	l, err := gpu.OpenSim(spec, config.BuiltinProfiles().Board, nil)
	must(t, err)
	known, err := config.ReadProfiles(strings.NewReader(profiles), "gpus.toml")
	must(t, err)
	r, err := gpucheck.Check(t.Context(), gpucheck.Options{
		Library: l, Boards: known.Board, Watch: 300 * time.Millisecond, Every: 10 * time.Millisecond,
		NoLoad: "none here",
	})
	must(t, err)
	if !r.OK() || r.GPUs[0].NoLoad != "none here" {
		t.Errorf("%+v", r)
	}
	return r.GPUs[0]
}

const v100 = `[[gpu]]
name = "V100"
default_core_mhz = 1380
default_mem_mhz = 877
clocks = [{ mem_mhz = [877], core_mhz = [802, 945, 1087, 1230, 1380] }]
idle_w = 30
busy_w = 300
limit_w_default = 300
core_lock = true
memory_lock = false
energy_scope = "gpu"
`

func TestWhatTheCatalogueSaysOtherwiseIsFound(t *testing.T) {
	if g := looked(t, "sim", v100); len(g.Differs) > 0 || g.Catalogue != "V100" {
		t.Errorf("%+v", g.Differs)
	}
	other := strings.NewReplacer("802, ", "", "idle_w = 30", "idle_w = 60", "limit_w_default = 300",
		"limit_w_default = 250\nestimate = [\"idle_w\"]", "core_lock = true", "core_lock = false", `"gpu"`,
		`"none"`).Replace(v100)
	want := []gpucheck.Difference{
		{Key: "clocks", Here: "877: 5 from 802 to 1380 MHz", Catalogue: "877: 4 from 945 to 1380 MHz"},
		{Key: "core_lock", Here: "true", Catalogue: "false"},
		{Key: "limit_w_default", Here: "300", Catalogue: "250"},
		{Key: "energy_scope", Here: "true counter", Catalogue: "false counter"},
		{Key: "idle_w", Here: "30.0", Catalogue: "60.0", Estimate: true},
	}
	if g := looked(t, "sim", other); !slices.Equal(g.Differs, want) {
		t.Errorf("%+v", g.Differs)
	}
	g := looked(t, "sim,model=GTX1080Ti", v100)
	if g.Catalogue != "" || !slices.Contains(g.Remarks, `no GPU model "GTX1080Ti" is known`) {
		t.Errorf("%+v", g)
	}
}

// locker locks a simulated GPU in this process, and gives back less than it should.
type locker struct {
	gpu     *gpu.Sim
	unset   []gpu.Control // before it would be killed
	release []gpu.Control
}

func (l locker) Lock(_ context.Context, _ string, at dvfsmodel.Setting) (time.Duration, func() error, error) {
	for c := range gpu.NumControls {
		if v := c.ValueIn(at); v != 0 {
			if err := l.gpu.Set(c, v); err != nil {
				return 0, nil, err
			}
		}
	}
	return time.Millisecond, func() error { return l.free(l.unset) }, nil
}

func (l locker) Restore(context.Context) error { return l.free(l.release) }

func (l locker) free(list []gpu.Control) error {
	for _, c := range list {
		if err := l.gpu.Release(c); err != nil {
			return err
		}
	}
	return nil
}

func TestALockThatIsLostOrLeftIsAFault(t *testing.T) {
	core, limit := []gpu.Control{gpu.CoreClock}, []gpu.Control{gpu.PowerLimit}
	both := append(slices.Clone(core), limit...)
	for _, c := range []struct {
		unset, release []gpu.Control
		says           string
	}{
		{nil, both, ""},
		{nil, core, "it isn't as before"},
		{nil, limit, "after it was given back, it was at"},
		{limit, both, "after the process that had locked it was killed: the power limit is at"},
		{core, both, "after the process that had locked it was killed: the core clock is at"},
	} {
		l, err := gpu.OpenSim("sim", config.BuiltinProfiles().Board, nil)
		must(t, err)
		sims, err := l.Sims()
		must(t, err)
		r, err := gpucheck.Check(t.Context(), gpucheck.Options{
			Library: l, Boards: config.BuiltinProfiles().Board, Watch: 20 * time.Millisecond, Every: time.Millisecond,
			Load: func(context.Context, gpu.Identity) (func(), error) {
				work := dvfsmodel.Params{P0: 20, Gamma: 10, C: 50, D: 90, Delta: 0.5, T0: 10}
				return func() {}, sims[0].Run(gpu.Work{PID: 1, Model: work})
			},
			Locker: locker{sims[0], c.unset, c.release},
		})
		must(t, err)
		faults := strings.Join(r.GPUs[0].Faults, "; ")
		if r.OK() != (c.says == "") || !strings.Contains(faults, c.says) || r.GPUs[0].Lock.Restored &&
			len(c.release) < 2 {
			t.Errorf("%v, %v: %s", c.unset, c.release, faults)
		}
	}
}

// A stand-in of a compiler, whose programs sleep.
const compiler = `#!/bin/sh
grep -q __global__ "$4" || exit 3
cat >"$3" <<'END'
#!/bin/sh
echo "$CUDA_VISIBLE_DEVICES and $ROCR_VISIBLE_DEVICES, $1" >"$(dirname "$0")/ran"
exec sleep 60
END
chmod 700 "$3"
`

func TestALoadIsMadeByACompiler(t *testing.T) {
	bin, folder := t.TempDir(), t.TempDir()
	load, why := gpucheck.CompilerLoad(folder, "no-such-compiler")
	if load != nil || !strings.Contains(why, "no-such") {
		t.Errorf("%q", why)
	}
	must(t, os.WriteFile(filepath.Join(bin, "nvcc"), []byte(compiler), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	load, _ = gpucheck.CompilerLoad(folder, "hipcc-that-is-not-here", "nvcc")
	for range 2 { // the second time it is there
		stop, err := load(context.Background(), gpu.Identity{UUID: "GPU-1"})
		must(t, err)
		stop()
		ran, err := os.ReadFile(filepath.Join(folder, "ran"))
		if err != nil || string(ran) != "GPU-1 and GPU-1, 100\n" {
			t.Errorf("ran for %q, %v", ran, err)
		}
	}
	for says, script := range map[string]string{
		"no device":       "echo no device >&2; exit 1\n",
		"ended by itself": "printf '#!/bin/sh\\nexit 1\\n' >$3; chmod 700 $3\n",
	} {
		must(t, os.WriteFile(filepath.Join(bin, "nvcc"), []byte("#!/bin/sh\n"+script), 0o700))
		load, _ = gpucheck.CompilerLoad(t.TempDir(), "nvcc")
		_, err := load(context.Background(), gpu.Identity{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
