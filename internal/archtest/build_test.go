package archtest

import (
	"debug/elf"
	"path/filepath"
	"runtime"
	"testing"
)

// buildStatic builds a command of the module at root without cgo and returns
// the binary's path, or what the compiler had to say.
func buildStatic(t *testing.T, root, command string) (string, error) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "binary")
	_, err := goCommand(t, root, "0", "build", "-buildvcs=false", "-o", binary, "./"+command)
	return binary, err
}

func TestTheCLIBuildsWithoutCgoAndIsStatic(t *testing.T) {
	binary, err := buildStatic(t, rootDir(t), "cmd/epplan")
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "linux" {
		return // other systems' binaries are never static
	}
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("cmd/epplan asks for a dynamic loader")
		}
	}
}

func TestACommandThatNeedsCgoDoesNotBuildWithoutIt(t *testing.T) {
	root := build(t, `
-- cmd/epplan/main.go --
package main

// int one(void) { return 1; }
import "C"

func main() { C.one() }
`)
	if _, err := buildStatic(t, root, "cmd/epplan"); err == nil {
		t.Error("a command with cgo was built with CGO_ENABLED=0")
	}
}
