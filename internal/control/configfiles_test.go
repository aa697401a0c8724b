package control

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/configfiles"
)

// What the check of a configuration accepts epd starts with, and what epd refuses the check refuses.
func TestTheCheckAcceptsTheConfigurationsThatEPDStartsWith(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"series.csv": "time,carbon_g_per_kwh\n2026-01-01T00:00:00Z,300\n", "empty": "", "hours.csv": "time,watts\n17:00,300\n", "foreign.csv": "a,b\n1,2\n",
		"foreign.json": "{\"jobs\": 3}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		file := rapid.SampledFrom([]string{
			"", "", "series.csv", "hours.csv", "empty", "foreign.csv", "foreign.json", "gone",
			".",
		})
		text := fmt.Sprintf("[factors]\nseries = %q\n[budget]\nseries = %q\n[live.sharing]\ncontention = %q\n"+
			"[live]\nmode = %q\nmin_core = %s\n",
			file.Draw(r, "series"), file.Draw(r, "budgets"), file.Draw(r, "contention"),
			rapid.SampledFrom([]string{"observe", "enforce", "enforced"}).Draw(r, "mode"),
			rapid.SampledFrom([]string{"0.4", "0.4", "1200"}).Draw(r, "min_core"))
		name := filepath.Join(dir, "epd.toml")
		_, starting := ReadSettings(strings.NewReader(text), name)
		c, err := config.Load(strings.NewReader(text), name, nil)
		var refused []error
		if err == nil {
			refused, _ = configfiles.Check(c)
		}
		if accepted := err == nil && len(refused) == 0; accepted != (starting == nil) {
			r.Fatalf("%s\nepd: %v\ncheck: %v, %v", text, starting, err, refused)
		}
	})
}
