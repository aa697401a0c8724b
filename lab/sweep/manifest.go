package sweep

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Manifest says what the parts of a sweep follow from. Two sweeps with the same one come
// to the same.
type Manifest struct {
	Program string   `json:"program"` // with its version and the kind of machine
	Command []string `json:"command"` // with the arguments that matter to the parts
	Inputs  []Input  `json:"inputs"`  // in the order in which they are first read
	Parts   []string `json:"parts"`   // what each part is, such as "policy edl, theta 0.9"
}

// Input is a file that is read, by what is in it.
type Input struct {
	Name   string `json:"name"` // as it was given
	SHA256 string `json:"sha256"`
}

// ErrStream means that an input isn't a file that can be read again elsewhere.
var ErrStream = errors.New("isn't a file that other machines can read, too")

// ReadInputs reads the named files, each once.
func ReadInputs(names []string) ([]Input, error) {
	var all []Input
	for _, name := range names {
		if slices.ContainsFunc(all, func(in Input) bool { return in.Name == name }) {
			continue
		}
		sum, err := digestOf(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, Input{name, sum})
	}
	return all, nil
}

func digestOf(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", pathless(err)
	}
	if !info.Mode().IsRegular() {
		return "", ErrStream
	}
	file, err := os.Open(name)
	if err != nil {
		return "", pathless(err)
	}
	defer func() { _ = file.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", pathless(err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// pathless is an error without the name of the file.
func pathless(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// text returns the manifest as its file has it.
func (m *Manifest) text() []byte {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic(err) // strings alone
	}
	return append(text, '\n')
}

// ID returns what tells sweeps with different manifests apart.
func (m *Manifest) ID() string {
	sum := sha256.Sum256(m.text())
	return hex.EncodeToString(sum[:6])
}

// maxDifferences is how many differences are told.
const maxDifferences = 5

// differences says, a line each, how a manifest differs from that of a sweep that was begun.
func (m *Manifest) differences(begun *Manifest) []string {
	var all []string
	if m.Program != begun.Program {
		all = append(all, fmt.Sprintf("it was begun by %s, and this is %s", begun.Program, m.Program))
	}
	if !slices.Equal(m.Command, begun.Command) {
		all = append(all, onlyIn("its command line", begun.Command, m.Command)...)
	}
	known := make(map[string]string)
	for _, in := range begun.Inputs {
		known[in.Name] = in.SHA256
	}
	for _, in := range m.Inputs {
		sum, ok := known[in.Name]
		delete(known, in.Name)
		switch {
		case !ok:
			all = append(all, in.Name+" wasn't read then")
		case sum != in.SHA256:
			all = append(all, in.Name+" has changed")
		}
	}
	for _, in := range begun.Inputs {
		if _, left := known[in.Name]; left {
			all = append(all, in.Name+" was read then, and isn't now")
		}
	}
	if len(all) == 0 && !slices.Equal(m.Parts, begun.Parts) {
		all = append(all, onlyIn("its parts", begun.Parts, m.Parts)...)
	}
	if more := len(all) - maxDifferences; more > 0 {
		all = append(all[:maxDifferences], fmt.Sprintf("… and %d more", more))
	}
	return all
}

// onlyIn says what one of two lists has that the other doesn't.
func onlyIn(what string, begun, now []string) []string {
	var all []string
	for _, word := range begun {
		if !slices.Contains(now, word) {
			all = append(all, fmt.Sprintf("%s had %s", what, word))
		}
	}
	for _, word := range now {
		if !slices.Contains(begun, word) {
			all = append(all, fmt.Sprintf("%s had no %s", what, word))
		}
	}
	if len(all) == 0 {
		all = append(all, what+" had another order")
	}
	return all
}

// OtherSweepError means that a folder has the parts of another sweep.
type OtherSweepError struct {
	Folder      string
	Differences []string
}

// Error says what differs, a line each.
func (e *OtherSweepError) Error() string {
	return e.Folder + " has the parts of another sweep:\n  " + strings.Join(e.Differences, "\n  ")
}

// readManifest reads a manifest file; nil: there is none.
func readManifest(path string) (*Manifest, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	from := json.NewDecoder(bytes.NewReader(text))
	from.DisallowUnknownFields()
	if err := from.Decode(m); err != nil {
		return nil, fmt.Errorf("%s: want the manifest of a sweep: %w", path, err)
	}
	return m, nil
}

// shortDigest tells texts apart in a name.
func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
