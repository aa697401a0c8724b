package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm"
)

func warnings(t *testing.T, text string) string {
	t.Helper()
	return fmt.Sprint(errors.Join(load(t, text).Warnings()...))
}

func TestWhatIsHardlyMeantIsWarnedOfWithItsPosition(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{
			"[live]\nmax_slowdown = 10",
			"2:1: live.max_slowdown is 10: a job may run 10 times as long as at default clocks; " +
				"10 % longer is 1.1",
		},
		{
			"[live.max_slowdowns]\nlong = 5",
			"2:1: live.max_slowdowns.long is 5: a job may run 5 times",
		},
		{"[live]\nmode = \"enforce\"\nhold_out = 0", "3:1: live.hold_out is 0 where clocks are set"},
		{
			"[live]\nhold_out = 0\n[live.modes]\ngpu = \"enforce\"",
			"2:1: live.hold_out is 0 where clocks are set",
		},
		{
			"[live.plan]\nmode = \"enforce\"",
			"2:1: live.plan.mode is enforce, and no more than observe is done: mode and modes of [live]",
		},
		{
			"[live]\nmode = \"advise\"\n[live.plan.modes]\ngpu = \"enforce\"",
			"4:1: live.plan.modes has partition \"gpu\" at enforce, and no more than advise is done",
		},
	} {
		if got := warnings(t, c.text); !strings.Contains(got, c.want) {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
	for _, text := range []string{
		"", "[live]\nmax_slowdown = 2", "[live]\nhold_out = 0",
		"[live]\nmode = \"enforce\"\n[live.plan]\nmode = \"enforce\"",
		"[live.modes]\ngpu = \"enforce\"\n[live.plan]\nmode = \"enforce\"",
		"[live.modes]\ngpu = \"enforce\"\n[live.plan.modes]\ngpu = \"enforce\"", "[live.plan]\nmode = \"observe\"",
	} {
		if got := load(t, text).Warnings(); len(got) > 0 {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestClocksRelativeToTheDefaultSayThatTheyArentMHz(t *testing.T) {
	_, err := Load(strings.NewReader("[live]\nmin_core = 1200"), "c.toml", nil)
	if err == nil || !strings.Contains(err.Error(),
		"c.toml:2:12: live.min_core is 1200, want a number above 0, up to 10 "+
			"times the default clock, not MHz") {
		t.Error(err)
	}
}

// Each table by partition, and the nodes.
func TestNamesThatSlurmDoesntHaveAreWarnedOf(t *testing.T) {
	nodes := []slurm.Node{
		{Name: "n1", Partitions: []string{"gpu", "debug"}},
		{Name: "n2", Partitions: []string{"gpu"}},
	}
	for table, value := range map[string]string{
		"live.modes": `"enforce"`, "live.max_slowdowns": "1.2", "live.min_gains": "0.1", "live.reorders": `"off"`,
		"live.limit_hints": "true", "live.plan.modes": `"off"`, "live.adapt.modes": `"off"`, "live.cap.modes": `"off"`,
		"live.cap.limits": "0.8", "live.hours.slack_s": "3600", "live.plan.paces": "1.2", "live.profile.names": `"off"`, "live.site_clocks.partitions": "{V100 = 1237}",
	} {
		for name, wrong := range map[string]bool{"gpu": false, "gpuu": true} {
			c := load(t, "["+table+"]\n"+name+" = "+value+"\n[live.plan]\npolicy = \"replan,pace=1\"\n")
			got := errors.Join(c.UnknownNames(NamesIn(nodes))...)
			want := `c.toml:2:1: ` + table + ` has partition "gpuu", which Slurm doesn't have, did you mean "gpu"?`
			if wrong != (got != nil) || wrong && got.Error() != want {
				t.Errorf("%s: %v, want %s", table, got, want)
			}
			if unasked := c.UnknownNames(&SlurmNames{}); len(unasked) > 0 {
				t.Errorf("Slurm wasn't asked: %v", unasked)
			}
		}
	}
	c := load(t, "[live.site_clocks.nodes.\"n[1-3]\"]\nV100 = 1237\n")
	if got := c.UnknownNames(NamesIn(nodes)); len(got) != 1 ||
		!strings.Contains(got[0].Error(), `has node "n3", which`) {
		t.Error(got)
	}
}
