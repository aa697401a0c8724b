package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/planner/sharing"
)

func TestTheCurveOfContentionThatIsNamedCountsAndABadOneIsRefused(t *testing.T) {
	dir := t.TempDir()
	read := func(contention, text string) (*Settings, error) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "curve.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadSettings(strings.NewReader(enforceAll+"[live.sharing]\ncontention = \""+contention+"\"\n"),
			filepath.Join(dir, "epd.toml"))
	}
	const right = "{\"exponent\": 1.2, \"by_task\": 0.03, \"by_memory\": 0.05}"
	s, err := read("curve.json", right)
	if err != nil {
		t.Fatal(err)
	}
	want := sharing.Curve{Exponent: 1.2, ByTask: 0.03, ByMemory: 0.05}
	for _, model := range []string{"V100", "unheard of"} {
		if got := s.sharedGPU(model).Curve; got == nil || *got != want {
			t.Errorf("%s: %v, want %v", model, got, want)
		}
	}
	if s, err := read("", right); err != nil || s.sharedGPU("V100").Curve != nil {
		t.Errorf("without a file: %v, %v", s, err)
	}
	if s, err := read(filepath.Join(dir, "curve.json"), right); err != nil ||
		s.sharedGPU("V100").Curve == nil {
		t.Errorf("by its whole path: %v, %v", s, err)
	}
	r := newRig(t, func(o *Options) { o.Settings = s })
	for name, c := range map[string]struct{ contention, text, says string }{
		"no file": {"missing.json", right, "live.sharing.contention"},
		"no JSON": {"curve.json", "{\"exponent\": 1.2,\n\"by_task\": x}", "curve.json:2"},
		"no curve": {
			"curve.json", "{\"exponent\": 0.2, \"by_task\": 0, \"by_memory\": 0}",
			"curve.json: exponent is 0.2",
		},
		"half of a curve": {"curve.json", "{\"exponent\": 1.2}", "curve.json: no by_task"},
	} {
		err := r.Reload(func() (*Settings, error) { return read(c.contention, c.text) })
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if r.Settings() != s {
			t.Errorf("%s: other settings are in force", name)
		}
	}
}
