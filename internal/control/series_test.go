package control

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// A safeLog is a text that one writes while another reads.
type safeLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// said returns what was written since it was asked last.
func (l *safeLog) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

func TestPricesOfTheNextDayCountWithoutAReload(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const header = "time,cost_per_kwh\n"
	write("prices.csv", header+"2026-03-02T12:00Z,0.36\n2026-03-02T13:00Z,0.36\n")
	write("budget.csv", "time,watts\n2026-03-02T12:00Z,3000\n")
	read := func(objective string) *Settings {
		t.Helper()
		text := "[live.hours]\nby = \"cost\"\n[factors]\nseries = \"prices.csv\"\n" +
			"[budget]\ncluster_w = 5000\nseries = \"budget.csv\"\n" + objective
		s, err := ReadSettings(strings.NewReader(text), filepath.Join(dir, "epd.toml"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var inForce atomic.Pointer[Settings]
		var log safeLog
		inForce.Store(read(""))
		version := inForce.Load().Version
		go reloadSeries(ctx, &inForce, slog.New(slog.NewTextHandler(&log, nil)))
		at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
		price := func() float64 {
			t.Helper()
			prices, _ := inForce.Load().Prices()(at)
			return prices.At(0) * 3.6e6
		}
		look := func(want float64, says string) {
			t.Helper()
			time.Sleep(seriesEvery) //nolint:forbidigo // in a bubble
			synctest.Wait()
			if said := log.said(); price() != want || strings.Contains(said, "level=") != (says != "") ||
				!strings.Contains(said, says) {
				t.Errorf("a kWh costs %g, want %g; %q, want %q", price(), want, said, says)
			}
		}
		look(0.36, "")
		write("prices.csv", header+"2026-03-02T12:00Z,0.18\n2026-03-03T13:00Z,0.18\n")
		look(0.18, "read again")
		look(0.18, "")
		write("prices.csv", header+"2026-03-02T12:00Z,0.1")
		look(0.18, "isn't read again")
		look(0.18, "") // it was said
		if err := os.Remove(filepath.Join(dir, "prices.csv")); err != nil {
			t.Fatal(err)
		}
		look(0.18, "isn't read again")
		write("prices.csv", header+"2026-03-02T12:00Z,0.09\n2026-03-03T13:00Z,0.09\n")
		look(0.09, "read again")
		write("budget.csv", "time,watts\n2026-03-02T12:00Z,2000\n2026-03-02T18:00Z,1000\n")
		look(0.09, "read again")
		if got := inForce.Load(); got.Version != version || len(got.budgetSeries.Steps(at, 5000)) < 2 {
			t.Errorf("version %s, was %s; budgets %v", got.Version, version, got.budgetSeries.Steps(at, 5000))
		}
		again := read("[objective]\ntime_weight = 5\n") // as it is read by a reload
		inForce.Store(again)
		look(0.09, "")
		if inForce.Load() != again {
			t.Error("other settings than those of the reload")
		}
		cancel()
		synctest.Wait()
	})
}

func TestFactorsThatAreOverAreSaid(t *testing.T) {
	dir := t.TempDir()
	text := "time,cost_per_kwh\n2026-03-02T12:00Z,0.36\n2026-03-02T13:00Z,0.36\n"
	if err := os.WriteFile(filepath.Join(dir, "prices.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := "[factors]\nseries = \"prices.csv\"\n"
	s, err := ReadSettings(strings.NewReader(config), filepath.Join(dir, "epd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2026, 3, 2, 14, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]bool{end.Add(-time.Minute): false, end.Add(time.Minute): true} {
		all := s.warnings(at, nil)
		said := len(all) == 1 && strings.Contains(all[0].Error(), "factors.series ended 2026-03-02T14:00:00Z")
		if said != want {
			t.Errorf("at %v: %v", at, all)
		}
	}
}

// Clocks are chosen by what energy costs during the run, as if that were the constant price: the dearer
// it is, the slower.
func TestClocksAreFasterWhenEnergyIsCheap(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	decided := func(perKWh float64, file string) live.Decision {
		t.Helper()
		text := fmt.Sprintf("%s[objective]\nname = \"cost\"\ncost_per_gpu_hour = 0.05\n"+
			"[factors]\ncost_per_kwh = %v\ncurrency = \"EUR\"\n%s", enforceAll, perKWh, file)
		r := rigAt(t, filepath.Join(t.TempDir(), "epd.db"), &hand{now: start}, text, nil)
		for id := range slurm.JobID(3) {
			r.run(id+1, memoryBound())
		}
		return r.run(10, memoryBound())
	}
	last, slowest := live.Decision{}, 0
	for i, price := range []float64{0.01, 0.1, 0.3, 0.6, 1, 3} {
		rows := fmt.Sprintf("time,cost_per_kwh\n2026-05-04T00:00:00Z,%v\n2026-05-06T00:00:00Z,0.3\n", price)
		if err := os.WriteFile("prices.csv", []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
		d, want := decided(0.3, "series = \"prices.csv\"\n"), decided(price, "")
		if d.Core != want.Core || d.Mem != want.Mem || d.Apply != want.Apply {
			t.Errorf("at %v EUR for some hours: %+v, at that price always: %+v", price, d, want)
		}
		if told := strings.Contains(d.Reason, "of its usual price"); told != (price != 0.3) {
			t.Errorf("at %v EUR: %q", price, d.Reason)
		}
		if i > 0 && d.Predicted.Or(0) < last.Predicted.Or(0) {
			t.Errorf("at %v EUR it takes %v, before %v", price, d.Predicted, last.Predicted)
		}
		if d.Predicted.Or(0) > last.Predicted.Or(0) {
			slowest++
		}
		last = d
	}
	if slowest < 3 {
		t.Errorf("all prices but %d give the same clocks", slowest)
	}
}
