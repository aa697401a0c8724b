package nodekey_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/nodekey"
	"github.com/epplan/epplan/statedir"
)

func newKey(t *testing.T, role nodekey.Role, name string) *nodekey.Secret {
	t.Helper()
	s, err := nodekey.NewSecret(role, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAKeyIsWrittenOnceAndForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	s := newKey(t, nodekey.Node, "n1")
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	if err := newKey(t, nodekey.Node, "n1").Write(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one: %v", err)
	}
	back, err := nodekey.ReadSecret(path)
	if err != nil || back.String() != s.String() {
		t.Errorf("%v, %v", back, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), strings.Fields(s.String())[2]) {
		t.Errorf("the file has the public key in place of the secret one, %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
	for mode, want := range map[os.FileMode]string{
		0o640: "has mode 0640, want 0600", 0o604: "0604", 0o666: "0666", 0o400: "",
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := nodekey.ReadSecret(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.Symlink(path, path+".link"),
		syscall.Mkfifo(path+".fifo", 0o600), os.Mkdir(path+".dir", 0o700),
		os.WriteFile(path+".long", make([]byte, 9<<20), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, ending := range []string{".link", ".fifo", ".dir", ".long"} {
		if _, err := nodekey.ReadSecret(path + ending); err == nil {
			t.Errorf("%s is read as a key", ending)
		}
	}
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	insecure := (*statedir.InsecureError)(nil)
	if _, err := nodekey.ReadSecret(path); !errors.As(err, &insecure) {
		t.Errorf("a folder that others may write to: %v", err)
	}
}

func TestAListThatIsWrongIsRefusedWithItsLine(t *testing.T) {
	n1, n2 := newKey(t, nodekey.Node, "n1"), newKey(t, nodekey.Node, "n2")
	head := newKey(t, nodekey.Controller, "n1")
	good := "# ours\n" + n1.String() + " # rack 1\n\n" + head.String() + "\n"
	if list, err := nodekey.ParseTrusted("keys", good); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	twice := strings.Replace(n1.String(), " n1 ", " n3 ", 1)
	for text, want := range map[string]string{
		"node n1\n": "keys:3: want a role, a name and a key",
		"nodes n1 " + strings.Fields(n1.String())[2]:    `keys:3: keys: role "nodes"`,
		"node n[1-2] " + strings.Fields(n1.String())[2]: "keys:3:",
		"node n2 AAAA":                                    "keys:3: the key isn't 32 bytes in base64",
		"node n2 " + strings.Repeat("!", 44):              "keys:3: the key isn't",
		n2.String() + "\n" + strings.ToUpper(n2.String()): "keys:4:",
		n2.String() + "\n" + twice:                        "keys:4:",
	} {
		_, err := nodekey.ParseTrusted("keys", n1.String()+"\n"+head.String()+"\n"+text)
		if !errors.Is(err, nodekey.ErrFile) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestAKeyTakesThePlaceOfAnotherOnlyWhereThatIsWanted(t *testing.T) {
	n1, other := newKey(t, nodekey.Node, "n1").Public, newKey(t, nodekey.Node, "n1").Public
	n2 := newKey(t, nodekey.Node, "n2").Public
	list, err := nodekey.Enrol(nil, []nodekey.Public{n1, n2, n1}, false)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if _, err := nodekey.Enrol(list, []nodekey.Public{other}, false); !errors.Is(err, nodekey.ErrFile) {
		t.Errorf("without being told to: %v", err)
	}
	got, err := nodekey.Enrol(list, []nodekey.Public{other}, true)
	if err != nil || len(got) != 2 || got[0].String() != other.String() || list[0].String() != n1.String() {
		t.Errorf("%v, %v", got, err)
	}
	stolen := n1
	stolen.Name = "n3"
	if _, err := nodekey.Enrol(list, []nodekey.Public{stolen}, true); !errors.Is(err, nodekey.ErrFile) {
		t.Errorf("the same key for another: %v", err)
	}
	path := filepath.Join(t.TempDir(), "trusted-keys")
	if err := nodekey.WriteTrusted(path, []nodekey.Public{n2, n1}); err != nil {
		t.Fatal(err)
	}
	back, err := nodekey.ReadTrusted(path)
	if err != nil || len(back) != 2 || back[0].String() != n1.String() {
		t.Errorf("%v, %v", back, err)
	}
}

func TestAMachineThatBelievesNobodyIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	s := newKey(t, nodekey.Node, "n1")
	if err := s.Write(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"key", "none"} {
		_, err := nodekey.Open(filepath.Join(dir, key), filepath.Join(dir, "none"), time.Now)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, and no list: %v", key, err)
		}
	}
}
