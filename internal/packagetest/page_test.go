package packagetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// apt does by dpkg what the page does by apt.
const apt = `#!/bin/sh
verb=$1; shift
case $verb in install) verb=-i ;; remove) verb=-r ;; purge) verb=-P ;; *) exit 2 ;; esac
exec dpkg --root="$MACHINE" --force-script-chrootless --log="$MACHINE/dpkg.log" "$verb" "$@"
`

// standIns are programs by name: they do what the page does by programs that
// not every machine has. The recipes themselves are another test's.
var standIns = map[string]string{
	"apt":  apt,
	"make": "#!/bin/sh\n[ \"$*\" = packages ] && mkdir -p bin && ln -sfn \"$BUILT\" bin/packages\n",
	"docker": `#!/bin/sh
case "$*" in
"build -t epplan -f packaging/Dockerfile .") test -f packaging/Dockerfile ;;
"run --rm -v $PWD:/data epplan "*) shift 5; exec epplan "$@" ;;
*) exit 2 ;;
esac
`,
	"apptainer": `#!/bin/sh
[ "$*" = "build epplan.sif packaging/apptainer.def" ] && test -f packaging/apptainer.def || exit 2
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v epplan)" >epplan.sif && chmod 755 epplan.sif
`,
}

// asInstalled returns the paths of a command as they are on the machine.
func (m *machine) asInstalled(command string) string {
	for _, folder := range []string{"/etc/epplan", "/etc/default", "/var/lib/epplan"} {
		command = strings.ReplaceAll(command, folder, m.path(folder))
	}
	return command
}

func TestThePageOfPackagesWorksAsWritten(t *testing.T) {
	_, missing := exec.LookPath("dpkg")
	shareddata.Need(t, missing == nil, "there is no dpkg")
	c, dir, m, here := doctest.Claim(t, "packages"), built(t), newMachine(t), t.TempDir()
	m.debian()
	for _, version := range []string{older, newer} {
		for _, deb := range debs(t, dir, version) {
			name := strings.Replace(filepath.Base(deb), "_arm64", "_amd64", 1) // as the page has it
			if err := os.Symlink(deb, filepath.Join(here, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, script := range standIns {
		if err := os.WriteFile(filepath.Join(filepath.Dir(m.said), name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.CopyFS(here, os.DirFS(filepath.Join(root(t), "testdata", "demo"))),
		os.Symlink(filepath.Join(root(t), "packaging"), filepath.Join(here, "packaging"))); err != nil {
		t.Fatal(err)
	}
	previousDatabase(t, m.path("/var/lib/epplan-controller/records.db"))
	env := append([]string{
		"MACHINE=" + m.dir, "BUILT=" + filepath.Join(dir, newer), "MANPATH=" + m.path("/usr/share/man"),
		"MANPAGER=cat", "LC_ALL=C.UTF-8",
	}, m.env...)
	env = append(env, "PATH="+filepath.Dir(m.said)+":"+dir+":"+os.Getenv("PATH"))
	for _, b := range c.Blocks {
		for _, s := range b.Steps {
			cmd := command(t.Context(), env, "sh", "-c", m.asInstalled(s.Command))
			cmd.Dir = here
			out, err := cmd.CombinedOutput()
			if err != nil && !strings.HasPrefix(s.Command, "ls ") { // which is to find nothing
				t.Fatalf("%s: %s: %v\n%s", s.At(), s.Command, err, out)
			}
			if got := strings.ReplaceAll(string(out), m.dir, ""); !doctest.Shows(got, s.Shown) {
				t.Errorf("%s: %s prints\n%s\nand not\n%s", s.At(), s.Command, got,
					strings.Join(s.Shown, "\n"))
			}
			c.Ran(s)
		}
	}
	m.wantTold([]string{
		"enable --now epd-controller", "enable --now epd-agent", "try-restart epd-agent.service",
	}, nil)
}
