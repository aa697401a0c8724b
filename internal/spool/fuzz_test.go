package spool_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/testkit/spooltest"
)

// Whatever lies in a spool's folder: an entry is delivered as it was written or not at all, and none is lost.
func FuzzEntries(f *testing.F) {
	const name = "00000000000000000007-run.entry"
	for _, data := range []string{
		whole("{}"), whole(""), whole("a\nb"), whole("{}") + "more", whole("{}")[:40], "epplan-spool 2 x\n{}", "", "\n",
		strings.Replace(whole("{}"), "1 2", "1 3", 1), "epplan-spool 1 ",
	} {
		f.Add(name, []byte(data))
	}
	for _, other := range []string{"7-run.entry", "x", "00000000000000000007-../x.entry", "a.part", ".entry"} {
		f.Add(other, []byte(whole("{}")))
	}
	f.Fuzz(deliversFrom)
}

// whole returns an entry as a spool writes it.
func whole(body string) string {
	return fmt.Sprintf("epplan-spool 1 %d %x\n%s", len(body), sha256.Sum256([]byte(body)), body)
}

// deliversFrom delivers what lies in a spool's folder under a name.
func deliversFrom(t *testing.T, name string, data []byte) {
	t.Helper()
	if name == "" || strings.ContainsAny(name, "/\x00") || name == "." || name == ".." || name == "aside" {
		return
	}
	disk := spooltest.New()
	if err := disk.MakeDir("spool"); err != nil {
		t.Fatal(err)
	}
	file, err := disk.Create(filepath.Join("spool", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(data); err != nil {
		t.Fatal(err)
	}
	s, err := spool.Open("spool", &spool.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	report, err := s.Deliver(context.Background(), func(_ context.Context, id string, body []byte) error {
		if sent++; whole(string(body)) != string(data) || !strings.Contains(name, id) {
			t.Fatalf("%q is sent as %q of %q", data, body, id)
		}
		return nil
	})
	if err != nil || sent != report.Delivered || sent+len(report.Aside)+len(report.Newer) > 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	there := 0
	for _, left := range disk.Names() {
		if now, err := disk.Read(left); err == nil && bytes.Equal(now, data) {
			there++
		}
	}
	// What a write left that was cut is nobody's.
	if sent == 0 && there == 0 && !strings.HasSuffix(name, ".part") {
		t.Fatalf("%q is gone: %+v", name, report)
	}
}
