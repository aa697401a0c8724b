package config

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

func TestLiveSettingsAreRead(t *testing.T) {
	c := load(t, "[live]\nmode = \"advise\"\nmodes = {gpu = \"enforce\", \"a b\" = \"observe\"}\nhold_out = 0.2\nmin_core = 0.5")
	for partition, want := range map[string]Mode{"gpu": Enforce, "a b": Observe, "other": Advise, "": Advise} {
		if got := c.Live.ModeOf(partition); got != want {
			t.Errorf("partition %q: %s, want %s", partition, got, want)
		}
	}
	if c.Live.HoldOut != 0.2 || c.Live.MinCore != 0.5 || c.Live.MaxCore != 1.5 {
		t.Errorf("%+v", c.Live)
	}
	var text strings.Builder
	if err := c.Show(&text); err != nil {
		t.Fatal(err)
	}
	if again := load(t, text.String()); again.Live.ModeOf("gpu") != Enforce || again.Live.ModeOf("a b") != Observe {
		t.Errorf("shown and read again: %+v", again.Live)
	}
}

func TestModesMayBeATableOfTheirOwn(t *testing.T) {
	if c := load(t, "[live.modes]\ngpu = \"enforce\""); c.Live.ModeOf("gpu") != Enforce || c.Live.Mode != Observe {
		t.Errorf("%+v", c.Live)
	}
}

func TestWithoutAFileNothingIsTouched(t *testing.T) {
	if m := Default().Live.ModeOf("any"); m != Observe {
		t.Errorf("mode %s", m)
	}
}

func TestWrongLiveSettingsAreNamedWithTheirPosition(t *testing.T) {
	for text, want := range map[string]string{
		"[live]\nmode = \"enforec\"":                `2:8: live.mode is "enforec"`,
		"[live]\nmodes = 3":                         "2:9: live.modes is 3",
		"[live]\nmodes = {gpu = \"on\"}":            `live.modes.gpu is "on"`,
		"[live]\nmodes = {gpu = true}":              "live.modes.gpu is true",
		"[live]\nhold_out = 1.5":                    "2:12: live.hold_out is 1.5",
		"[live]\nmin_core = 1.2\nmax_core = 0.9":    "live.min_core is 1.2, want at most max_core, 0.9",
		"[live]\nmin_mem = 1.2\nmax_mem = 0.9":      "live.min_mem is 1.2, want at most max_mem, 0.9",
		"[live]\nholdout = 0.1":                     "unknown key holdout in [live]",
		"[live.modes]\n\"a\\u0000b\" = \"observe\"": "want a name",
	} {
		_, err := Load(strings.NewReader(text), "site.toml", nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestARangeOfClocksIsRelativeToTheDefaultOnes(t *testing.T) {
	l := Live{MinCore: 0.5, MaxCore: 1, MinMem: 1, MaxMem: 1}
	base := BuiltinProfiles().byName("V100").Default
	for core, want := range map[float64]bool{690: true, 689: false, 1380: true, 1381: false} {
		if got := l.Allows(dvfsmodel.MHz(core), 877, base); got != want {
			t.Errorf("core %v MHz: %t", core, got)
		}
	}
	if l.Allows(1000, 850, base) {
		t.Error("memory 850 MHz")
	}
}
