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
		"series.csv": "time,carbon_g_per_kwh\n2026-01-01T00:00:00Z,300\n2026-01-01T01:00:00Z,200\n", "empty": "", "hours.csv": "time,watts\n17:00,300\n", "foreign.csv": "a,b\n1,2\n",
		"foreign.json": "{\"jobs\": 3}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	taken := make(map[bool]int)
	rapid.Check(t, func(r *rapid.T) {
		file := func(what, right string) string {
			if rapid.IntRange(0, 3).Draw(r, "right "+what) > 0 {
				return right
			}
			return rapid.SampledFrom([]string{
				"", "series.csv", "hours.csv", "empty", "foreign.csv", "foreign.json", "gone", ".",
			}).Draw(r, what)
		}
		text := fmt.Sprintf("[factors]\nseries = %q\n[budget]\nseries = %q\n[live.sharing]\ncontention = %q\n"+
			"[live]\nmode = %q\nmin_core = %s\n[live.hours]\nby = %q\n",
			file("series", "series.csv"), file("budgets", "hours.csv"), file("contention", ""),
			rapid.SampledFrom([]string{"observe", "enforce", "enforced"}).Draw(r, "mode"),
			rapid.SampledFrom([]string{"0.4", "0.4", "1200"}).Draw(r, "min_core"),
			rapid.SampledFrom([]string{"off", "off", "cost", "carbon"}).Draw(r, "hours"))
		name := filepath.Join(dir, "epd.toml")
		_, starting := ReadSettings(strings.NewReader(text), name)
		c, err := config.Load(strings.NewReader(text), name, nil)
		var refused []error
		if err == nil {
			refused, _ = configfiles.Check(c)
		}
		if accepted := err == nil && len(refused) == 0; accepted != (starting == nil) {
			r.Fatalf("%s\nepd: %v\ncheck: %v, %v", text, starting, err, refused)
		} else if accepted {
			taken[strings.Contains(text, "by = \"carbon\"")]++
		}
	})
	if taken[true] == 0 || taken[false] == 0 {
		t.Errorf("%d were accepted with hours, %d without", taken[true], taken[false])
	}
}
