package main

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/epplan/epplan/statedir"
)

// holdOutSeed returns the number by which jobs are held out: made once and kept, so that
// a restart draws the same lots, and known to nobody else. A file that isn't what
// was written is moved aside, and a new number drawn: damage says so.
func holdOutSeed(path string) (seed uint64, damage, err error) {
	text, err := readSeed(path)
	if err == nil {
		if seed, err := strconv.ParseUint(text, 16, 64); err == nil && len(text) == seedDigits {
			return seed, nil, nil
		}
		damage, err = moveSeedAside(path, len(text))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, nil, err
	}
	var fresh [seedDigits / 2]byte
	if _, err := rand.Read(fresh[:]); err != nil {
		return 0, damage, err
	}
	err = statedir.WriteFile(path, []byte(hex.EncodeToString(fresh[:])+"\n"), 0o600)
	return binary.BigEndian.Uint64(fresh[:]), damage, err
}

// seedDigits are the hexadecimal digits of a seed.
const seedDigits = 16

// readSeed reads the seed's file, or as much of it as tells that it isn't one.
func readSeed(path string) (string, error) {
	f, err := statedir.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	const most = 4 * seedDigits
	text, err := io.ReadAll(io.LimitReader(f, most))
	return strings.TrimSpace(string(text)), errors.Join(err, f.Close())
}

// moveSeedAside keeps a damaged seed under another name.
func moveSeedAside(path string, size int) (damage, err error) {
	aside, err := statedir.FreeName(path+".damaged", func(name string) (bool, error) {
		_, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return true, err
	})
	if err == nil {
		err = os.Rename(path, aside)
	}
	if err != nil {
		return nil, fmt.Errorf("move the damaged seed aside: %w", err)
	}
	const said = "the seed of the lots was damaged (%d bytes, want %d hexadecimal digits): " +
		"it is now %s, and another one was drawn, by which other jobs are held out than before"
	return fmt.Errorf(said, size, seedDigits, aside), nil
}
