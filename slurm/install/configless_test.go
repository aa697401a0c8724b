package install_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/install"
)

// planConfigless plans an installation whose hooks slurmctld sends to nodes.
func planConfigless(s install.Site) (install.Plan, error) {
	s.Configless = true
	return install.PlanInstall(s)
}

func TestHooksThatSlurmSendsStandBesideTheSitesOwn(t *testing.T) {
	for name, c := range map[string]struct{ conf, want string }{
		"none of its own": {
			"SlurmctldParameters=enable_configless\nPrologFlags=Alloc\n",
			"SlurmctldParameters=enable_configless\nPrologFlags=Alloc\n+Prolog=epplan-prolog\n+Epilog=epplan-epilog\n" +
				"+JobSubmitPlugins=lua\n",
		},
		"several, and settings below": {
			"SlurmctldParameters=a,Enable_Configless\r\nEpilog=/e.sh\r\nEpilog=e\r\nProlog=/p.d/*\r\nPrologFlags=X11\r\n",
			"SlurmctldParameters=a,Enable_Configless\r\n+Epilog=epplan-epilog\r\nEpilog=/e.sh\r\nEpilog=e\r\n" +
				"Prolog=/p.d/*\r\nPrologFlags=X11,Alloc # epplan, was: PrologFlags=X11\r\n" +
				"+Prolog=epplan-prolog\r\n+JobSubmitPlugins=lua\r\n",
		},
		"empty settings": {
			"SlurmctldParameters=enable_configless\nProlog=\nEpilog=\nPrologFlags=Alloc",
			"SlurmctldParameters=enable_configless\nProlog=\n+Epilog=epplan-epilog\nEpilog=\nPrologFlags=Alloc\n" +
				"+Prolog=epplan-prolog\n+JobSubmitPlugins=lua",
		},
	} {
		dir := newSite(t, map[string]string{"slurm.conf": c.conf})
		before := tree(t, dir)
		do(t, dir, planConfigless)
		got := strings.ReplaceAll(tree(t, dir)["slurm.conf"], " # epplan, added", "")
		if want := strings.ReplaceAll(c.want, "+", ""); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		added := strings.Count(tree(t, dir)["slurm.conf"], " # epplan, added")
		if added != strings.Count(c.want, "+") {
			t.Errorf("%s: %d lines are marked as added", name, added)
		}
		for _, again := range []func(install.Site) (install.Plan, error){planConfigless, install.PlanInstall} {
			if n := do(t, dir, again); n != 0 {
				t.Errorf("%s: %d steps are left", name, n)
			}
		}
		do(t, dir, install.PlanUndo)
		if after := tree(t, dir); after["epplan-prolog"] == "" || after["epplan-epilog"] == "" {
			t.Errorf("%s: what slurm.conf named when Slurm read it last is gone: %q", name, after)
		}
		do(t, dir, install.PlanUndo) // after scontrol reconfigure
		sameTree(t, name+", undone", tree(t, dir), before)
	}
}

func TestHooksAreNotSentWhereNodesCanNotFetchThem(t *testing.T) {
	s := site(func(string, string) error { return nil })
	if _, err := planConfigless(s); !errors.Is(err, slurm.ErrInvalid) ||
		!strings.Contains(err.Error(), "enable_configless") {
		t.Error(err)
	}
	s.Conf = "Include more.conf\nProlog=/etc/slurm/p.sh\n"
	if p, err := planConfigless(s); err != nil || len(p.Warnings) == 0 || p.ConfBlocked == "" {
		t.Errorf("%q, %q, %v", p.Warnings, p.ConfBlocked, err)
	}
}

// Both at once would lock and record each job twice.
func TestHooksInFoldersAreTakenOutBeforeOthersAreSent(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"in a folder of ours": {"slurm.conf": "SlurmctldParameters=enable_configless\n"},
		"in the site's": {
			"slurm.conf":  "SlurmctldParameters=enable_configless\nProlog=DIR/p.d/*\nEpilog=DIR/e.d/*\n",
			"p.d/50-site": "x", "e.d/50-site": "x",
		},
	} {
		dir := newSite(t, files)
		writeFile(t, dir+"/slurm.conf", strings.ReplaceAll(files["slurm.conf"], "DIR", dir))
		do(t, dir, install.PlanInstall)
		if _, err := planConfigless(diskSite(t, dir)); !errors.Is(err, slurm.ErrInvalid) ||
			!strings.Contains(err.Error(), "is installed already") {
			t.Errorf("%s: %v", name, err)
		}
		do(t, dir, install.PlanUndo)
		do(t, dir, install.PlanUndo)
		if n := do(t, dir, planConfigless); n == 0 {
			t.Errorf("%s: nothing is planned after the undo", name)
		}
	}
}
