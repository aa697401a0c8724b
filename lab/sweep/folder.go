package sweep

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
)

// What is in a folder, by name:
//
//	manifest.json   what the parts follow from
//	parts/000017    what a part came to
//	failed/000017   why a part can't be done
//	tasks/2.json    which parts each task of the second array does
//	tasks/2.sh      its script
//	tasks/2_7.log   what its task 7 printed,
//	tasks/2_7.begun which parts it began, a line each,
//	tasks/2_7.ended and its exit status
const (
	manifestFile = "manifest.json"
	partsFolder  = "parts"
	failedFolder = "failed"
	tasksFolder  = "tasks"
)

var folders = []string{partsFolder, failedFolder, tasksFolder}

// Folder is a sweep in a folder that all machines share.
type Folder struct {
	path string // absolute
	id   string
	m    *Manifest
}

// Open opens a folder for a sweep, and makes it if it isn't there. That of another sweep is
// an *OtherSweepError.
func Open(path string, m *Manifest) (*Folder, error) {
	f, err := newFolder(path, m)
	if err != nil {
		return nil, err
	}
	begun, err := readManifest(f.file(manifestFile))
	if err != nil {
		return nil, err
	}
	if begun == nil {
		if err := f.checkUnused(); err != nil {
			return nil, err
		}
	}
	for _, name := range folders {
		if err := os.MkdirAll(f.file(name), 0o750); err != nil {
			return nil, err
		}
	}
	if begun == nil {
		return f, f.replace(f.file(manifestFile), m.text())
	}
	return f, f.check(begun)
}

// checkUnused refuses a folder without a manifest that has anything else in it than what
// one has that was killed before it wrote its manifest.
func (f *Folder) checkUnused() error {
	files, err := os.ReadDir(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		if name := file.Name(); !slices.Contains(folders, name) && !strings.HasPrefix(name, "."+manifestFile) {
			return fmt.Errorf("%s has %s in it, and no sweep: want a folder of its own, that is empty or not there",
				f.path, name)
		}
	}
	return nil
}

// Join opens the folder of a sweep that was begun with the same manifest.
func Join(path string, m *Manifest) (*Folder, error) {
	f, err := newFolder(path, m)
	if err != nil {
		return nil, err
	}
	begun, err := readManifest(f.file(manifestFile))
	if err == nil && begun == nil {
		err = fmt.Errorf("%s has no %s, want the folder of a sweep", path, manifestFile)
	}
	if err != nil {
		return nil, err
	}
	return f, f.check(begun)
}

// Describe returns a folder that is neither opened nor made, to say what would be done.
func Describe(path string, m *Manifest) (*Folder, error) { return newFolder(path, m) }

func newFolder(path string, m *Manifest) (*Folder, error) {
	absolute, err := filepath.Abs(path)
	return &Folder{path: absolute, id: m.ID(), m: m}, err
}

func (f *Folder) check(begun *Manifest) error {
	if differences := f.m.differences(begun); len(differences) > 0 {
		return &OtherSweepError{Folder: f.path, Differences: differences}
	}
	return nil
}

// Path returns where the folder is.
func (f *Folder) Path() string { return f.path }

func (f *Folder) file(names ...string) string {
	return filepath.Join(append([]string{f.path}, names...)...)
}

// replace puts a file in place as a whole, on disk before it has its name.
func (f *Folder) replace(path string, text []byte) error {
	return renameio.WriteFile(path, text, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}

func partName(i int) string { return fmt.Sprintf("%06d", i) }

// seal returns the first line of a part: whose it is, which one, and the digest of the rest.
func (f *Folder) seal(i int, text []byte) []byte {
	return fmt.Appendf(nil, "epplan part %d of %s, sha256 %x\n", i, f.id, sha256.Sum256(text))
}

func (f *Folder) save(folder string, i int, text []byte) error {
	return f.replace(f.file(folder, partName(i)), append(f.seal(i, text), text...))
}

// load returns what a file of a part has; false: there is none, or it isn't whole.
func (f *Folder) load(folder string, i int) ([]byte, bool, error) {
	text, err := os.ReadFile(f.file(folder, partName(i)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	seal, rest, _ := bytes.Cut(text, []byte("\n"))
	whole := bytes.Equal(append(seal, '\n'), f.seal(i, rest))
	return rest, whole, nil
}

// Part returns what a part came to, for Decode.
func (f *Folder) Part(i int) ([]byte, error) {
	text, ok, err := f.load(partsFolder, i)
	if err == nil && !ok {
		err = fmt.Errorf("%s isn't there, or not whole", f.file(partsFolder, partName(i)))
	}
	return text, err
}

// Failure is why a part can't be done, however often it is tried.
type Failure struct {
	Message string `json:"message"`
	Status  int    `json:"status"` // with which the command would have ended
}

func (f *Folder) saveFailure(i int, failed Failure) error {
	text, err := json.Marshal(failed)
	if err != nil {
		return err
	}
	return f.save(failedFolder, i, text)
}

// failure is why a part failed; nil: it hasn't.
func (f *Folder) failure(i int) (*Failure, error) {
	text, ok, err := f.load(failedFolder, i)
	if err != nil || !ok {
		return nil, err
	}
	failed := &Failure{}
	return failed, json.Unmarshal(text, failed)
}

// forgetFailures has parts that failed tried anew.
func (f *Folder) forgetFailures() error {
	return f.eachFile(failedFolder, func(name string) error { return os.Remove(f.file(failedFolder, name)) })
}

func (f *Folder) eachFile(folder string, each func(name string) error) error {
	files, err := os.ReadDir(f.file(folder))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := each(file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// look is how the parts are: each done, failed, or neither.
type look struct {
	done, failed []bool
	known        int // done or failed
}

// update looks at the files that came since. What is whole stays so.
func (l *look) update(f *Folder) error {
	if l.done == nil {
		l.done, l.failed = make([]bool, len(f.m.Parts)), make([]bool, len(f.m.Parts))
	}
	for folder, is := range map[string][]bool{partsFolder: l.done, failedFolder: l.failed} {
		err := f.eachFile(folder, func(name string) error {
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(is) || is[i] || name != partName(i) {
				return nil //nolint:nilerr // a file that isn't put in place yet
			}
			_, is[i], err = f.load(folder, i)
			return err
		})
		if err != nil {
			return err
		}
	}
	l.known = 0
	for i := range l.done {
		if l.done[i] || l.failed[i] {
			l.known++
		}
	}
	return nil
}

// missing returns the parts that are neither done nor failed.
func (l *look) missing() []int {
	var all []int
	for i := range l.done {
		if !l.done[i] && !l.failed[i] {
			all = append(all, i)
		}
	}
	return all
}

// taskName names a task of an array.
func taskName(array, task int) string { return fmt.Sprintf("%d_%d", array, task) }

// newArray divides parts among tasks, and notes it under a number of its own.
func (f *Folder) newArray(parts []int, tasks int) (array int, shares [][]int, err error) {
	shares = make([][]int, min(tasks, len(parts)))
	for k, part := range parts {
		shares[k%len(shares)] = append(shares[k%len(shares)], part)
	}
	text, err := json.Marshal(shares)
	if err != nil {
		return 0, nil, err
	}
	for array = 1; ; array++ {
		path := f.file(tasksFolder, strconv.Itoa(array)+".json")
		claimed, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		if err := claimed.Close(); err != nil {
			return 0, nil, err
		}
		return array, shares, f.replace(path, text)
	}
}

// share returns the parts of a task, named as by taskName.
func (f *Folder) share(task string) ([]int, error) {
	array, number, _ := strings.Cut(task, "_")
	k, err := strconv.Atoi(number)
	if err != nil || k < 0 || strings.ContainsAny(array, "/.") {
		return nil, fmt.Errorf("task %q, want an array and a task, such as 1_7", task)
	}
	text, err := os.ReadFile(f.file(tasksFolder, array+".json"))
	if err != nil {
		return nil, err
	}
	var shares [][]int
	if err := json.Unmarshal(text, &shares); err != nil {
		return nil, fmt.Errorf("%s: %w", f.file(tasksFolder, array+".json"), err)
	}
	if k >= len(shares) || slices.ContainsFunc(shares[k], func(i int) bool {
		return i < 0 || i >= len(f.m.Parts)
	}) {
		return nil, fmt.Errorf("task %s isn't of this sweep", task)
	}
	return shares[k], nil
}

// begin notes that a task begins a part.
func (f *Folder) begin(task string, i int) error {
	file, err := os.OpenFile(f.file(tasksFolder, task+".begun"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(partName(i) + "\n")
	return errors.Join(err, file.Close())
}

// begun returns how often a task began which parts, as far as anybody knows.
func (f *Folder) begun(task string) map[int]int {
	text, err := os.ReadFile(f.file(tasksFolder, task+".begun"))
	if err != nil {
		return nil
	}
	times := make(map[int]int)
	for line := range strings.Lines(string(text)) {
		if i, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			times[i]++
		}
	}
	return times
}

// ended returns the exit status of a task; false: it didn't end by itself.
func (f *Folder) ended(task string) (status int, ok bool) {
	text, err := os.ReadFile(f.file(tasksFolder, task+".ended"))
	if err != nil {
		return 0, false
	}
	status, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return status, err == nil
}

// Log is where a task's output is.
func (f *Folder) log(task string) string { return f.file(tasksFolder, task+".log") }

// maxLastLine bounds what is shown of a log.
const maxLastLine = 4 << 10

// lastLine returns the last line that a task printed.
func (f *Folder) lastLine(task string) string {
	file, err := os.Open(f.log(task))
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	text := make([]byte, min(info.Size(), maxLastLine))
	if _, err := file.ReadAt(text, info.Size()-int64(len(text))); err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
