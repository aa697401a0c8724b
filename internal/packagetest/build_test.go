package packagetest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/storetest"
)

// The versions that are built: an upgrade goes from the first to the second.
const (
	older = "v0.1.0"
	newer = "v0.2.0"
)

// epoch is when everything in the packages is from.
const epoch = "1767225600"

// packages returns those that belong together, each after those that it needs.
func packages() []string {
	return []string{"epplan", "epplan-epd", "epplan-controller", "epplan-agent"}
}

// root returns the project's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// command returns a program with more in its environment.
func command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// do runs a program that has to end well, and returns all that it prints.
func do(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), env, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// makefile returns a setting of the Makefile.
func makefile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + `\s*:=\s*(\S+)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return string(found[1])
}

// nfpm returns the packager, which make installs where it is missing.
func nfpm(t *testing.T) string {
	t.Helper()
	path := filepath.Join(root(t), ".cache", "bin", "nfpm-"+makefile(t, "NFPM_VERSION"), "nfpm")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	out, err := command(t.Context(), nil, "make", "-s", "-C", root(t), path).CombinedOutput()
	shareddata.Need(t, err == nil, "nfpm can't be installed: "+string(out))
	return path
}

// shared is the folder of what all tests look at, made when the first one asks.
var shared struct {
	sync.Once
	dir string
}

// TestMain removes it in the end.
func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(shared.dir)
	os.Exit(code)
}

// built returns a folder with both programs, and the packages of both versions in
// folders named by them.
func built(t *testing.T) string {
	t.Helper()
	storetest.NeedSQLite(t)
	packager := nfpm(t)
	shared.Do(func() {
		dir, err := os.MkdirTemp("", "epplan-packages") //nolint:usetesting // all tests share it
		if err != nil {
			t.Fatal(err)
		}
		shared.dir = dir
		for _, version := range []string{older, newer} {
			build(t, packager, version, dir, filepath.Join(dir, version))
		}
	})
	if t.Failed() || shared.dir == "" {
		t.Fatal("there are no packages")
	}
	return shared.dir
}

// build builds the packages of a version into a folder, from programs in dir.
func build(t *testing.T, packager, version, dir, out string) {
	t.Helper()
	epplan, epd := filepath.Join(dir, "epplan"), filepath.Join(dir, "epd")
	if _, err := os.Stat(epd); errors.Is(err, os.ErrNotExist) {
		compile := func(cgo, out, what string) {
			do(t, []string{"CGO_ENABLED=" + cgo}, "go", "build", "-C", root(t), "-trimpath",
				"-buildvcs=false", "-ldflags", "-s -w", "-o", out, what)
		}
		compile("0", epplan, "./cmd/epplan")
		compile("1", epd, "./cmd/epd")
	}
	do(t, []string{"NFPM=" + packager, "SOURCE_DATE_EPOCH=" + epoch},
		filepath.Join(root(t), "packaging", "build.sh"), version, epplan, epd, out+".stage", out)
}
