package slurmconf_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/slurmconf"
)

// confOf returns a folder of Slurm's configuration. Without a Gres, slurm.conf doesn't
// name the node.
func confOf(gresConf, gres string) fstest.MapFS {
	node := "NodeName=n9 Gres=gpu:9\n"
	if gres != "" {
		node = "NodeName=DEFAULT Gres=gpu:1\nNodeName=n[1-3] CPUs=4 Gres=" + gres + "\n" + node
	}
	return fstest.MapFS{
		"etc/slurm/gres.conf":                       {Data: []byte(gresConf)},
		"etc/slurm/slurm.conf":                      {Data: []byte("ClusterName=c\nInclude nodes.conf\n")},
		"etc/slurm/nodes.conf":                      {Data: []byte(node)},
		"dev/gpu/by-slot/7":                         {Mode: fs.ModeSymlink, Data: []byte("../../nvidia5")},
		"dev/gpu/nvidia1":                           {Mode: fs.ModeSymlink, Data: []byte("/dev/nvidia6")},
		"sys/class/drm/card1/device/drm/renderD129": {},
		"sys/class/drm/card2/device/drm/renderD128": {},
		"dev/gpu/part1":                             {Mode: fs.ModeSymlink, Data: []byte("/dev/nvidia-caps/cap1")},
		"dev/nvidia90":                              {Mode: fs.ModeSymlink, Data: []byte("nvidia90")},
	}
}

func a100s(minors ...int) []slurmconf.DriverGPU {
	list := make([]slurmconf.DriverGPU, len(minors))
	for i, n := range minors {
		list[i] = slurmconf.DriverGPU{Minor: n}
		if n >= 0 {
			list[i].Model = "NVIDIA A100-SXM4-40GB"
		}
	}
	return list
}

func mi210s(renderNodes ...int) []slurmconf.DriverGPU {
	list := a100s(renderNodes...)
	for i := range list {
		if list[i].Minor >= 0 {
			list[i].Model = "AMD Instinct MI210"
		}
	}
	return list
}

func TestSlurmsNumbersMeanTheGPUsThatSlurmdGivesOut(t *testing.T) {
	const off = "Name=gpu File=/dev/nvidia[0-3]"
	checkNumbers(t, map[string]numbersCase{
		"by file":              {off, "gpu:4", a100s(3, 2, 1, 0), []int{3, 2, 1, 0}},
		"one missing, by file": {off, "gpu:4", a100s(0, 2, 3), []int{0, -1, 1, 2}},
		"one dead, by file":    {off, "gpu:4", a100s(0, -1, 2, 3), []int{0, -1, 2, 3}},
		"a file left out": {
			"Name=gpu File=/dev/nvidia[1-3]", "gpu:3", a100s(0, 1, 2, 3), []int{1, 2, 3},
		},
		"by file, not in slurm.conf": {off, "", a100s(1, 0, 3, 2), []int{1, 0, 3, 2}},
		"a file twice": {
			"Name=gpu File=/dev/nvidia0\nName=gpu File=/dev/nvidia0", "gpu:2", a100s(0, 1), nil,
		},
		"no file at all":                    {"Name=gpu Count=2", "gpu:2", a100s(0, 1), nil},
		"another kind of GPU is looked for": {"AutoDetect=rsmi\n" + off, "gpu:4", a100s(0, 1, 2, 3), nil},

		"nvml": {"AutoDetect=nvml", "gpu:4", a100s(3, 2, 1, 0), []int{0, 1, 2, 3}},
		"nvml, with files": {
			"AutoDetect=nvml\n" + off, "gpu:4", a100s(3, 2, 1, 0), []int{0, 1, 2, 3},
		},
		"nvml, a file left out": {
			"AutoDetect=nvml\nName=gpu File=/dev/nvidia[1-3]", "gpu:3", a100s(3, 0, 1, 2), []int{0, 2, 3},
		},
		"nvml, fewer in slurm.conf": {"AutoDetect=nvml", "gpu:2", a100s(3, 1, 2, 0), []int{1, 3}},
		"nvml, one dead":            {"AutoDetect=nvml", "gpu:4", a100s(3, -1, 1, 0), []int{0, -1, 2, 3}},
		"nvml, one dead, with files": {
			"AutoDetect=nvml\n" + off, "gpu:4", a100s(3, -1, 1, 0), []int{0, -1, 2, 3},
		},
		"nvml, one missing":             {"AutoDetect=nvml", "gpu:4", a100s(0, 2, 3), nil},
		"nvml, one missing, with files": {"AutoDetect=nvml\n" + off, "gpu:4", a100s(0, 2, 3), nil},
		"nvml, not in slurm.conf":       {"AutoDetect=nvml", "", a100s(0, 1), nil},
		"nvml, typed": {
			"AutoDetect=nvml", "gpu:a100:4", a100s(3, 2, 1, 0), []int{0, 1, 2, 3},
		},
		"nvml, a type of the site's": {
			"AutoDetect=nvml\nName=gpu Type=big File=/dev/nvidia[0-1]", "gpu:big:2", a100s(1, 0), []int{1, 0},
		},
		"the same, one dead": {
			"AutoDetect=nvml\nName=gpu Type=big File=/dev/nvidia[0-1]", "gpu:big:2", a100s(-1, 0), nil,
		},
		"nvml, off on this node": {
			"NodeName=n1 AutoDetect=off\nAutoDetect=nvml\n" + off, "gpu:4", a100s(3, 2, 1, 0),
			[]int{3, 2, 1, 0},
		},

		"nvidia":            {"AutoDetect=nvidia", "gpu:4", a100s(3, 2, 1, 0), []int{3, 2, 1, 0}},
		"nvidia, one dead":  {"AutoDetect=nvidia", "gpu:4", a100s(3, -1, 1, 0), []int{3, 2, -1, 0}},
		"nvidia, many dead": {"AutoDetect=nvidia", "gpu:4", a100s(9, -1, -1, 0), nil},
		"slurm.conf's types": {
			"Name=gpu Type=a File=/dev/nvidia0\nName=gpu Type=b File=/dev/nvidia1", "gpu:b:1,gpu:a:1",
			a100s(0, 1),
			[]int{1, 0},
		},
		"types without counts": {
			"Name=gpu Type=a File=/dev/nvidia0\nName=gpu Type=b File=/dev/nvidia1", "", a100s(0, 1), nil,
		},
		"fewer in slurm.conf": {off, "gpu:2", a100s(0, 1, 2, 3), []int{0, 1}},
		"none for Slurm":      {off, "shard:2", a100s(0, 1), nil},
		"parts of a GPU beside": {
			"Name=gpu MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21\nName=gpu File=/dev/nvidia1",
			"gpu:2", a100s(0, 1),
			[]int{-1, 1},
		},
	})
}

func TestSlurmsNumbersMeanAMDsGPUsByTheirRenderNodes(t *testing.T) {
	checkNumbers(t, map[string]numbersCase{
		"rsmi": {"AutoDetect=rsmi", "gpu:4", mi210s(131, 128, 130, 129), []int{0, 1, 2, 3}},
		"rsmi, with files": {
			"AutoDetect=rsmi\nName=gpu File=/dev/dri/renderD[128-131]", "gpu:4", mi210s(131, 128, 130, 129),
			[]int{0, 1, 2, 3},
		},
		"rsmi, one dead":    {"AutoDetect=rsmi", "gpu:4", mi210s(128, -1, 130, 131), []int{0, -1, 2, 3}},
		"rsmi, one missing": {"AutoDetect=rsmi", "gpu:4", mi210s(128, 130, 131), nil},
		"rsmi, typed": {
			"AutoDetect=rsmi", "gpu:mi210:2", mi210s(128, 129), []int{0, 1},
		},
		"render nodes by file": {
			"Name=gpu File=/dev/dri/renderD[128-131]", "gpu:4", mi210s(131, 130, 129, 128), []int{3, 2, 1, 0},
		},
		"AMD's by another kind of file": {
			"Name=gpu File=/dev/dri/card[4-5]", "gpu:2", mi210s(128, 129), []int{-1, -1},
		},
		"nvml for AMD's":   {"AutoDetect=nvml", "gpu:2", mi210s(128, 129), nil},
		"nvidia for AMD's": {"AutoDetect=nvidia", "gpu:2", mi210s(128, 129), nil},
	})
}

// numbersCase is a configuration, the GPUs of a node, and which of them Slurm's numbers mean.
type numbersCase struct {
	conf, gres string
	gpus       []slurmconf.DriverGPU // by PCI bus id
	want       []int                 // nil: not certain
}

func checkNumbers(t *testing.T, cases map[string]numbersCase) {
	t.Helper()
	for name, c := range cases {
		m, err := slurmconf.ReadGres(confOf(c.conf, c.gres), "etc/slurm", "n1")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := m.DriverIndexes(c.gpus)
		switch {
		case c.want == nil && !errors.Is(err, slurmconf.ErrOrder):
			t.Errorf("%s: %v, %v, want it uncertain", name, got, err)
		case c.want != nil && (err != nil || !slices.Equal(got, c.want)):
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
}

// slurmdGPU is a GPU as slurmd keeps it.
type slurmdGPU struct {
	kind, file string
	pci        int // -1: slurmd didn't find it by itself
}

// slurmd returns what slurmd makes of a configuration: which GPU, by its PCI place, each
// number means; -1 where a number means none. ok is false where it finds fewer than
// slurm.conf says: slurmctld drains the node then. It follows _merge_config of Slurm's
// gres.c and _merge_system_gres_conf of gres_gpu.c step by step, on whole lists, for GPUs
// that are all there.
func slurmd(
	auto string, conf []slurmdGPU, gres []slurm.Gres, minors []int, models []string,
) (means []int, ok bool) {
	var merged []slurmdGPU
	for _, w := range gres {
		left := int(w.Count)
		for i := 0; i < len(conf) && left > 0; {
			if w.Type != "" && conf[i].kind != w.Type {
				i++
				continue
			}
			g := conf[i]
			if w.Type == "" {
				g.kind = ""
			}
			merged, conf, left = append(merged, g), slices.Delete(slices.Clone(conf), i, i+1), left-1
		}
		for range left {
			merged = append(merged, slurmdGPU{kind: w.Type, pci: -1})
		}
	}
	file := func(pci int) string { return fmt.Sprintf("/dev/nvidia%d", minors[pci]) }
	final := merged
	if auto == "nvml" || auto == "nvidia" {
		final = detect(merged, file, models, len(minors))
		byFile := func(a, b slurmdGPU) int {
			return cmp.Or(len(a.file)-len(b.file), strings.Compare(a.file, b.file))
		}
		slices.SortStableFunc(final, byFile)
		if auto == "nvml" {
			links := func(g slurmdGPU) int {
				if g.pci < 0 {
					return len(minors)
				}
				return g.pci
			}
			slices.SortStableFunc(final, func(a, b slurmdGPU) int { return links(a) - links(b) })
		}
	}
	for _, g := range final {
		if g.file != "" {
			means = append(means, slices.IndexFunc(driverOrder(len(minors)), func(pci int) bool {
				return file(pci) == g.file
			}))
		}
	}
	total := 0
	for _, w := range gres {
		total += int(w.Count)
	}
	return means, len(means) == total
}

func driverOrder(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// detect matches configured GPUs with those on the machine.
func detect(conf []slurmdGPU, file func(int) string, models []string, n int) []slurmdGPU {
	system := make([]slurmdGPU, n)
	for i := range system {
		system[i] = slurmdGPU{
			kind: strings.ReplaceAll(strings.ToLower(models[i]), " ", "_"), file: file(i), pci: i,
		}
	}
	byFile := func(a, b slurmdGPU) int {
		if (a.file == "") != (b.file == "") {
			return len(b.file) - len(a.file) // those without a file last
		}
		return cmp.Or(len(a.file)-len(b.file), strings.Compare(a.file, b.file))
	}
	byKind := func(a, b slurmdGPU) int {
		return cmp.Or(len(b.kind)-len(a.kind), strings.Compare(a.kind, b.kind), byFile(a, b))
	}
	single := slices.Clone(conf)
	slices.SortStableFunc(single, byKind)
	slices.SortStableFunc(system, byKind)
	typed := slices.ContainsFunc(single, func(g slurmdGPU) bool { return g.kind != "" })
	used := make([]bool, len(single))
	for s := range system {
		i := -1
		for k := range single {
			if !used[k] && strings.Contains(system[s].kind, single[k].kind) && i < 0 {
				i = k
			}
		}
		switch {
		case i >= 0:
			used[i], system[s].kind = true, single[i].kind
		case !typed:
			system[s].kind = ""
		}
	}
	slices.SortStableFunc(single, byFile)
	slices.SortStableFunc(system, byFile)
	taken := make([]bool, n)
	var out []slurmdGPU
	for _, g := range single {
		at := slices.IndexFunc(driverOrder(n), func(s int) bool {
			return !taken[s] && (g.kind == "" || g.kind == system[s].kind) &&
				(g.file == "" || g.file == system[s].file)
		})
		switch {
		case at >= 0:
			taken[at], out = true, append(out, system[at])
		case g.file != "":
			out = append(out, g)
		}
	}
	return out
}

// drawnConf is a configuration as sites write them, with what it says.
type drawnConf struct {
	text, gres, auto string
	records          []slurmdGPU
	kinds            []string
}

// true reports whether all types of files are those of their GPUs.
func (c *drawnConf) true(minors []int, models []string) bool {
	return !slices.ContainsFunc(c.records, func(g slurmdGPU) bool {
		i := slices.IndexFunc(minors, func(n int) bool { return g.file == fmt.Sprintf("/dev/nvidia%d", n) })
		return g.kind != "" && !strings.Contains(strings.ToLower(models[i]), g.kind)
	})
}

func drawConf(t *rapid.T, minors []int) drawnConf {
	c := drawnConf{auto: rapid.SampledFrom([]string{"", "off", "nvml", "nvml", "nvidia"}).Draw(t, "auto")}
	c.kinds = rapid.SampledFrom([][]string{{""}, {""}, {"a100"}, {"a100", "h100"}, {"big"}}).Draw(t, "kinds")
	if c.auto != "" {
		c.text = rapid.SampledFrom([]string{
			"AutoDetect=", "NodeName=n1 AutoDetect=", "NodeName=n1 AutoDetect=off\nNodeName=n2 AutoDetect=",
		}).Draw(t, "how") + c.auto + "\n"
		if strings.Contains(c.text, "=off\nNodeName=n2") {
			c.auto = "off"
		}
	}
	files := rapid.Permutation(slices.Sorted(slices.Values(minors))).Draw(t, "files")
	if rapid.Bool().Draw(t, "ascending") {
		slices.Sort(files)
	}
	files = files[:rapid.IntRange(0, len(files)).Draw(t, "named")]
	var own []slurmdGPU
	for i, n := range files {
		g := slurmdGPU{kind: c.kinds[i%len(c.kinds)], file: fmt.Sprintf("/dev/nvidia%d", n), pci: -1}
		line := "Name=gpu File=" + g.file
		if g.kind != "" {
			line += " Type=" + g.kind
		}
		if rapid.Bool().Draw(t, "own") {
			own, line = append(own, g), "NodeName=n[1-2] "+line
		} else {
			c.records = append(c.records, g)
		}
		c.text += line + "\n"
	}
	c.records = append(c.records, own...)
	gres := make([]string, 0, len(c.kinds))
	for _, k := range rapid.Permutation(c.kinds).Draw(t, "order") {
		n := rapid.IntRange(1, len(minors)).Draw(t, "count")
		gres = append(gres, strings.ReplaceAll(fmt.Sprintf("gpu:%s:%d", k, n), "::", ":"))
	}
	if c.gres = strings.Join(gres, ","); rapid.IntRange(0, 9).Draw(t, "said") == 0 {
		c.gres = ""
	}
	return c
}

// drawFates draws what the driver counts now, and where on the bus that is.
func drawFates(t *rapid.T, minors []int, models []string) (now []slurmconf.DriverGPU, pci []int) {
	fates := []string{
		"well", "well", "well", rapid.SampledFrom([]string{"well", "dead", "gone"}).Draw(t, "failure"),
	}
	for i := range minors {
		fate := rapid.SampledFrom(fates).Draw(t, "fate")
		switch fate {
		case "well":
			now = append(now, slurmconf.DriverGPU{Minor: minors[i], Model: models[i]})
		case "dead":
			now = append(now, slurmconf.DriverGPU{Minor: -1})
		}
		if fate != "gone" {
			pci = append(pci, i)
		}
	}
	return now, pci
}

// Whatever a site's configuration is, and whichever GPUs have died or gone since
// slurmd started: a number means the GPU that slurmd gives out, or none. (Where some
// died and others went without a trace, on a node that has more GPUs than Slurm was
// told of, the driver's count can't tell that from no loss at all.)
func TestASlurmNumberMeansTheRightGPUOrNone(t *testing.T) {
	certain, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "GPUs")
		minors := rapid.Permutation(driverOrder(n)).Draw(t, "minors")
		models := rapid.SliceOfN(rapid.SampledFrom([]string{
			"NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3",
		}), n, n).Draw(t, "models")
		c := drawConf(t, minors)
		m, err := slurmconf.ReadGres(confOf(c.text, c.gres), "etc/slurm", "n1")
		if err != nil {
			t.Fatalf("%q: %v", c.text, err)
		}
		gres, err := slurm.ParseGres(c.gres)
		if err != nil {
			t.Fatal(err)
		}
		if c.gres == "" { // slurm.conf has it all the same, unseen
			for _, k := range c.kinds {
				gres = append(gres, slurm.Gres{
					Name: "gpu", Type: k, Count: int64(rapid.IntRange(1, n).Draw(t, "unseen")),
				})
			}
		}
		means, ok := slurmd(c.auto, c.records, gres, minors, models)
		now, pci := drawFates(t, minors, models)
		if slices.ContainsFunc(now, func(g slurmconf.DriverGPU) bool { return g.Minor < 0 }) &&
			!c.true(minors, models) {
			t.Skip("nobody can tell that the type of a GPU is wrong that doesn't answer")
		}
		places, err := m.DriverIndexes(now)
		all++
		if err != nil {
			if !errors.Is(err, slurmconf.ErrOrder) {
				t.Fatal(err)
			}
			return
		}
		certain++
		for number, at := range places {
			if at >= 0 && ok && number < len(means) && pci[at] != means[number] {
				t.Fatalf("gres.conf %q, Gres=%s, minors %v, models %v, now %v: number %d is taken for GPU "+
					"%d, slurmd gives out %d (of %v)",
					c.text, c.gres, minors, models, now, number, pci[at], means[number], means)
			}
		}
	})
	t.Logf("certain in %d of %d", certain, all)
	if certain < all/5 {
		t.Errorf("certain in %d of %d only", certain, all)
	}
}
