package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/amdgputest"
	"github.com/epplan/epplan/slurm/hooks"
)

// amdNode makes this process's GPUs those of a folder like the kernel's.
func amdNode(t *testing.T, kinds ...amdgputest.Kind) *amdgputest.Kernel {
	t.Helper()
	k := amdgputest.New(t, kinds...)
	sysfs = k
	t.Cleanup(func() { sysfs = nil })
	return k
}

func TestAJobOnAnAMDGPURunsAtItsClockAndLeavesTheLevelAsItWas(t *testing.T) {
	k := amdNode(t, amdgputest.MI300X, amdgputest.MI210)
	g := k.GPUs[1]
	must(t, g.Obey("power_dpm_force_performance_level", "high"))
	config := filepath.Join(t.TempDir(), "epd.toml")
	writeFile(t, config, "[live]\nmode = \"enforce\"\nhold_out = 0\n")
	conf := t.TempDir()
	writeFile(t, filepath.Join(conf, "slurm.conf"), "NodeName=n1 Gres=gpu:2\n")
	writeFile(t, filepath.Join(conf, "gres.conf"), "AutoDetect=rsmi\n")
	d := launchWith(t, t.TempDir(), "amd", "--config", config, "--node", "n1", "--slurm-conf",
		filepath.Join(conf, "slurm.conf"))
	if s := d.status(); len(s.GPUs) != 2 || s.GPUs[1].Minor != 129 || s.GPUs[1].Model != "AMD Instinct MI210" {
		t.Errorf("%+v", s.GPUs)
	}
	event := hooks.Event{
		Version: hooks.ProtocolVersion, Kind: hooks.Prolog, Job: 7, Node: "n1", GPUs: []int{1}, GPUsKnown: true,
		Comment: hooks.Hex("epplan:fixed=1000"), Partition: "main",
	}
	a, err := d.client.Hook(t.Context(), &event)
	must(t, err)
	if !a.Applied || g.Level != "manual" || g.Hi != 1000 || !k.GPUs[0].IsAsLoaded() {
		t.Errorf("answer %+v, %+v\n%s", a, g, d.log)
	}
	event.Kind = hooks.Epilog
	_, err = d.client.Hook(t.Context(), &event)
	must(t, err)
	if g.Level != "high" || g.Hi != 1700 {
		t.Errorf("left at level %s, %d MHz", g.Level, g.Hi)
	}
	if code := d.stop(); code != exitDone {
		t.Errorf("epd ended with %d\n%s", code, d.log)
	}
}

func TestADryRunListsAMDsGPUs(t *testing.T) {
	amdNode(t, amdgputest.MI300X)
	var out, failed text
	code := run(t.Context(), []string{
		"epd", "--dry-run", "--gpu", "amd", "--role", "agent", "--controller", "localhost:1",
		"--state", t.TempDir(), "--socket", filepath.Join(t.TempDir(), "s"),
	}, &out, &failed)
	if code != exitDone || !strings.Contains(out.String(), "AMD Instinct MI300X OAM at 00000000:C1:00.0") {
		t.Errorf("%d\n%s%s", code, &out, &failed)
	}
}
