package slurmconf_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm/slurmconf"
)

// Whatever a slurm.conf says: settings have a line of it, and a name without blanks.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		"Prolog=/etc/a\nProlog=/etc/b\nEpilog = \"x\"\n", "# x\ninclude /etc/y\nA=1 \\\n B=2", "=", "\\",
		"a\r\nB=1\r", "\x00=\xff", "Include", "a#b=c", "\u00a0=1", "\u2003\nA=1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		for key, line := range slurmconf.Settings(text) {
			if line.Number < 1 || line.Number > lines || strings.ContainsAny(key, " \t\n") {
				t.Fatalf("%q in line %+v of %d", key, line, lines)
			}
		}
		if values, settings := slurmconf.Values(text), slurmconf.Settings(text); len(values) > len(settings) {
			t.Fatalf("%v of %v", values, settings)
		}
		for _, line := range slurmconf.HookLines(text, "Prolog") {
			if line.Number < 1 || line.Number > lines {
				t.Fatalf("%+v of %d", line, lines)
			}
		}
	})
}
