package queue_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/oddtable"
	"github.com/epplan/epplan/queue"
)

var oddBatch = []oddtable.Column{
	{Target: "id", Texts: []string{"job-", "Größe ", `a "b" `, "x,y;z|", "1"}, Names: []oddtable.Name{
		{Text: "id"},
		{Text: "JobID"},
		{Text: "Job ID"},
		{Text: "Nr.", Mapped: true},
		{Text: "#", Mapped: true},
		{Text: "Ärger", Mapped: true},
	}},
	{Target: "runtime_s", Most: 5_000_000, Names: []oddtable.Name{
		{Text: "runtime_s", Factor: 1},
		{Text: "Runtime (h)", Factor: 3600},
		{Text: "elapsed-minutes", Factor: 60},
		{Text: "runtimeHours", Factor: 3600},
		{Text: "duration [ms]", Factor: 1e-3},
		{Text: "ElapsedRaw", Factor: 1},
		{Text: "Laufzeit (h)", Factor: 3600, Mapped: true},
		{Text: "Laufzeit (Tage)", Factor: 86400, Mapped: true},
		{Text: "est (min)", Factor: 60, Mapped: true},
		{Text: "Dauer_h", Factor: 3600, Mapped: true},
		{Text: "hours", Factor: 3600, Mapped: true},
		{Text: "Dauer", Factor: 1, Mapped: true},
		{Text: "Dauer", Factor: 60, Mapped: true, Unit: "min"},
		{Text: "durée (heures)", Factor: 3600, Mapped: true},
		{Text: "Laufzeit", Factor: 3600, Mapped: true, Unit: "h"},
		{Text: "Dauer in Stunden", Factor: 3600, Mapped: true},
	}},
	{Target: "power_w", Most: 900_000, Names: []oddtable.Name{
		{Text: "power_w", Factor: 1},
		{Text: "Power (kW)", Factor: 1000},
		{Text: "GPU power [W]", Factor: 1},
		{Text: "Leistung (kW)", Factor: 1000, Mapped: true},
		{Text: "P_mW", Factor: 1e-3, Mapped: true},
	}},
	{Target: "mem_gib", Most: 900_000, Names: []oddtable.Name{
		{Text: "mem_gib", Factor: 1},
		{Text: "mem (MiB)", Factor: 1.0 / 1024},
		{Text: "memory_gb", Factor: 1},
		{Text: "RAM [MB]", Factor: 1.0 / 1024},
		{Text: "Speicher (TiB)", Factor: 1024, Mapped: true},
	}},
	{Target: "gpu_model", Texts: []string{"A100", "V100", "", "H100;A100"}, Names: []oddtable.Name{
		{Text: "gpu_model"},
		{Text: "GPU_Type"},
		{Text: "gputype"},
		{Text: "GPU model"},
		{Text: "Karte", Mapped: true},
	}},
	{Target: "gpus", Most: 8000, Whole: true, Names: []oddtable.Name{
		{Text: "gpus", Factor: 1}, {Text: "NumGPUs", Factor: 1}, {Text: "Anzahl", Factor: 1, Mapped: true},
	}},
}

// draws returns how many tables a test draws.
func draws() int {
	if testing.Short() {
		return 1000
	}
	return 6000
}

func TestAnOddBatchIsReadToWhatWasDrawnOrRefused(t *testing.T) {
	read := 0
	for seed := range uint64(draws()) {
		r := rand.New(rand.NewPCG(seed, 1))
		table := oddtable.Draw(r, oddBatch, 1+r.IntN(4))
		b, err := queue.ReadWith(bytes.NewReader(table.Bytes), "batch", queue.Auto, &queue.TableOptions{
			Columns: table.Map, Header: table.Header, Ignore: table.Ignore,
		})
		if wrong := table.Judge(err); wrong != nil {
			t.Fatalf("seed %d: %v\n%v\n%s", seed, wrong, table.Map, table.Text)
		}
		if err != nil {
			continue
		}
		read++
		for i := range b.Jobs {
			if !isDrawnJob(&b.Jobs[i], table.Values[i], table.Texts[i]) || len(b.Jobs) != len(table.Values) {
				t.Fatalf("seed %d: job %+v, want %v and %q\n%v\n%s", seed, b.Jobs[i], table.Values[i], table.Texts[i],
					table.Map, table.Text)
			}
		}
	}
	if read < draws()/2 {
		t.Errorf("only %d of %d tables were read", read, draws())
	}
}

func isDrawnJob(j *queue.Job, values []float64, texts []string) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-13*math.Abs(b) }
	models := strings.Split(texts[4], ";")
	if len(j.GPUs) != len(models) {
		return false
	}
	for i, g := range j.GPUs {
		if g.Model != models[i] || g.Count != int(values[5]) {
			return false
		}
	}
	runtimeModel := ""
	if len(models) == 1 {
		runtimeModel = models[0]
	}
	return j.ID == texts[0] && near(j.Runtime, values[1]) && near(j.Power, values[2]) &&
		near(j.MemGiB, values[3]) && j.RuntimeModel == runtimeModel
}
