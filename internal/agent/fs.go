package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/epplan/epplan/statedir"
)

// Endings of file names: what is in force, what is being written, what is done
// with, what couldn't be read, and what another process gave back.
const (
	current        = ".json"
	draftSuffix    = ".tmp"
	doneSuffix     = ".done"
	returnedSuffix = ".returned"
	baselineSuffix = ".baseline" // what GPUs are at without epd
)

// writeFile writes a file so that a crash leaves either the old or the new one.
// After an error either may be there.
func writeFile(folder statedir.FS, name string, data []byte) error {
	f, err := folder.Create(name + draftSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = folder.Rename(name+draftSuffix, name)
	}
	if err != nil {
		return errors.Join(err, statedir.IgnoreMissing(folder.Remove(name+draftSuffix)))
	}
	return folder.Sync()
}

// retireFile takes a file out of force: renamed first, so that a crash leaves
// it in force or not, then removed. One that isn't there is no error.
func retireFile(folder statedir.FS, name string) error {
	if err := statedir.IgnoreMissing(folder.Rename(name+current, name+doneSuffix)); err != nil {
		return err
	}
	if err := folder.Sync(); err != nil {
		return err
	}
	return statedir.IgnoreMissing(folder.Remove(name + doneSuffix))
}

// liveFiles names, without its ending, each file in force. Foreign names, which
// have no ending of ours, come back apart. With clean it removes the remains of
// interrupted writes, which it must not while somebody writes.
func liveFiles(folder statedir.FS, clean bool) (names, foreign []string, err error) {
	all, err := folder.Names()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range all {
		switch {
		case strings.HasSuffix(name, draftSuffix), strings.HasSuffix(name, doneSuffix),
			strings.HasSuffix(name, returnedSuffix):
			if !clean {
				continue
			}
			err = errors.Join(err, statedir.IgnoreMissing(folder.Remove(name)))
		case strings.HasSuffix(name, current):
			names = append(names, strings.TrimSuffix(name, current))
		case !strings.HasSuffix(name, statedir.AsideSuffix) && !strings.HasSuffix(name, baselineSuffix):
			foreign = append(foreign, name)
		}
	}
	slices.Sort(names)
	if err != nil {
		return names, foreign, fmt.Errorf("remove what was left of a write: %w", err)
	}
	return names, foreign, nil
}

// isFileName reports whether an id is safe as a file's name.
func isFileName(id string) bool {
	const longest = 100
	return id != "" && len(id) <= longest && id[0] != '.' && id[0] != '-' &&
		!strings.ContainsFunc(id, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') &&
				r != '-' && r != '_'
		})
}

// decodeJSON reads one JSON value, and nothing behind it. It passes over fields that aren't known: a
// newer epd with the same schema may have written them, to which somebody goes back.
func decodeJSON(data []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(data))
	if err := in.Decode(into); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows")
	}
	return nil
}
