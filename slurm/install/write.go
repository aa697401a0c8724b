package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// BackupSuffix is behind the name of the file that keeps what a file of the
// site was before the last change.
const BackupSuffix = ".before-epplan"

// Files returns the plan's steps as files to write; settings of slurm.conf only
// with conf, as one change of that file.
func (p *Plan) Files(conf string, withConf bool) []Step {
	var files []Step
	var settings *Step
	for i, s := range p.Steps {
		if s.Text == "" && !s.Remove {
			settings = &p.Steps[i]
			continue
		}
		files = append(files, s)
	}
	if settings != nil && withConf && p.Conf != conf {
		files = append(files, Step{File: settings.File, Before: conf, Text: p.Conf, Why: "settings"})
	}
	return files
}

// WriteSteps makes changes to files: all of them, or none when one fails. Each
// file is put in place as a whole; a link stays a link. A file of the site is
// kept beside it under its name and BackupSuffix.
func WriteSteps(steps []Step) (err error) {
	var undo []func() error
	defer func() {
		if err == nil {
			return
		}
		for _, back := range slices.Backward(undo) {
			err = errors.Join(err, back())
		}
	}()
	for i := range steps {
		back, err := writeStep(&steps[i])
		undo = append(undo, back...)
		if err != nil {
			return err
		}
	}
	return nil
}

// writeStep makes one change and says how to take it back.
func writeStep(s *Step) (undo []func() error, err error) {
	target, err := filepath.EvalSymlinks(s.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, link := os.Lstat(s.File); link == nil {
			return nil, fmt.Errorf("%s is a link to nothing", s.File)
		}
		if s.Before != "" {
			return nil, fmt.Errorf("%s is gone meanwhile: try again", s.File)
		}
		return createFile(s)
	case err != nil:
		return nil, err
	}
	now, err := os.ReadFile(target)
	if err != nil {
		return nil, err
	}
	if s.New && s.Before == "" || string(now) != s.Before {
		return nil, fmt.Errorf("%s was changed meanwhile: try again", s.File)
	}
	info, err := os.Stat(target)
	if err != nil {
		return nil, err
	}
	back := func() error { return replaceFile(target, now, info) }
	if s.Remove {
		again := func() error { return errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), back()) } //nolint:gosec // as createFile does
		return []func() error{again}, removeFile(s.File)
	}
	if !s.New {
		old, missing := os.ReadFile(target + BackupSuffix) //nolint:gosec // the administrator names the folder
		if err := replaceFile(target+BackupSuffix, now, info); err != nil {
			return nil, fmt.Errorf("keep the old %s: %w", filepath.Base(s.File), err)
		}
		undo = append(undo, func() error {
			if missing == nil {
				return replaceFile(target+BackupSuffix, old, info)
			}
			return os.Remove(target + BackupSuffix)
		})
	}
	if err := replaceFile(target, []byte(s.Text), info); err != nil {
		return undo, err
	}
	return append(undo, back), nil
}

// createFile writes a file of ours, and its folder where it is missing.
func createFile(s *Step) (undo []func() error, err error) {
	dir := filepath.Dir(s.File)
	if err := os.Mkdir(dir, 0o755); err == nil { //nolint:gosec // Slurm's user reads it
		undo = append(undo, func() error { return os.Remove(dir) })
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // whatever the umask is
			return undo, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := renameio.WriteFile(s.File, []byte(s.Text), os.FileMode(s.Mode),
		renameio.IgnoreUmask()); err != nil {
		return undo, err
	}
	return append(undo, func() error { return os.Remove(s.File) }), nil
}

// replaceFile puts a text in place of a file, with owner and permissions of the old one.
func replaceFile(path string, text []byte, like os.FileInfo) error {
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(like.Mode().Perm()),
		renameio.IgnoreUmask())
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // nothing is left after the replacement
	if owner, ok := like.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	if _, err := bytes.NewReader(text).WriteTo(f); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// removeFile removes a file of ours, and its folder where that was the last one.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	if dir := filepath.Dir(path); slices.Contains([]string{"epplan-prolog.d", "epplan-epilog.d"},
		filepath.Base(dir)) {
		_ = os.Remove(dir) // others' files keep it
	}
	return nil
}

// TouchScript makes slurmctld load job_submit.lua, and with it a new module,
// at the next submission. It compares whole seconds, and would miss a script
// that is written in the second in which it loaded the old one.
func TouchScript(file string) error {
	soon := time.Now().Add(time.Second)
	return os.Chtimes(file, soon, soon)
}
