package slurmconf_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/slurm/slurmconf"
)

func TestOnlyFilesThatAreKnownToBeAGPUsMeanOne(t *testing.T) {
	eight := a100s(0, 1, 2, 3, 4, 5, 6, 7)
	checkNumbers(t, map[string]numbersCase{
		"a part's capability": {
			"Name=gpu File=/dev/nvidia-caps/nvidia-cap3\nName=gpu File=/dev/nvidia1", "gpu:2", eight, []int{-1, 1},
		},
		"capabilities in a range": {
			"Name=gpu File=/dev/nvidia-caps/nvidia-cap[2-3]\nName=gpu File=/dev/nvidia0", "gpu:3", eight,
			[]int{-1, -1, 0},
		},
		"the driver's own files": {
			"Name=gpu File=/dev/nvidiactl,/dev/nvidia-uvm,/dev/nvidia-modeset,/dev/nvidia2", "gpu:4", eight,
			[]int{-1, -1, -1, 2},
		},
		"other devices with a number": {
			"Name=gpu File=/dev/sg3,/dev/dri/card1,/dev/dri/renderD1,/dev/nvidia-nvswitch2,/dev/infiniband/umad1",
			"gpu:5", eight,
			[]int{-1, -1, -1, -1, -1},
		},
		"a number that no GPU's file is written with": {
			"Name=gpu File=/dev/nvidia[00-01]", "gpu:2", eight, []int{-1, -1},
		},
		"NVIDIA's file for AMD's GPU": {
			"Name=gpu File=/dev/nvidia128,/dev/dri/renderD129", "gpu:2", mi210s(128, 129), []int{-1, 1},
		},
		"AMD's cards, as the kernel numbers them": {
			"Name=gpu File=/dev/dri/card[1-2]", "gpu:2", mi210s(128, 129), []int{1, 0},
		},
		"rsmi, by cards":   {"AutoDetect=rsmi\nName=gpu File=/dev/dri/card1", "gpu:1", mi210s(128, 129), nil},
		"a card of no GPU": {"Name=gpu File=/dev/dri/card[0-1]", "gpu:2", mi210s(128, 129), []int{-1, 1}},
		"a card and its own render node": {
			"Name=gpu File=/dev/dri/card1,/dev/dri/renderD129", "gpu:2", mi210s(128, 129), nil,
		},
		"a link": {"Name=gpu File=/dev/gpu/by-slot/7,/dev/nvidia0", "gpu:2", eight, []int{5, 0}},
		"a link with the name of another": {
			"Name=gpu File=/dev/gpu/nvidia1,/dev/nvidia0", "gpu:2", eight, []int{6, 0},
		},
		"a link to itself":   {"Name=gpu File=/dev/nvidia90,/dev/nvidia0", "gpu:2", eight, []int{-1, 0}},
		"a link to a part":   {"Name=gpu File=/dev/gpu/part1,/dev/nvidia0", "gpu:2", eight, []int{-1, 0}},
		"a link and its GPU": {"Name=gpu File=/dev/gpu/by-slot/7,/dev/nvidia5", "gpu:2", eight, nil},
		"a part and the GPU": {
			"Name=gpu MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21\nName=gpu File=/dev/nvidia0", "gpu:2",
			eight, nil,
		},
		"nvml, a link": {"AutoDetect=nvml\nName=gpu File=/dev/gpu/by-slot/7", "gpu:1", eight, nil},
		"nvml, a part": {"AutoDetect=nvml\nName=gpu File=/dev/nvidia-caps/nvidia-cap3", "gpu:1", eight, nil},
		"nvml, a part, and one dead": {
			"AutoDetect=nvml\nName=gpu File=/dev/nvidia-caps/nvidia-cap3,/dev/nvidia[1-3]", "gpu:4",
			a100s(-1, 1, 2, 3), nil,
		},
		"nvml counts the parts of GPUs": {"AutoDetect=nvml", "gpu:2", divided(a100s(0, 1), 0), nil},
		"nvidia counts no parts":        {"AutoDetect=nvidia", "gpu:2", divided(a100s(0, 1), 0), []int{0, 1}},
		"rsmi counts the parts of GPUs": {"AutoDetect=rsmi", "gpu:2", divided(mi210s(128, 129), 1), nil},
		"parts don't matter by file": {
			"Name=gpu File=/dev/nvidia[0-1]", "gpu:2", divided(a100s(1, 0), 0), []int{1, 0},
		},
	})
}

func divided(list []slurmconf.DriverGPU, at int) []slurmconf.DriverGPU {
	list[at].Divided = true
	return list
}

// slurmd doesn't start with these, or reads them in another way than we do.
func TestAGresConfThatSlurmdWouldRefuseMeansNoGPU(t *testing.T) {
	for name, conf := range map[string]string{
		"fewer files than Count": "Name=gpu Count=4 File=/dev/nvidia[0-1]",
		"more files than Count":  "Name=gpu Count=1 File=/dev/nvidia[0-1]",
		"File and MultipleFiles": "Name=gpu File=/dev/nvidia0 MultipleFiles=/dev/nvidia1,/dev/nvidia2",
		"one of MultipleFiles":   "Name=gpu MultipleFiles=/dev/nvidia1",
		"two ranges in a path":   "Name=gpu File=/dev/[0,1]/nvidia[0-1]",
		"a key twice":            "Name=gpu File=/dev/nvidia0 File=/dev/nvidia1",
		"another operator":       "Name=gpu File+=/dev/nvidia0",
		"records without a file": "Name=gpu File=/dev/nvidia0\nName=gpu Count=1\nName=gpu File=/dev/nvidia1",
	} {
		m, err := slurmconf.ReadGres(fstest.MapFS{"gres.conf": {Data: []byte(conf)}}, ".", "n1")
		if err == nil {
			var places []int
			if places, err = m.DriverIndexes(a100s(0, 1, 2, 3)); err == nil {
				t.Errorf("%s: %v", name, places)
			}
		}
	}
}

func TestLinesOfSlurmsFilesAreReadAsSlurmReadsThem(t *testing.T) {
	for name, c := range map[string]struct{ gres, node string }{
		"spaces around =": {"NodeName = n1  Name = gpu  File = /dev/nvidia[2-3]", "NodeName = n1 Gres = gpu:2"},
		"quotes":          {`Name="gpu" File="/dev/nvidia2, /dev/nvidia3"`, `NodeName="n1" Gres="gpu:2"`},
		"case":            {"name=GPU FILE=/dev/nvidia[2-3] FLAGS=nvidia_gpu_env", "nodename=n1 GRES=gpu:2"},
		"links and cores": {"Name=gpu File=/dev/nvidia[2-3] Links=-1,16 Cores=0-7", "NodeName=n1 Gres=gpu:2"},
		"a default with spaces": {
			"Name=gpu Type=b File=/dev/nvidia3\nName=gpu Type=a File=/dev/nvidia2",
			"NodeName = DEFAULT Gres = gpu:a:1,gpu:b:1\nNodeName=n1",
		},
	} {
		fsys := fstest.MapFS{
			"gres.conf": {Data: []byte(c.gres)}, "slurm.conf": {Data: []byte(c.node)},
		}
		m, err := slurmconf.ReadGres(fsys, ".", "n1")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		places, err := m.DriverIndexes(a100s(0, 1, 2, 3))
		if err != nil || !slices.Equal(places, []int{2, 3}) {
			t.Errorf("%s: %v, %v", name, places, err)
		}
	}
}

// drawnFile is a device file as a site may write it, with the GPU that it is.
type drawnFile struct {
	path string
	gpu  int // place on the bus; -1: none
}

// drawFiles draws device files of a node, each once, and links to some.
func drawFiles(t *rapid.T, minors []int, fsys fstest.MapFS) []drawnFile {
	all := make([]drawnFile, 0, len(minors)+4)
	for i, minor := range minors {
		file := fmt.Sprintf("/dev/nvidia%d", minor)
		if rapid.IntRange(0, 3).Draw(t, "linked") == 0 {
			link := fmt.Sprintf("/dev/gpu/nvidia%d", rapid.IntRange(0, 5).Draw(t, "name")*10+i)
			fsys[link[1:]] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte(rapid.SampledFrom([]string{
				file, "../" + path.Base(file),
			}).Draw(t, "target"))}
			file = link
		}
		all = append(all, drawnFile{file, i})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "others") {
		form := rapid.SampledFrom([]string{
			"/dev/nvidia-caps/nvidia-cap%d", "/dev/nvidia-nvswitch%d", "/dev/dri/card%d", "/dev/dri/renderD%d",
			"/dev/nvidia-uvm%d", "/dev/infiniband/uverbs%d", "/dev/nvidia0%d", "/dev/sd%d", "/opt/dev/nvidiactl%d",
		}).Draw(t, "form")
		all = append(all, drawnFile{fmt.Sprintf(form, i), -1})
	}
	files := rapid.Permutation(all).Draw(t, "order")
	return files[:rapid.IntRange(1, len(files)).Draw(t, "named")]
}

// drawLine draws how a site writes a line with files.
func drawLine(t *rapid.T, files []string) string {
	equals := rapid.SampledFrom([]string{"=", " = ", "= "}).Draw(t, "equals")
	name := rapid.SampledFrom([]string{"Name", "name", "NAME"}).Draw(t, "case")
	join := rapid.SampledFrom([]string{" ", " \\\n", "\t"}).Draw(t, "between")
	line := name + equals + "gpu" + join + "File" + equals + strings.Join(files, ",")
	if rapid.Bool().Draw(t, "counted") {
		line += fmt.Sprintf("%sCount=%d", join, len(files))
	}
	return line + rapid.SampledFrom([]string{"", " # all of them", "\r", " Flags=explicit"}).Draw(t, "tail") + "\n"
}

// Whatever stands in File, each number means the GPU whose device file it is, or none.
func TestANumberMeansTheGPUOfItsDeviceFileOrNone(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "GPUs")
		minors := rapid.Permutation(driverOrder(n)).Draw(t, "minors")
		fsys := fstest.MapFS{}
		files := drawFiles(t, minors, fsys)
		var conf strings.Builder
		for rest := files; len(rest) > 0; {
			k := rapid.IntRange(1, len(rest)).Draw(t, "in a line")
			names := make([]string, k)
			for i := range names {
				names[i] = rest[i].path
			}
			conf.WriteString(drawLine(t, names))
			rest = rest[k:]
		}
		fsys["gres.conf"] = &fstest.MapFile{Data: []byte(conf.String())}
		m, err := slurmconf.ReadGres(fsys, ".", "n1")
		if err != nil {
			t.Fatalf("%q: %v", conf.String(), err)
		}
		gpus := a100s(minors...)
		places, err := m.DriverIndexes(gpus)
		if err != nil {
			t.Fatalf("%q: %v", conf.String(), err)
		}
		for number, f := range files {
			if number >= len(places) || places[number] != f.gpu {
				t.Fatalf("gres.conf %q, minors %v: number %d, %s, is taken for %v, want %d", conf.String(), minors,
					number, f.path, places, f.gpu)
			}
			if f.gpu >= 0 {
				found++
			}
		}
		detected := m
		detected.AutoDetect, detected.Counted = "nvml", true
		foreign := slices.ContainsFunc(files, func(f drawnFile) bool {
			return f.gpu < 0 || !strings.HasPrefix(f.path, "/dev/nvidia")
		})
		if places, err := detected.DriverIndexes(gpus); foreign && !errors.Is(err, slurmconf.ErrOrder) {
			t.Fatalf("gres.conf %q with AutoDetect=nvml: %v, %v, want it uncertain", conf.String(), places, err)
		}
	})
	if found == 0 {
		t.Error("no GPU was found")
	}
}
