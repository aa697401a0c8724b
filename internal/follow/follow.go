package follow

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Bounds of what is read beside the script itself.
const (
	MaxFile    = 64 << 10  // bytes of a file; larger ones are skipped
	MaxTotal   = 256 << 10 // bytes of all files
	MaxFiles   = 8
	maxDepth   = 4    // scripts that run scripts
	maxLines   = 5000 // of a script
	maxSkipped = 20   // files that are told to be skipped
)

// Sources are what a script runs.
type Sources struct {
	Files   []string // that were read, below the folder, in order
	Skipped []Skipped
	Text    string // the script, and then the files
	Digest  [sha256.Size]byte
}

// Skipped is a file that wasn't read.
type Skipped struct {
	Name string `json:"file"`
	Why  string `json:"why"`
}

// Script finds and reads what a script runs below the folder in which it is
// submitted. Where begins names a folder in it, "" is itself, such as --chdir's.
func Script(root *os.Root, script, begins string) *Sources {
	f := &sourceFollower{root: root, found: &Sources{}}
	if bytes.IndexByte([]byte(script), 0) >= 0 {
		f.skip("the script", "is binary")
		script = ""
	}
	f.text.WriteString(script)
	s := &shellState{dir: ".", vars: map[string]string{"PWD": ".", "SLURM_SUBMIT_DIR": "."}}
	if begins != "" {
		s.cd(begins)
	}
	f.followLines(s, script, 0)
	f.found.Text = f.text.String()
	f.found.Digest = sha256.Sum256([]byte(f.found.Text))
	return f.found
}

// sourceFollower is one on its way.
type sourceFollower struct {
	root  *os.Root
	found *Sources
	text  strings.Builder
	all   int64 // bytes of files
}

func (f *sourceFollower) skip(name, why string) {
	s := Skipped{name, why}
	if len(f.found.Skipped) < maxSkipped && !slices.Contains(f.found.Skipped, s) {
		f.found.Skipped = append(f.found.Skipped, s)
	}
}

// readNamed reads a file that a script names, and returns its text; false where it is
// none that can be read, or was read already.
func (f *sourceFollower) readNamed(name string) (string, bool) {
	if name == "" || slices.Contains(f.found.Files, name) {
		return "", false
	}
	text, err := f.read(name)
	if err != nil {
		f.skip(name, shortReason(err))
		return "", false
	}
	f.found.Files = append(f.found.Files, name)
	f.all += int64(len(text))
	f.text.WriteString("\n")
	f.text.WriteString(text)
	return text, true
}

// shortReason returns an error in few words, without the file's name.
func shortReason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}

// read reads a regular file within the bounds.
func (f *sourceFollower) read(name string) (string, error) {
	if len(f.found.Files) >= MaxFiles {
		return "", fmt.Errorf("is one more than %d files", MaxFiles)
	}
	if isHidden(name) {
		return "", errors.New("is hidden")
	}
	info, err := f.root.Stat(name)
	if err != nil {
		return "", err
	}
	if err := checkReadable(info); err != nil {
		return "", err
	}
	in, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }() // only read
	if info, err = in.Stat(); err != nil {
		return "", err
	}
	if err := checkReadable(info); err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(in, MaxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > MaxFile:
		return "", fmt.Errorf("has more than %d bytes", MaxFile)
	case f.all+int64(len(data)) > MaxTotal:
		return "", fmt.Errorf("would make it more than %d bytes in all", MaxTotal)
	case bytes.IndexByte(data, 0) >= 0:
		return "", errors.New("is binary")
	}
	return string(data), nil
}

// isHidden reports whether a file is one, or in a folder that is: .env and the like have
// secrets in them, and .venv nobody's source code.
func isHidden(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		return len(part) > 1 && part[0] == '.'
	})
}

func checkReadable(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return errors.New("is no regular file")
	case info.Size() > MaxFile:
		return fmt.Errorf("has more than %d bytes", MaxFile)
	}
	return nil
}

// readModule reads what python -m runs.
func (f *sourceFollower) readModule(dir, name string) {
	base := path.Join(dir, strings.ReplaceAll(name, ".", "/"))
	for _, candidate := range []string{
		base + ".py", path.Join(base, "__main__.py"),
		path.Join(base, "__init__.py"),
	} {
		if _, err := f.root.Stat(candidate); err == nil {
			f.readNamed(candidate)
			return
		}
	}
}
