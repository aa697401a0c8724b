package steer_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Whatever the ledger says of what was set in Slurm: no job becomes more urgent than its user left it, but
// for one that the ledger says was, none is touched that runs, and taking everything back ends.
func FuzzLedger(f *testing.F) {
	const entry = `{"lever":"nice","job":1,"before":"0","after":"11","phase":"in_force","at":"2026-03-02T11:00:00Z"}`
	for _, text := range []string{
		`{"schema":1,"entries":[` + entry + `]}`, `{"schema":1,"entries":[` + entry + "," + entry + `]}`,
		`{"schema":1,"entries":[` + strings.Replace(entry, "in_force", "intended", 1) + `]}`,
		`{"schema":1,"entries":[` + strings.Replace(entry, "in_force", "undone", 1) + `]}`,
		`{"schema":1,"entries":[` + strings.Replace(entry, `"job":1`, `"job":9`, 1) + `]}`,
		`{"schema":1,"entries":[` + strings.Replace(entry, `"0"`, `"-99999999999"`, 1) + `]}`,
		`{"schema":1,"entries":[{"lever":"weight","node":"n1","before":"1","after":"5","phase":"in_force"}]}`,
		`{"schema":1,"entries":[{"lever":"prefer","job":3,"before":"","after":"x","phase":"in_force"}]}`,
		`{"schema":1,"entries":[null]}`, `{"schema":2}`, `{}`, `x`, ``, `{"schema":1} {}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w := newWorld()
		w.job(1, 10, 1000, "")
		w.job(2, 10, 990, deadline(time.Hour))
		w.job(3, 20, 980, "epplan:off")
		w.job(4, 20, 970, "").State.Base = slurm.Running
		w.node("n1", "v100", "gpu")
		w.setNice(1, 11)
		before := w.nices()
		file, err := w.disk.Create("levers/levers.json")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(text); err != nil {
			t.Fatal(err)
		}
		s := w.open(t)
		for range 2 {
			if _, err := s.Step(t.Context()); err != nil { // a newer epd's: nothing is set
				if !maps.Equal(w.nices(), before) {
					t.Fatalf("%v, and nices are %v, were %v", err, w.nices(), before)
				}
				return
			}
		}
		if _, err := s.UndoAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id, nice := range w.nices() {
			named := strings.Contains(strings.ToLower(string(text)), "before")
			if nice < before[id] && id != 1 && !named || id == 4 && nice != before[id] {
				t.Fatalf("job %s has a nice of %d, it had %d", id, nice, before[id])
			}
		}
	})
}
