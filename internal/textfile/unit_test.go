package textfile_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/textfile"
)

func TestANameStatesItsUnitAsPeopleWriteIt(t *testing.T) {
	for name, want := range map[string]float64{
		"Laufzeit (h)": 3600, "est (min)": 60, "Dauer_h": 3600, "Runtime [s]": 1, "hours": 3600, "zeit/h": 3600,
		"Laufzeit in Minuten": 60, "durée (heures)": 3600, "Laufzeit (Tage)": 86400, "Laufzeit [Std.]": 3600,
		"runtimeHours": 3600, "DauerMs": 1e-3, "dauerstunden": 3600, "hours_run": 3600, "time (ms)": 1e-3,
		"t_weeks": 7 * 86400, "runtime_h (est)": 3600, "Zeit (s) gemessen": 1, "elapsed-millis": 1e-3,
		"laufzeitmillisekunden": 1e-3, "temps en jours": 86400, "Time (m)": 60,
		"hour(s)": 3600, "Laufzeit Stunde(n)": 3600, "Laufzeit (in h)": 3600, "Dauer [in min]": 60,
		"Runtime (hours, default clocks)": 3600, "h/job": 3600, "Minuten pro Lauf": 60, "RUNTIMEHOURS": 3600,
	} {
		if factor, stated, msg := textfile.Time.StatedUnit(name); factor != want || !stated || msg != "" {
			t.Errorf("%q: %v, %v, %q, want %v", name, factor, stated, msg, want)
		}
	}
	for name, q := range map[string]textfile.Quantity{
		"Dauer": textfile.Time, "min_runtime": textfile.Time, "Minimum": textfile.Time, "second_try": textfile.Time,
		"runtime_stage": textfile.Time, "Montage": textfile.Time,
		"Leistung": textfile.Power, "RAM": textfile.Memory, "#": textfile.Time, "GPUs (alle)": textfile.NoQuantity,
	} {
		if factor, stated, msg := q.StatedUnit(name); factor != 1 || stated || msg != "" {
			t.Errorf("%q: %v, %v, %q, want no unit", name, factor, stated, msg)
		}
	}
	for name, want := range map[string]string{
		"Laufzeit (kW)": "something else", "rt_kW": "something else", "Laufzeit (xyz)": "isn't known",
		"Runtime (months)": "something else", "GPU hours": "each device", "gpustunden": "each device",
		"hours_minutes_x": "two units", "core_hours_used": "each device",
		"Laufzeit (GPU h)": "isn't known", "Dauer (h:mm)": "isn't known", "Zeit (m. GPU)": "isn't known", "Dauer (h or min)": "isn't known",
		"Zeit (%)": "something else",
	} {
		if _, stated, msg := textfile.Time.StatedUnit(name); stated || !strings.Contains(msg, want) {
			t.Errorf("%q: %v, %q, want %q", name, stated, msg, want)
		}
	}
	for name, want := range map[string]float64{
		"Power (kW)": 1e3, "P_mW": 1e-3, "Leistung (MW)": 1e6, "avg power [W]": 1, "powerKW": 1e3,
	} {
		if factor, _, msg := textfile.Power.StatedUnit(name); factor != want || msg != "" {
			t.Errorf("%q: %v, %q, want %v", name, factor, msg, want)
		}
	}
	if factor, _, _ := textfile.Energy.StatedUnit("energykWh"); factor != 3.6e6 {
		t.Errorf("energykWh is times %v", factor)
	}
	if factor, _, _ := textfile.Memory.StatedUnit("mem (MiB)"); factor != 1.0/1024 {
		t.Errorf("mem (MiB) is times %v", factor)
	}
	if factor, stated, _ := textfile.Time.StatedUnit("Dauer (hh:mm:ss)"); !stated || !math.IsNaN(factor) {
		t.Errorf("hh:mm:ss is times %v", factor)
	}
}

func TestScaledNumbersAreRoundedOnce(t *testing.T) {
	for _, c := range []struct {
		text               string
		value, factor, sum float64
	}{
		{"1.1", 1.1, 3600, 3960},
		{"0.07", 0.07, 1000, 70},
		{"100.5", 100.5, 1e-3, 0.1005},
		{"1e3", 1e3, 60, 6e4},
		{"250", 250, 1e-6, 0.00025},
		{"512", 512, 1.0 / 1024, 0.5},
	} {
		if got := textfile.Scaled(c.text, c.value, c.factor); got != c.sum {
			t.Errorf("%s times %v is %v, want %v", c.text, c.factor, got, c.sum)
		}
	}
}

func TestNumbersAreReadAsTheFileWritesThemOrRefused(t *testing.T) {
	for text, want := range map[string]string{
		"12": "12", "1,5": "1.5", "-3,25": "-3.25", "1,5h": "1.5h", "0,125": "0.125", "1.5": "1.5",
		"00:01:30,5": "00:01:30.5",
		"V100:2":     "V100:2", "2026-03-31 08:00": "2026-03-31 08:00", "1,800": "1.800", "3.141": "3.141",
		"inf": "inf",
	} {
		n := &textfile.Numbers{}
		if got, msg, _ := n.Plain(text, textfile.Position{File: "f", Line: 1}); got != want || msg != "" {
			t.Errorf("%q: %q, %q, want %q", text, got, msg, want)
		}
		if doubt := n.Doubt(); (doubt != nil) != (text == "1,800" || text == "3.141") {
			t.Errorf("%q: doubt %v", text, doubt)
		}
	}
	for text, want := range map[string]string{
		"1 800": `"1800"`, "1'800": `"1800"`, "1\u202f800,5": `"1800.5"`, "1.800,5": `"1800.5"`, "1.234.567": `"1234567"`,
		"1,234.5": `"1234.5"`, "12'000 s": `"12000 s"`,
	} {
		if got, msg, hint := (&textfile.Numbers{}).Plain(text, textfile.Position{}); msg == "" || hint != want {
			t.Errorf("%q: %q, %q, want it refused and %s", text, got, hint, want)
		}
	}
	for text, want := range map[string]string{
		"12,000": `"12000" or "12.000"`, "12,5": `"12.5"`, "1,234,567": `"1234567"`, "1.800": "", "0,125": `"0.125"`,
	} {
		if _, msg, hint := (&textfile.Numbers{Commas: true}).Plain(text, textfile.Position{}); hint != want ||
			(msg == "") != (want == "") {
			t.Errorf("%q between commas: %q, %q, want %s", text, msg, hint, want)
		}
	}
}

func TestNumbersOfTwoKindsInOneFileAreRefusedNamingBoth(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{"3600,5", "1.800", `"1.800" may be 1800 or 1.800: "3600,5" at f:1:3`},
		{"1.800", "3600,5", `"1.800" at f:1:3 may be 1800 or 1.800: "3600,5" has the other mark`},
		{"2.5", "1,800", `"1,800" may be 1800 or 1.800: "2.5" at f:1:3`},
		{"1,800", "1.800", `"1.800" may be 1800 or 1.800: "1,800" at f:1:3`},
		{"2.5", "3,5", ""},
		{"1,800", "3,5", ""},
		{"1.800", "0.5", ""},
	} {
		n := &textfile.Numbers{}
		_, first, _ := n.Plain(c.first, textfile.Position{File: "f", Line: 1, Column: 3})
		_, second, _ := n.Plain(c.second, textfile.Position{File: "f", Line: 2, Column: 3})
		if first != "" || !strings.HasPrefix(second, c.want) || (second == "") != (c.want == "") ||
			second == "" && n.Doubt() != nil {
			t.Errorf("%q, %q: %q, %q, doubt %v, want %q", c.first, c.second, first, second, n.Doubt(), c.want)
		}
	}
}

func TestMomentsHaveZonesOrNone(t *testing.T) {
	for text, want := range map[string]string{
		"2026-03-31T08:00:00Z": "2026-03-31T08:00:00Z true", "2026-03-31 08:00+02:00": "2026-03-31T06:00:00Z true",
		"2026-03-31 08:00:00 +0200": "2026-03-31T06:00:00Z true", "2026-03-31": "2026-03-31T00:00:00Z false",
		"2026/03/31 08:00:00.500": "2026-03-31T08:00:00.5Z false",
		"2026-03-31T08:00+02":     "2026-03-31T06:00:00Z true",
		"soon":                    "", "2026-02-30": "", "2026-03-31T": "", "2026-03-31+02:00": "",
	} {
		at, zoned, ok := textfile.Moment(text)
		got := at.UTC().Format("2006-01-02T15:04:05.999Z07:00") + " " + strconv.FormatBool(zoned)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, %v, want %s", text, got, ok, want)
		}
	}
}
