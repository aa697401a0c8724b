package daemon_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/slurm/hooks"
)

const someConf = "/opt/slurm/etc/slurm.conf"

// slurmConf is Slurm's configuration of a node with so many GPUs.
func slurmConf(gres string, count int) fstest.MapFS {
	return fstest.MapFS{
		"opt/slurm/etc/gres.conf":  {Data: []byte(gres)},
		"opt/slurm/etc/slurm.conf": {Data: fmt.Appendf(nil, "NodeName=n[1-9] Gres=gpu:%d", count)},
	}
}

// lockedNow returns the GPUs that are locked, by their place in the driver's order.
func (h *house) lockedNow(t *testing.T) (found []int) {
	t.Helper()
	for i := range h.sims {
		if h.core(t, i) > 0 {
			found = append(found, i)
		}
	}
	return found
}

func TestAPrologLocksTheGPUsThatItsNumbersMean(t *testing.T) { //nolint:funlen // most of it is a table
	const four = "Name=gpu File=/dev/nvidia[0-3]"
	const simUUID = "GPU-374708ff-f771-9dd5-979e-c875d56cd228" // of the first simulated GPU
	sorted := slurmConf("AutoDetect=nvml", 4)
	files := slurmConf(four, 4)
	none := fstest.MapFS{}
	on := func(gpus ...int) hooks.Event { return hooks.Event{GPUs: gpus, Conf: someConf} }
	named := func(e hooks.Event, uuids ...hooks.Hex) hooks.Event {
		e.UUIDs = uuids
		return e
	}
	parts := on(0)
	parts.MIG = []hooks.Hex{"MIG-1"}
	reversed := func(uuids []string) []string {
		slices.Reverse(uuids)
		return uuids
	}
	same := func(uuids []string) []string { return uuids }
	for name, c := range map[string]certainty{
		"a GPU is missing": {
			"sim:4", "1/open:missing", files, nil, on(2), []int{2}, "/opt/slurm/etc/gres.conf",
		},
		"the missing GPU itself": {
			"sim:4", "1/open:missing", files, nil, on(1), nil, "/opt/slurm/etc/gres.conf",
		},
		"it is missing where Slurm sorts by PCI bus": {
			"sim:4", "1/open:missing", sorted, nil, on(2), nil, "isn't certain",
		},
		"it is lost where Slurm sorts by PCI bus": {
			"sim:4,minor=2/0/3/1", "1/open:lost", sorted, nil, on(2), []int{2}, "AutoDetect=nvml",
		},
		"device files in another order than the PCI bus": {
			"sim:4,minor=2/0/3/1", "", sorted, nil, on(0, 3), []int{0, 3}, "AutoDetect=nvml",
		},
		"the same, by device file": {
			"sim:4,minor=2/0/3/1", "", files, nil, on(0, 3), []int{1, 2}, "gres.conf",
		},
		"a part's capability file in gres.conf": {
			"sim:4", "", slurmConf("Name=gpu File=/dev/nvidia-caps/nvidia-cap3,/dev/nvidia1", 2), nil, on(0), nil,
			"gres.conf",
		},
		"a divided GPU where Slurm counts its parts": {
			"sim:4,mig", "", sorted, nil, on(2), nil, "the parts of a divided GPU",
		},
		"UUIDs": {
			"sim:4,minor=reverse", "", none, nil, named(hooks.Event{GPUs: []int{3}}, simUUID),
			[]int{0},
			"UUIDs",
		},
		"UUIDs beside the same numbers": {
			"sim:4", "", files, nil, named(on(0), simUUID), []int{0}, "UUIDs",
		},
		"UUIDs beside other numbers": {
			"sim:4", "", files, nil, named(on(1), simUUID), nil, "UUIDs",
		},
		"UUIDs beside a number that there isn't": {
			"sim:4", "", files, nil, named(on(4), simUUID), nil, "UUIDs",
		},
		"UUIDs beside numbers in another order": {
			"sim:2,minor=reverse", "", none, same, named(hooks.Event{GPUs: []int{1}}, simUUID), nil, "UUIDs",
		},
		"UUIDs of no GPU here": {
			"sim:4", "", files, nil, named(on(0), "GPU-1"), nil, "UUIDs",
		},
		"fewer UUIDs than GPUs": {
			"sim:4", "", files, nil, named(on(0, 1), simUUID), nil, "UUIDs",
		},
		"parts of a GPU": {"sim:4", "", files, nil, parts, nil, ""},
		"no gres.conf": {
			"sim:4", "", none, nil, on(0), nil, "nothing tells which GPU",
		},
		"no gres.conf, but an order": {
			"sim:2", "", none, reversed, on(0), []int{1}, "--gpu-order",
		},
		"an order that says the same": {
			"sim:2,minor=reverse", "", slurmConf("AutoDetect=nvml", 2), same, on(0), []int{0}, "gres.conf",
		},
		"an order that says something else": {
			"sim:2,minor=reverse", "", slurmConf("Name=gpu File=/dev/nvidia[0-1]", 2), same, on(0), nil,
			"by --gpu-order",
		},
		"a number beyond the list": {
			"sim:4", "", slurmConf("Name=gpu File=/dev/nvidia[0-1]", 2), nil, on(2), nil, "gres.conf",
		},
	} {
		t.Run(name, func(t *testing.T) { c.play(t) })
	}
}

// certainty is a Prolog on a machine, and which GPUs it locks.
type certainty struct {
	spec, faults string
	files        fstest.MapFS
	order        func(uuids []string) []string // of --gpu-order; nil: none
	event        hooks.Event
	want         []int  // places in the driver's order; none: nothing is touched
	said         string // by the status
}

func (c *certainty) play(t *testing.T) {
	t.Helper()
	h := openWith(t, t.TempDir(), c.spec, c.faults, &judge{setting: dvfsmodel.Setting{Core: 945}},
		func(o *daemon.Options) {
			o.Files = fs.FS(c.files)
			if c.order != nil {
				o.Order = c.order(simUUIDs(t, c.spec))
			}
		})
	e := c.event
	e.Kind, e.Job, e.GPUsKnown = hooks.Prolog, 7, true
	answer := h.say(t, &e)
	if got := h.lockedNow(t); !slices.Equal(got, c.want) || answer.Applied != (len(c.want) > 0) {
		t.Errorf("locked %v, want %v; answer %+v", got, c.want, answer)
	}
	status, err := h.client.Status(context.Background())
	if err != nil || status.Numbering == nil {
		t.Fatalf("%+v, %v", status, err)
	}
	if n := status.Numbering; !strings.Contains(n.By+n.Trouble, c.said) {
		t.Errorf("the status says %+v, want %q in it", n, c.said)
	}
	if unknown := status.Numbering.Trouble != ""; h.node.Measure(t.Context()).Unnumbered != unknown {
		t.Errorf("the metric says otherwise than the status: %v", unknown)
	}
	if len(c.want) == 0 && len(c.event.MIG) == 0 && len(status.Troubles) == 0 {
		t.Error("no trouble is noted")
	}
}

// simUUIDs returns the UUIDs of simulated GPUs, in the driver's order.
func simUUIDs(t *testing.T, spec string) (uuids []string) {
	t.Helper()
	l, err := gpu.OpenSim(spec, config.BuiltinProfiles().Board, nil)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := l.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		uuids = append(uuids, d.Identity().UUID)
	}
	return uuids
}

// Whatever the order of the device files, whichever GPU is lost or missing when epd
// starts, and however Slurm is configured: a job's own GPUs are locked, or none.
func TestAJobsOwnGPUsAreLockedOrNone(t *testing.T) {
	locked := 0
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(r, "GPUs")
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		minors := rapid.Permutation(all).Draw(r, "minors")
		files := rapid.Permutation(all).Draw(r, "files")
		detects := rapid.Bool().Draw(r, "AutoDetect")
		conf := "AutoDetect=nvml\n"
		if !detects {
			conf = fmt.Sprintf("Name=gpu File=/dev/nvidia%s\n",
				strings.Join(strings.Fields(strings.Trim(fmt.Sprint(files), "[]")), ",/dev/nvidia"))
		}
		own := func(number int) int { // which GPU slurmd gives the job, by its place in the driver's order
			if detects {
				return number
			}
			return slices.Index(minors, files[number])
		}
		hits := rapid.Permutation(all).Draw(r, "hit")[:rapid.IntRange(0, min(2, n)).Draw(r, "hits")]
		rules := make([]string, len(hits))
		for k, i := range hits {
			rules[k] = fmt.Sprintf("%d/open:%s", i,
				rapid.SampledFrom([]string{"lost", "missing"}).Draw(r, "fault"))
		}
		faults := strings.Join(rules, ";")
		gpus := rapid.Permutation(all).Draw(r, "job")[:rapid.IntRange(1, n).Draw(r, "size")]
		slices.Sort(gpus)
		spec := strings.ReplaceAll(strings.Trim(fmt.Sprintf("sim:%d,minor=%v", n, minors), "[]"), "[", "")
		h := openWith(t, t.TempDir(), strings.ReplaceAll(spec, " ", "/"), faults,
			&judge{setting: dvfsmodel.Setting{Core: 945}}, func(o *daemon.Options) {
				o.Files = slurmConf(conf, n)
			})
		defer h.stop()
		h.say(t, &hooks.Event{Kind: hooks.Prolog, Job: 7, GPUs: gpus, GPUsKnown: true, Conf: someConf})
		want := make([]int, 0, len(gpus))
		for _, number := range gpus {
			want = append(want, own(number))
		}
		slices.Sort(want)
		got := h.lockedNow(t)
		if len(got) > 0 {
			locked++
		}
		if len(got) > 0 && !slices.Equal(got, want) {
			r.Fatalf("%s, faults %q, gres.conf %q: job on %v has %v locked, its GPUs are %v", spec, faults,
				conf, gpus, got, want)
		}
		if faults == "" && !slices.Equal(got, want) {
			r.Fatalf("%s, gres.conf %q: job on %v has %v locked, its GPUs are %v", spec, conf,
				gpus, got, want)
		}
	})
	if locked == 0 {
		t.Error("nothing was ever locked")
	}
}
