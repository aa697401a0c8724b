package install_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm/install"
	"github.com/epplan/epplan/slurm/slurmconf"
)

func TestAnInstallationIsRecognised(t *testing.T) {
	plan, err := install.PlanInstall(install.Site{
		Dir: "/etc/slurm", Socket: "/run/epplan/submit.sock", Binary: "/usr/bin/epplan", Popen: true,
		CheckLua: func(string, string) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, s := range plan.Steps {
		files[s.File] = s.Text
	}
	script, module := files["/etc/slurm/job_submit.lua"], files["/etc/slurm/epplan.lua"]
	if path, called := install.SubmitCall(script); !called || path != "/etc/slurm/epplan.lua" {
		t.Errorf("the call of %q, %v", path, called)
	}
	socket, program := install.ModuleValue(module, "SOCKET"), install.ModuleValue(module, "PROGRAM")
	if socket != "/run/epplan/submit.sock" || program != "/usr/bin/epplan" {
		t.Errorf("socket %q, program %q", socket, program)
	}
	if ours, unchanged := install.Installed(module); !ours || !unchanged {
		t.Errorf("the module: ours %v, unchanged %v", ours, unchanged)
	}
	changed := strings.Replace(module, "BREAKER   = 5", "BREAKER   = 50", 1)
	if ours, unchanged := install.Installed(changed); !ours || unchanged {
		t.Errorf("a changed module: ours %v, unchanged %v", ours, unchanged)
	}
	commented := strings.Replace(script, "  pcall(", "  -- pcall(", 1)
	if _, called := install.SubmitCall(commented); called || commented == script {
		t.Error("a comment calls the module")
	}
	for _, text := range []string{"", "return slurm.SUCCESS\n", "-- epplan\n"} {
		if path, called := install.SubmitCall(text); called || path != "" {
			t.Errorf("%q calls %q", text, path)
		}
		if ours, _ := install.Installed(text); ours {
			t.Errorf("%q is ours", text)
		}
	}
}

func TestSettingsOfASlurmConfAreReadWithoutComments(t *testing.T) {
	got := slurmconf.Values("# PrologFlags=X\nPrologflags=Alloc # epplan, added\n" +
		"AuthInfo=socket=/run/m,cred_expire=5\nInclude more.conf\nNodeName=n1 CPUs=4\n")
	for key, want := range map[string]string{
		"prologflags": "Alloc",
		"authinfo":    "socket=/run/m,cred_expire=5", "include": "",
	} {
		if got[key] != want {
			t.Errorf("%s=%q, want %q", key, got[key], want)
		}
	}
}
