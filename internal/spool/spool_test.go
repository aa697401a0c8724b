package spool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/epplan/epplan/internal/spool"
)

// open opens a spool.
func open(tb testing.TB, dir string, options *spool.Options) *spool.Spool {
	tb.Helper()
	s, err := spool.Open(dir, options)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// add adds an entry whose body says its id.
func add(tb testing.TB, s *spool.Spool, id string) {
	tb.Helper()
	if err := s.Add(id, []byte("body of "+id)); err != nil {
		tb.Fatal(err)
	}
}

// receiver is who a spool delivers to: it keeps what it gets by id.
type receiver struct {
	order  []string
	bodies map[string]string
	refuse func(id string) error // nil accepts
}

func (r *receiver) send(_ context.Context, id string, body []byte) error {
	if r.refuse != nil {
		if err := r.refuse(id); err != nil {
			return err
		}
	}
	if r.bodies == nil {
		r.bodies = map[string]string{}
	}
	r.order = append(r.order, id)
	r.bodies[id] = string(body)
	return nil
}

func TestEntriesAreDeliveredInOrderAndOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := open(t, dir, nil)
	for _, id := range []string{"b", "a", "c"} {
		add(t, s, id)
	}
	s = open(t, dir, nil) // after a restart
	add(t, s, "0")
	var r receiver
	report, err := s.Deliver(t.Context(), r.send)
	if err != nil || report.Delivered != 4 || !slices.Equal(r.order, []string{"b", "a", "c", "0"}) {
		t.Errorf("%+v, %v, in order %q", report, err, r.order)
	}
	if r.bodies["c"] != "body of c" {
		t.Errorf("the body was %q", r.bodies["c"])
	}
	if report, err := open(t, dir, nil).Deliver(t.Context(), r.send); err != nil || report.Delivered != 0 ||
		s.Bytes() != 0 {
		t.Errorf("again: %+v, %v, %d bytes", report, err, s.Bytes())
	}
}

func TestWhatIsNotAcknowledgedStaysInOrder(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	for i := range 5 {
		add(t, s, strconv.Itoa(i))
	}
	away := errors.New("connection refused")
	r := receiver{refuse: func(id string) error {
		if id == "2" {
			return away
		}
		return nil
	}}
	if report, err := s.Deliver(t.Context(), r.send); !errors.Is(err, away) || report.Delivered != 2 ||
		s.Len() != 3 {
		t.Errorf("%+v, %v, %d left", report, err, s.Len())
	}
	r.refuse = nil
	if _, err := s.Deliver(t.Context(), r.send); err != nil || strings.Join(r.order, "") != "01234" {
		t.Errorf("%v, in order %q", err, r.order)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	add(t, s, "late")
	if _, err := s.Deliver(cancelled, r.send); !errors.Is(err, context.Canceled) || s.Len() != 1 {
		t.Errorf("cancelled: %v, %d left", err, s.Len())
	}
}

func TestAddingTheSameEntryAgainChangesNothing(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	add(t, s, "a")
	add(t, s, "a")
	if s.Len() != 1 {
		t.Errorf("%d entries", s.Len())
	}
	if err := s.Add("a", []byte("something else")); err != nil || s.Len() != 2 {
		t.Errorf("another body: %v, %d entries", err, s.Len())
	}
}

// Who was killed between an entry and what made it asks whether it is there.
func TestASpoolHoldsWhatIsInItWhole(t *testing.T) {
	dir := t.TempDir()
	add(t, open(t, dir, nil), "a")
	s := open(t, dir, nil)
	for id, want := range map[string]bool{"a": true, "b": false} {
		if held, err := s.Holds(id); held != want || err != nil {
			t.Errorf("%s: %v, %v", id, held, err)
		}
	}
	rewrite(t, filepath.Join(dir, "*-a.entry"), func(data []byte) []byte { return data[:len(data)-1] })
	if held, err := s.Holds("a"); held || err != nil {
		t.Errorf("half of a: %v, %v", held, err)
	}
	var r receiver
	if _, err := s.Deliver(t.Context(), r.send); err != nil {
		t.Error(err)
	}
	if held, err := s.Holds("a"); held || err != nil {
		t.Errorf("a is delivered: %v, %v", held, err)
	}
}

func TestAFullSpoolSaysSoAndKeepsWhatIsIn(t *testing.T) {
	s := open(t, t.TempDir(), &spool.Options{MaxBytes: 1000})
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = s.Add(strconv.Itoa(n), bytes.Repeat([]byte{'x'}, 100))
	}
	if !errors.Is(err, spool.ErrFull) || s.Bytes() > 1000 || s.Len() != n-1 || n < 4 {
		t.Fatalf("after %d: %v, %d entries of %d bytes", n, err, s.Len(), s.Bytes())
	}
	var r receiver
	if _, err := s.Deliver(t.Context(), r.send); err != nil || len(r.order) != n-1 {
		t.Errorf("%d delivered, %v", len(r.order), err)
	}
	add(t, s, "room")
}

// rewrite changes the one file that a pattern matches.
func rewrite(t *testing.T, pattern string, change func([]byte) []byte) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], change(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedAndRejectedEntriesAreMovedAsideAndHoldNothingUp(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut":          func(data []byte) []byte { return data[:len(data)-3] },
		"empty":        func([]byte) []byte { return nil },
		"one bit":      func(data []byte) []byte { data[len(data)-1] ^= 1; return data },
		"header":       func(data []byte) []byte { data[16] ^= 1; return data },
		"longer":       func(data []byte) []byte { return append(data, 'x') },
		"another file": func([]byte) []byte { return []byte("hello\nworld") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, nil)
			for _, id := range []string{"bad", "refused", "good"} {
				add(t, s, id)
			}
			rewrite(t, filepath.Join(dir, "*-bad.entry"), damage)
			r := receiver{refuse: func(id string) error {
				if id == "refused" {
					return fmt.Errorf("%w: no such cluster", spool.ErrRejected)
				}
				return nil
			}}
			report, err := s.Deliver(t.Context(), r.send)
			if err != nil || report.Delivered != 1 || len(report.Aside) != 2 || r.bodies["good"] == "" ||
				s.Len() != 0 {
				t.Errorf("%+v, %v, %d left", report, err, s.Len())
			}
			if aside, err := s.Aside(); err != nil || len(aside) != 2 {
				t.Errorf("aside are %q, %v", aside, err)
			}
			if s := open(t, dir, nil); s.Len() != 0 {
				t.Errorf("%d entries after a restart", s.Len())
			}
		})
	}
}

func TestAnEntryWhoseFileIsGoneIsReported(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	add(t, s, "a")
	files, err := filepath.Glob(filepath.Join(dir, "*.entry"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	var r receiver
	if report, err := s.Deliver(t.Context(), r.send); err != nil || len(report.Aside) != 1 || s.Len() != 0 ||
		s.Bytes() != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestAnIDIsAFileNameAndNoPath(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	for _, id := range []string{"", "../a", "a/b", ".a", "a\x00", "ä", strings.Repeat("a", 101)} {
		if err := s.Add(id, nil); !errors.Is(err, spool.ErrID) {
			t.Errorf("%q: %v", id, err)
		}
	}
	add(t, s, strings.Repeat("a", 100))
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"README", "1-a.entry", "00000000000000000001-..entry",
		"00000000000000000001.entry",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s := open(t, dir, nil); s.Len() != 0 {
		t.Errorf("%d entries", s.Len())
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 5 {
		t.Errorf("%d names, %v", len(names), err)
	}
}

func TestTheFilesAreForTheirOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	add(t, open(t, dir, nil), "a")
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAFolderOrAnEntryOfSomebodyElseIsNotTaken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := open(t, dir, nil)
	add(t, s, "ours")
	add(t, s, "theirs")
	files, err := filepath.Glob(filepath.Join(dir, "*-theirs.entry"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	if err := os.Chmod(files[0], 0o622); err != nil {
		t.Fatal(err)
	}
	var r receiver
	report, err := s.Deliver(t.Context(), r.send)
	if err != nil || !slices.Equal(r.order, []string{"ours"}) || len(report.Aside) != 1 ||
		!strings.Contains(report.Aside[0].Reason.Error(), "chmod go-w") {
		t.Errorf("%+v, %v, delivered %q", report, err, r.order)
	}
	for _, folder := range []string{filepath.Join(dir, "aside"), dir} {
		if err := os.Chmod(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := spool.Open(dir, nil); err == nil ||
			!strings.Contains(err.Error(), "chmod go-w "+folder) {
			t.Errorf("%s: %v", folder, err)
		}
	}
}

// Numbers begin anew with a spool that was empty when it was opened: what was refused before
// stays all the same.
func TestAnEntryMovedAsideNeverOverwritesAnEarlierOne(t *testing.T) {
	dir := t.TempDir()
	refuse := receiver{refuse: func(string) error { return spool.ErrRejected }}
	for _, body := range []string{"first", "second", "third"} {
		s := open(t, dir, nil)
		if err := s.Add("a", []byte(body)); err != nil {
			t.Fatal(err)
		}
		if report, err := s.Deliver(t.Context(), refuse.send); err != nil || len(report.Aside) != 1 {
			t.Fatalf("%+v, %v", report, err)
		}
	}
	aside, err := open(t, dir, nil).Aside()
	if err != nil || len(aside) != 3 {
		t.Fatalf("aside are %q, %v", aside, err)
	}
	for i, want := range []string{"first", "second", "third"} {
		text, err := os.ReadFile(aside[i])
		if err != nil || !strings.HasSuffix(string(text), "\n"+want) {
			t.Errorf("%s has %q, %v, want %s", aside[i], text, err, want)
		}
	}
}

// Who goes back to this epd keeps what a newer one left, for when that one is back.
func TestAnEntryOfANewerVersionStaysAndHoldsNothingUp(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	add(t, s, "newer")
	add(t, s, "good")
	rewrite(t, filepath.Join(dir, "*-newer.entry"), func(data []byte) []byte {
		return bytes.Replace(data, []byte("epplan-spool 1 "), []byte("epplan-spool 2 "), 1)
	})
	var r receiver
	for _, delivered := range []int{1, 0} {
		report, err := s.Deliver(t.Context(), r.send)
		if err != nil || report.Delivered != delivered || len(report.Aside) != 0 || len(report.Newer) != 1 ||
			!strings.Contains(report.Newer[0].Reason.Error(), "version 2, want 1") {
			t.Errorf("%+v, %v", report, err)
		}
	}
	if s := open(t, dir, nil); s.Len() != 1 || !slices.Equal(r.order, []string{"good"}) {
		t.Errorf("%d entries after a restart; delivered %q", s.Len(), r.order)
	}
}

// brokenDisk is a disk that refuses all that changes something while it is broken.
type brokenDisk struct {
	spool.FS
	broken error
}

func (d *brokenDisk) MakeDir(dir string) error {
	if d.broken != nil {
		return d.broken
	}
	return d.FS.MakeDir(dir)
}

func (d *brokenDisk) Remove(path string) error {
	if d.broken != nil {
		return d.broken
	}
	return d.FS.Remove(path)
}

// A start upon a disk that is full or read-only loses nothing: the spool is there as soon as
// the disk is well again.
func TestASpoolThatCannotBeOpenedYetIsTriedAgain(t *testing.T) {
	for why, full := range map[error]bool{syscall.ENOSPC: true, syscall.EROFS: false} {
		dir := filepath.Join(t.TempDir(), "spool")
		add(t, open(t, dir, nil), "old")
		half := filepath.Join(dir, "00000000000000000009-half.entry.part")
		if err := os.WriteFile(half, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		d := &brokenDisk{spool.Disk(), why}
		s, err := spool.Open(dir, &spool.Options{FS: d})
		if s == nil || !errors.Is(err, why) {
			t.Fatalf("%v, %v", s, err)
		}
		var r receiver
		if _, err := s.Deliver(t.Context(), r.send); !errors.Is(err, why) {
			t.Errorf("delivered: %v", err)
		}
		if err := s.Add("new", nil); !errors.Is(err, why) ||
			errors.Is(err, spool.ErrFull) != full {
			t.Errorf("added: %v", err)
		}
		d.broken = nil
		add(t, s, "new")
		if report, err := s.Deliver(t.Context(), r.send); err != nil || report.Delivered != 2 ||
			!slices.Equal(r.order, []string{"old", "new"}) {
			t.Errorf("%+v, %v, delivered %q", report, err, r.order)
		}
	}
}

// unreadable is a disk with a sector that can't be read.
type unreadable struct {
	spool.FS
	name string
}

func (d unreadable) Read(path string) ([]byte, error) {
	if strings.Contains(path, d.name) {
		return nil, syscall.EIO
	}
	return d.FS.Read(path)
}

func TestAnEntryThatTheDiskDoesNotYieldStaysAndHoldsNothingUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := open(t, dir, &spool.Options{FS: unreadable{spool.Disk(), "spoilt"}}) // which no random name is
	for _, id := range []string{"spoilt", "good"} {
		add(t, s, id)
	}
	var r receiver
	if report, err := s.Deliver(t.Context(), r.send); !errors.Is(err, syscall.EIO) || report.Delivered != 1 ||
		r.bodies["good"] == "" || s.Len() != 1 {
		t.Errorf("%+v, %v, %d left", report, err, s.Len())
	}
	if report, err := open(t, dir, nil).Deliver(t.Context(), r.send); err != nil || report.Delivered != 1 {
		t.Errorf("once it can be read: %+v, %v", report, err)
	}
}
