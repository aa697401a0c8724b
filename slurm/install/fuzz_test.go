package install_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/install"
)

// Whatever a site's own scripts say: looking at them never takes one that doesn't name us for ours.
func FuzzSitesScripts(f *testing.F) {
	module, err := install.LuaModule("/etc/slurm", "/run/epplan/submit.sock", "/usr/bin/epplan")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		module, module[:len(module)/2], "#!/bin/sh\nexec epplan prolog --journal '/var/lib/x'\n", "-- epplan", "\xff", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, called := install.SubmitCall(text)
		ours, unchanged := install.Installed(text)
		hook := install.CallsHook(text, hooks.Prolog)
		_, _ = install.HookJournal(text), install.ModuleValue(text, "SOCKET")
		if (called || ours || hook) && !strings.Contains(text, "epplan") || unchanged && !ours {
			t.Fatalf("called %t, ours %t, unchanged %t, hook %t", called, ours, unchanged, hook)
		}
	})
}
