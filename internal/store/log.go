package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/epplan/epplan/statedir"
)

// Sizes and marks of a write-ahead log (https://sqlite.org/fileformat2.html#walformat).
const (
	logHeaderSize   = 32
	frameHeaderSize = 24
	logMagic        = 0x377f0682 // its last bit: checksums are over big-endian words
	maxLogPage      = 1 << 16
)

// logHeader is the beginning of a log.
type logHeader struct {
	order    binary.ByteOrder
	pageSize int
	salts    []byte
	sum      logSum
}

// logSum is SQLite's checksum: each frame's goes on from the one before it.
type logSum [2]uint32

func (s *logSum) add(order binary.ByteOrder, data []byte) {
	for ; len(data) >= 8; data = data[8:] {
		s[0] += order.Uint32(data) + s[1]
		s[1] += order.Uint32(data[4:]) + s[0]
	}
}

// matches reports whether a checksum is the one that was written.
func (s *logSum) matches(written []byte) bool {
	return s[0] == binary.BigEndian.Uint32(written) && s[1] == binary.BigEndian.Uint32(written[4:])
}

// readLogHeader reads the beginning of a log; false: it is none of SQLite's.
func readLogHeader(r io.Reader) (h logHeader, ok bool, err error) {
	data := make([]byte, logHeaderSize)
	switch _, err := io.ReadFull(r, data); {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return h, false, nil
	case err != nil:
		return h, false, err
	}
	h.order = binary.LittleEndian
	magic := binary.BigEndian.Uint32(data)
	if magic&1 == 1 {
		h.order = binary.BigEndian
	}
	h.pageSize, h.salts = int(binary.BigEndian.Uint32(data[8:])), data[16:24]
	h.sum.add(h.order, data[:24])
	return h, magic&^1 == logMagic && h.pageSize > 0 && h.pageSize <= maxLogPage && h.sum.matches(data[24:]), nil
}

// checkLog is [ErrCorrupt] if a log that isn't empty doesn't begin as one. A log that a database is
// written to has been cut then, or overwritten, and what is committed is gone with the process. (The
// database's own file mustn't be opened: closing it would end SQLite's locks.)
func checkLog(path string) error {
	for range 3 { // another process may be beginning it anew
		if ok, err := beginsAsLog(path); err != nil || ok {
			return typedError(err)
		}
	}
	return fmt.Errorf("%w: its log %s was cut or overwritten", ErrCorrupt, path)
}

// beginsAsLog reports whether a log is empty, or begins as one.
func beginsAsLog(path string) (ok bool, err error) {
	f, err := os.Open(path) //nolint:gosec // beside the database
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return err == nil, err
	}
	_, ok, err = readLogHeader(f)
	return ok, err
}

// soundLogSize returns how much of a log SQLite takes, and whether what it leaves was committed: the log
// doesn't begin as one, or more than one transaction follows a frame that can't be. SQLite stops at that
// frame and says nothing. A loss of power can do this to the last transaction alone, since each is synced
// before the next begins.
func soundLogSize(r io.Reader) (sound int64, broken bool, err error) {
	h, ok, err := readLogHeader(r)
	if err != nil || !ok {
		return 0, !ok, err
	}
	frame := make([]byte, frameHeaderSize+h.pageSize)
	whole, after := true, 0
	sound = logHeaderSize
	for at := sound; ; {
		switch _, err := io.ReadFull(r, frame); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return sound, after > 1, nil
		case err != nil:
			return 0, false, err
		}
		at += int64(len(frame))
		own := bytes.Equal(frame[8:16], h.salts) // else it is of before the log began anew
		if whole {
			h.sum.add(h.order, frame[:8])
			h.sum.add(h.order, frame[frameHeaderSize:])
			whole = own && h.sum.matches(frame[16:24])
		}
		switch commits := binary.BigEndian.Uint32(frame[4:]) > 0; {
		case commits && whole:
			sound = at
		case commits && own:
			after++
		}
	}
}

// SalvageLog copies the log of a database that isn't open if it has lost something that was committed, and
// leaves of it what [Open] takes. It returns where the copy is; "": nothing is lost.
func SalvageLog(path string, now time.Time) (copied string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("look into the log of %s: %w", path, err)
		}
	}()
	if err := checkTrusted(path); err != nil {
		return "", err
	}
	log, err := os.OpenFile(path+"-wal", os.O_RDWR, 0) //nolint:gosec // beside the database
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for _, part := range []string{path, path + "-wal"} {
		if info, err := os.Stat(part); err != nil || info.Size() == 0 {
			return "", err // without records, [Open] says what that is
		}
	}
	sound, broken, err := soundLogSize(log)
	if err != nil || !broken {
		return "", err
	}
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if copied, err = statedir.FreeName(damagedName(path+"-wal", now), isTaken); err != nil {
		return "", err
	}
	if err := writeCopy(copied, log); err != nil {
		_ = os.Remove(copied)
		return "", err
	}
	return copied, errors.Join(log.Truncate(sound), log.Sync())
}

// writeCopy writes a new file that is there after a loss of power, too.
func writeCopy(path string, from io.Reader) error {
	f, err := statedir.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close(), statedir.Sync(filepath.Dir(path)))
}
