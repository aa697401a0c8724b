package archtest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"
)

// fixturePath is the module path of every fixture.
const fixturePath = "example.org/house"

// build writes a module from a txtar archive to a temporary folder and returns
// its root. The archive needs no go.mod.
func build(t *testing.T, archive string) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, "go.mod", []byte("module "+fixturePath+"\n\ngo 1.26\n"))
	for _, file := range txtar.Parse([]byte(archive)).Files {
		write(t, root, file.Name, file.Data)
	}
	return root
}

// write writes one file of a fixture.
func write(t *testing.T, root, name string, data []byte) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
