package packagetest

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// digests returns those of a folder's packages, by name.
func digests(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	found := make(map[string][32]byte)
	for _, pattern := range []string{"*.deb", "*.rpm"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(paths) != len(packages()) {
			t.Fatalf("%q, %v: want %d", paths, err, len(packages()))
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.Base(path)] = sha256.Sum256(text)
		}
	}
	return found
}

func TestTheSameSourceGivesTheSamePackages(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds all packages once more")
	}
	dir, again := built(t), filepath.Join(t.TempDir(), "again")
	build(t, nfpm(t), newer, dir, again)
	want := digests(t, filepath.Join(dir, newer))
	for name, got := range digests(t, again) {
		if got != want[name] {
			t.Errorf("%s differs from the one before", name)
		}
	}
}

func TestEPDNeedsNoNewerCLibraryThanItsPackageSays(t *testing.T) {
	file, err := elf.Open(filepath.Join(built(t), "epd"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // read only
	symbols, err := file.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		version, ok := strings.CutPrefix(s.Version, "GLIBC_2.")
		minor, _, _ := strings.Cut(version, ".")
		if n, err := strconv.Atoi(minor); ok && (err != nil || n > 34) {
			t.Errorf("%s needs glibc 2.%s, the packages say 2.34", s.Name, version)
		}
	}
	libraries, err := file.ImportedLibraries()
	if err != nil || !slices.Equal(libraries, []string{"libc.so.6"}) {
		t.Errorf("epd needs %q, %v; the packages say the C library alone", libraries, err)
	}
}

// unpacked returns a folder with the files of all debs of the newer version.
func unpacked(t *testing.T) string {
	t.Helper()
	_, missing := exec.LookPath("dpkg-deb")
	shareddata.Need(t, missing == nil, "there is no dpkg-deb")
	dir, into := built(t), t.TempDir()
	for _, deb := range debs(t, dir, newer) {
		do(t, nil, "dpkg-deb", "-x", deb, into)
	}
	return into
}

func TestEveryCommandHasAManualThatRendersWithoutWarnings(t *testing.T) {
	_, noMan := exec.LookPath("man")
	_, noLint := exec.LookPath("mandoc")
	shareddata.Need(t, noMan == nil && noLint == nil, "there is no man, or no mandoc")
	manual := filepath.Join(unpacked(t), "usr", "share", "man")
	pages, err := filepath.Glob(filepath.Join(manual, "man[18]", "*.gz"))
	if err != nil || len(pages) < 50 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	var out bytes.Buffer
	cmd := command(t.Context(), []string{"MANROFFOPT=-ww", "MANWIDTH=80", "LC_ALL=C.UTF-8"}, "man",
		append([]string{"--warnings", "-l"}, pages...)...)
	cmd.Stdout, cmd.Stderr = &bytes.Buffer{}, &out
	if err := cmd.Run(); err != nil || out.Len() > 0 {
		t.Errorf("man: %v\n%s", err, &out)
	}

	plain := t.TempDir()
	do(t, nil, filepath.Join(built(t), "epplan"), "man", plain)
	do(t, nil, filepath.Join(built(t), "epd"), "man", plain)
	if pages, err = filepath.Glob(filepath.Join(plain, "man[18]", "*")); err != nil {
		t.Fatal(err)
	}
	do(t, nil, "mandoc", append([]string{"-T", "lint", "-W", "warning"}, pages...)...)

	for _, page := range []struct {
		name  string
		wants []string
	}{
		{
			"epplan-plan", []string{
				"NAME\n", "SYNOPSIS\n       epplan plan BATCH [OPTIONS]\n", "--policy POLICY, -p\n",
				"EXIT STATUS\n", "EXAMPLES\n", "SEE ALSO\n       epplan(1), epd(8)\n",
			},
		},
		{"epplan-model-fit", []string{"epplan model fit ", "epplan-model(1)"}},
		{"epplan-restore", []string{"FILES\n", "/var/lib/epplan/journal\n", "EPPLAN_SOCKET\n"}},
		{"epd", []string{"epd-restore(8)\n", "/etc/default/epd", "epplan(1)\n"}},
	} {
		text := do(t, []string{"MANWIDTH=80", "LC_ALL=C.UTF-8", "MANPAGER=cat", "GROFF_NO_SGR=1"}, "man",
			"-M", manual, page.name)
		for _, want := range page.wants {
			if !strings.Contains(text, want) {
				t.Errorf("man %s has no %q:\n%s", page.name, want, text)
			}
		}
	}
}

// asked is a command line of which the last word is being written, and what a
// shell offers for it; files: "a file".
type asked struct{ line, offers string }

// questions are put to every shell.
func questions() []asked {
	return []asked{
		{"epplan sav", "savings"},
		{"epplan model sh", "show"},
		{"epplan plan --policy lpt", "lpt-ff"},
		{"epplan plan batch.csv --pol", "--policy"},
		{"epplan replay --format sac", "sacct"},
		{"epplan completion ", "bash fish zsh"},
		{"epplan explain job1 hooks", "hooks.csv"},
		{"epd --role con", "controller"},
		{"epd db export dec", "decisions"},
		{"epd restore --jou", "--journal"},
	}
}

// shells are scripts that print what a shell offers for a command line, $1, by
// the completions below $R.
func shells() map[string]string {
	return map[string]string{
		"bash": `line=$1
read -ra COMP_WORDS <<<"$line"; [[ $line != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) program=${COMP_WORDS[0]}
. "$R/usr/share/bash-completion/completions/$program"
[[ $(complete -p "$program") == *"-o default -F _$program $program" ]] || echo "no completion"
COMPREPLY=(); "_$program"
[ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
printf '%s\n' "${COMPREPLY[@]}"`,
		"zsh": `line=$1; words=(${(z)line}); [[ $line != *' ' ]] || words+=('')
CURRENT=${#words}; program=$words[1]
compdef() { [[ $2 == $program ]] || print "no completion" }
compadd() { print -l -- ${(PM)2:#${words[CURRENT]}*} }
_files() { print -l -- ${words[CURRENT]}*(N) }
fpath=($R/usr/share/zsh/vendor-completions $fpath); autoload -U _$program
_$program`,
		"fish": `source $R/usr/share/fish/vendor_completions.d/(string split ' ' -- $argv[1])[1].fish
complete -C $argv[1]`,
	}
}

func TestShellsCompleteCommandsFlagsValuesAndFiles(t *testing.T) {
	into, dir := unpacked(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hooks.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for shell, script := range shells() {
		_, missing := exec.LookPath(shell)
		shareddata.Need(t, missing == nil, "there is no "+shell)
		for _, q := range questions() {
			args := []string{"-c", script, shell, q.line}
			if shell == "fish" {
				args = []string{"--no-config", "-c", script, q.line}
			}
			cmd := command(t.Context(),
				[]string{
					"R=" + into, "HOME=" + dir,
					"PATH=" + filepath.Join(into, "usr", "bin") + ":" + os.Getenv("PATH"),
				}, shell, args...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			offers := strings.Fields(string(out))
			slices.Sort(offers)
			if got := strings.Join(offers, " "); err != nil || got != q.offers {
				t.Errorf("%s: %q offers %q (%v), want %q", shell, q.line, got, err, q.offers)
			}
		}
	}
}
