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

// draws is how many tables a test draws.
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

var oddLog = []oddtable.Column{
	{Target: "gpu", Texts: []string{"0000:01:", "GPU-"}, Names: []oddtable.Name{
		{Text: "gpu"}, {Text: "index"}, {Text: "uuid"}, {Text: "pci.bus_id"}, {Text: "GPU ID"},
	}},
	{Target: "util_pct", Most: 100_000, Names: []oddtable.Name{
		{Text: "util_pct", Factor: 1},
		{Text: "utilization.gpu [%]", Factor: 1},
		{Text: "GPU util", Factor: 1},
		{Text: "DCGM_FI_DEV_GPU_UTIL", Factor: 1},
	}},
	{Target: "mem_gb", Most: 90_000, Names: []oddtable.Name{
		{Text: "mem_gb", Factor: 1},
		{Text: "memory.used [MiB]", Factor: 1.0 / 1024},
		{Text: "GPU mem (MiB)", Factor: 1.0 / 1024},
	}},
	{
		Target: "time_s", Texts: []string{"0", "5", "2026/03/02 08:00:00.000", "2026-03-02T08:00:00Z"},
		Names: []oddtable.Name{{Text: "timestamp"}},
	},
}

func TestOddLogsOfUtilisationAreReadToWhatWasDrawnOrRefused(t *testing.T) {
	read := 0
	for seed := range uint64(draws() / 4) {
		r := rand.New(rand.NewPCG(seed, 3))
		table := oddtable.Draw(r, oddLog, 1)
		log, err := trace.ReadUtilisation(bytes.NewReader(table.Bytes), "log", 10)
		if table.Refuse == "unknown columns" {
			table.Refuse = "" // a log has many
		}
		if table.Refuse != "" || len(table.Header) > 0 {
			if err == nil {
				t.Fatalf("seed %d: read in spite of %s\n%s", seed, table.Refuse, table.Text)
			}
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, table.Text)
		}
		read++
		got, want := log.Series[0], table.Values[0]
		if got.ID != table.Texts[0][0] || !near(got.UtilPct[0], want[1]) || !near(got.MemGB, want[2]) {
			t.Fatalf("seed %d: %+v, want %v\n%s", seed, got, want, table.Text)
		}
	}
	if read < draws()/8 {
		t.Errorf("only %d of %d logs were read", read, draws()/4)
	}
}
