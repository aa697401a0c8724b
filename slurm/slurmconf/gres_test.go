package slurmconf_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/slurmconf"
)

func minors(m slurmconf.DeviceMap) []int {
	out := make([]int, len(m.Devices))
	for i, d := range m.Devices {
		out[i] = d.Minor
	}
	return out
}

func TestPositionsInGresConfAreMappedToMinorNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		conf, node string
		want       []int
		auto       string
	}{
		"gaps": {
			"Name=gpu File=/dev/nvidia[2-3,5,7]", "n1", []int{2, 3, 5, 7}, "",
		},
		"several lines": {
			"Name=gpu Type=a File=/dev/nvidia3\nname=GPU type=b file=/dev/nvidia[0-1] # two\n", "n1",
			[]int{3, 0, 1},
			"",
		},
		"node filter": {
			"NodeName=n[1-2] Name=gpu File=/dev/nvidia0\nNodeName=n3 Name=gpu File=/dev/nvidia[0-7]\n" +
				"NodeName=n2 Name=gpu File=/dev/nvidia9", "n2", []int{0, 9}, "",
		},
		"other resources": {
			"Name=shard Count=32\nName=mps Count=100 File=/dev/nvidia5\nName=gpu File=/dev/nvidia1", "n1",
			[]int{1},
			"",
		},
		"nvml alone": {"AutoDetect=nvml\n", "n1", nil, "nvml"},
		"nvml for some": {
			"NodeName=n1 AutoDetect=off Name=gpu File=/dev/nvidia4\nNodeName=n9 AutoDetect=nvml", "n1",
			[]int{4},
			"off",
		},
		"continued line": {"Name=gpu \\\n  File=/dev/nvidia[0-1]\n", "n1", []int{0, 1}, ""},
		"include": {
			"Include gpus.inc\nName=gpu File=/dev/nvidia9", "n1", []int{6, 9}, "",
		},
		"include absolute": {"include /etc/slurm/gpus.inc", "n1", []int{6}, ""},
		"list of files": {
			"Name=gpu File=/dev/nvidia1,/dev/nvidia[4-5]", "n1", []int{1, 4, 5}, "",
		},
		"no number": {"Name=gpu File=/dev/dri/card", "n1", []int{-1}, ""},
		"a node's own lines come last": {
			"NodeName=n1 Name=gpu File=/dev/nvidia0\nName=gpu File=/dev/nvidia7", "n1", []int{7, 0}, "",
		},
		"a node's own AutoDetect counts": {
			"NodeName=n1 AutoDetect=off\nAutoDetect=nvml\nName=gpu File=/dev/nvidia4", "n1", []int{4}, "off",
		},
		"AutoDetect of a line of one kind": {
			"Name=gpu AutoDetect=nvml File=/dev/nvidia4", "n1", []int{4}, "",
		},
		"parts of a GPU": {
			"Name=gpu MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21\nName=gpu File=/dev/nvidia1",
			"n1",
			[]int{-1, 1},
			"",
		},
		"found by count": {"Name=gpu Count=2", "n1", []int{-1, -1}, ""},
	} {
		fsys := fstest.MapFS{
			"etc/slurm/gres.conf": {Data: []byte(c.conf)},
			"etc/slurm/gpus.inc":  {Data: []byte("Name=gpu File=/dev/nvidia6\n")},
		}
		m, err := slurmconf.ReadGres(fsys, "etc/slurm", c.node)
		if err != nil || m.AutoDetect != c.auto || len(m.Devices) != len(c.want) {
			t.Errorf("%s: %+v, %v", name, m, err)
			continue
		}
		for i, n := range minors(m) {
			if n != c.want[i] {
				t.Errorf("%s: minors %v, want %v", name, minors(m), c.want)
				break
			}
		}
	}
}

func TestABadGresConfIsAnErrorWithItsLine(t *testing.T) {
	for name, conf := range map[string]string{
		"range": "\nName=gpu File=/dev/nvidia[2-", "word": "\nName=gpu x", "nodes": "\nNodeName=n[ Name=gpu",
		"path": "\nName=gpu File=nvidia0", "loop": "\nInclude gres.conf", "missing": "\nInclude nosuch",
	} {
		_, err := slurmconf.ReadGres(fstest.MapFS{"gres.conf": {Data: []byte(conf)}}, ".", "n1")
		var at *slurm.ParseError
		if !errors.As(err, &at) || at.Line != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecordedGresConf(t *testing.T) {
	recorded, err := os.ReadFile(shareddata.Path(t, "../slurm-lab/samples/gres.conf"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := slurmconf.ReadGres(fstest.MapFS{"gres.conf": {Data: recorded}}, ".", "n2")
	if err != nil || len(m.Devices) != 8 || m.Devices[7].Minor != 7 || m.Devices[7].Type != "h200" ||
		!strings.HasSuffix(m.Devices[0].File, "/nvidia0") {
		t.Errorf("%+v, %v", m, err)
	}
}

func FuzzReadGres(f *testing.F) {
	f.Add("Name=gpu File=/dev/nvidia[2-3,5,7]\nInclude gres.conf\nAutoDetect=nvml \\\n")
	f.Fuzz(func(t *testing.T, conf string) {
		m, err := slurmconf.ReadGres(fstest.MapFS{"gres.conf": {Data: []byte(conf)}}, ".", "n1")
		if err == nil && len(m.Devices) > 1024 {
			t.Error(len(m.Devices))
		}
	})
}
