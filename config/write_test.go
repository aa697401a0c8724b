package config

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it):\n%s", path, got)
	}
}

func TestTheDefaultTextIsAsPublishedAndLoadsToTheDefaults(t *testing.T) {
	text := DefaultText()
	golden(t, "testdata/default.toml", text)
	if c := load(t, text); !sameConfig(c, Default()) {
		t.Errorf("loaded %+v, want %+v", c, Default())
	}
}

func TestTheDefaultTextStillLoadsWithDerivedLinesUncommented(t *testing.T) {
	var lines []string
	for line := range strings.Lines(DefaultText()) {
		if strings.Contains(line, "# from ") {
			line = strings.TrimPrefix(line, "# ")
		}
		lines = append(lines, line)
	}
	if c := load(t, strings.Join(lines, "")); !sameConfig(c, Default()) {
		t.Errorf("loaded %+v, want %+v", c, Default())
	}
}

const siteConfig = `[objective]
name = "time"
[policy]
offline = "edl:0.8,park=never"
rho = 4
[cluster]
name = "site \"A\""
slot_s = 1e12
[[cluster.nodes]]
gpu_model = "H100"
gpus = 8
turn_on_delay_s = 120.5
[[cluster.nodes]]
name = "pair"
gpu_model = "paper"
gpus = 1
` + gpuTable + `[[gpu]]
name = "continuous"
range = "narrow"
idle_w = 1
`

func TestTheShownConfigurationSaysWhereValuesComeFromAndLoadsAgain(t *testing.T) {
	c := load(t, siteConfig)
	var out bytes.Buffer
	if err := c.Show(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/show.toml", out.String())
	if again := load(t, out.String()); !sameConfig(c, again) {
		t.Errorf("loaded %+v, want %+v", again, c)
	}
}

func TestAShownConfigurationWithPricesLoadsAgain(t *testing.T) {
	c := load(t, prices+"cost_per_gpu_hour = 2\n")
	var out bytes.Buffer
	if err := c.Show(&out); err != nil {
		t.Fatal(err)
	}
	if again := load(t, out.String()); !sameConfig(c, again) || again.Goal() != c.Goal() {
		t.Errorf("loaded %+v, want %+v", again, c)
	}
}

func TestAFailedWriteIsReported(t *testing.T) {
	if err := Default().Show(fullDisk{}); err == nil {
		t.Error("Show: no error")
	}
	models, err := NewModels()
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteModels(fullDisk{}, models); err == nil {
		t.Error("WriteModels: no error")
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, os.ErrClosed }
