package trace_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/internal/testkit/oddtable"
	"github.com/epplan/epplan/lab/trace"
)

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

// draws returns the number of tables that a test draws.
func draws() int {
	if testing.Short() {
		return 200
	}
	return 1000
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-13*math.Abs(b) }

func TestOddLogsOfUtilisationAreReadToWhatWasDrawnOrRefused(t *testing.T) {
	read := 0
	for seed := range uint64(draws()) {
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
	if read < draws()/2 {
		t.Errorf("only %d of %d logs were read", read, draws())
	}
}
