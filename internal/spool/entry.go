package spool

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/epplan/epplan/statedir"
)

const (
	entrySuffix   = ".entry"
	partSuffix    = ".part"
	magic         = "epplan-spool "
	checksumMagic = magic + "1 "
)

// errDamaged tells that a file isn't what was written; it is wrapped with how.
var errDamaged = errors.New("damaged entry")

// idPattern are what may stand in a file name. The hooks' program holds this package
// and has no spool: it needn't compile them.
var idPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
})

// entry is an entry's place in the spool.
type entry struct {
	sequence uint64
	id       string
	size     int64 // of the file
}

// name returns the entry's file name; names sort in the order of sequence.
func (e entry) name() string { return fmt.Sprintf("%020d-%s%s", e.sequence, e.id, entrySuffix) }

// parseName reads what name wrote.
func parseName(name string) (entry, bool) {
	stem, isEntry := strings.CutSuffix(name, entrySuffix)
	number, id, cut := strings.Cut(stem, "-")
	sequence, err := strconv.ParseUint(number, 10, 64)
	e := entry{sequence: sequence, id: id}
	return e, isEntry && cut && err == nil && idPattern().MatchString(id) && e.name() == name
}

// addChecksum returns a body with a first line that reports whether it is whole.
func addChecksum(body []byte) []byte {
	header := fmt.Sprintf("%s%d %x\n", checksumMagic, len(body), sha256.Sum256(body))
	return append([]byte(header), body...)
}

// verifyChecksum returns the body of what addChecksum made, or errDamaged, or statedir.ErrNewer.
func verifyChecksum(data []byte) ([]byte, error) {
	header, body, whole := bytes.Cut(data, []byte{'\n'})
	version := 0
	if _, err := fmt.Sscanf(string(header), magic+"%d ", &version); err == nil && version > 1 {
		return nil, fmt.Errorf("%w: version %d, want 1", statedir.ErrNewer, version)
	}
	if !whole || !bytes.HasPrefix(header, []byte(checksumMagic)) {
		return nil, fmt.Errorf("%w: no header", errDamaged)
	}
	if !bytes.Equal(addChecksum(body), data) {
		return nil, fmt.Errorf("%w: its %d bytes aren't those that were written", errDamaged, len(body))
	}
	return body, nil
}

// read returns the body of an entry. One that somebody else may have written is damaged.
func (s *Spool) read(e entry) ([]byte, error) {
	data, err := s.fs.Read(filepath.Join(s.dir, e.name()))
	if _, foreign := errors.AsType[*statedir.InsecureError](err); foreign {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	return verifyChecksum(data)
}
