package trace_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/internal/testkit/oddtable"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/internal/trace"
)

var oddMeasurements = []oddtable.Column{
	{Target: "app", Texts: []string{"app-", "Größe ", `a "b" `, "x,y;z|"}, Names: []oddtable.Name{
		{Text: "app"},
		{Text: "Application"},
		{Text: "benchmark"},
		{Text: "kernel"},
		{Text: "workload"},
		{Text: "Programm", Mapped: true},
	}},
	{Target: "core_mhz", Most: 2_000_000, Names: []oddtable.Name{
		{Text: "core_mhz", Factor: 1},
		{Text: "core clock [MHz]", Factor: 1},
		{Text: "SM clock", Factor: 1},
		{Text: "graphics clock (GHz)", Factor: 1000},
		{Text: "clocks.sm [MHz]", Factor: 1},
		{Text: "Takt", Factor: 1, Mapped: true},
		{Text: "Takt (GHz)", Factor: 1000, Mapped: true},
	}},
	{Target: "mem_mhz", Most: 9_000_000, Names: []oddtable.Name{
		{Text: "mem_mhz", Factor: 1}, {Text: "memory clock", Factor: 1}, {Text: "memory (MHz)", Factor: 1},
	}},
	{Target: "time_s", Most: 5_000_000, Names: []oddtable.Name{
		{Text: "time_ms", Factor: 1e-3},
		{Text: "time_s", Factor: 1},
		{Text: "time (ms)", Factor: 1e-3},
		{Text: "Runtime [s]", Factor: 1},
		{Text: "duration_min", Factor: 60},
		{Text: "epoch_s", Factor: 1},
		{Text: "Zeit", Factor: 1, Mapped: true},
		{Text: "Zeit (h)", Factor: 3600, Mapped: true},
		{Text: "Zeit", Factor: 1e-3, Mapped: true, Unit: "ms"},
	}},
	{Target: "power_w", Most: 900_000, Names: []oddtable.Name{
		{Text: "power_w", Factor: 1},
		{Text: "power (W)", Factor: 1},
		{Text: "avg power", Factor: 1},
		{Text: "mean_power_w", Factor: 1},
		{Text: "Leistung (kW)", Factor: 1000, Mapped: true},
		{Text: "power.draw [W]", Factor: 1},
	}},
}

// draws returns how many tables a test draws.
func draws() int {
	if testing.Short() {
		return 800
	}
	return 4000
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-13*math.Abs(b) }

func TestOddMeasurementsAreReadToWhatWasDrawnOrRefused(t *testing.T) {
	read := 0
	for seed := range uint64(draws()) {
		r := rand.New(rand.NewPCG(seed, 2))
		table := oddtable.Draw(r, oddMeasurements, 1+r.IntN(4))
		m, err := trace.ReadMeasurements(bytes.NewReader(table.Bytes), "m", &textfile.Options{
			Columns: table.Map, Header: table.Header, Ignore: table.Ignore,
		})
		if wrong := table.Judge(err); wrong != nil {
			t.Fatalf("seed %d: %v\n%v\n%s", seed, wrong, table.Map, table.Text)
		}
		if err != nil {
			continue
		}
		read++
		for i, want := range table.Values {
			got := m.Apps[i].Samples[0]
			if m.Apps[i].App != table.Texts[i][0] || !near(float64(got.Core), want[1]) ||
				!near(float64(got.Mem), want[2]) || !near(got.Time, want[3]) || !near(float64(got.Power), want[4]) {
				t.Fatalf("seed %d: %+v, want %v\n%v\n%s", seed, m.Apps[i], want, table.Map, table.Text)
			}
		}
	}
	if read < draws()/2 {
		t.Errorf("only %d of %d tables were read", read, draws())
	}
}
