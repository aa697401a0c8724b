package slurm_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm"
)

func TestAnEnergyGoesBehindOthersTextAndReplacesOursAlone(t *testing.T) {
	saved := -12.6
	for _, c := range []struct {
		comment string
		saved   *float64
		keeps   bool
		want    string // "": it stays as it is
	}{
		{"", nil, true, "epplan-energy-j:1235"},
		{"", &saved, true, "epplan-energy-j:1235;epplan-saved-j:-13"},
		{"epplan:Token-1", nil, false, "epplan:Token-1;epplan-energy-j:1235"},
		{"a note, (x=1);epplan:t", nil, true, "a note, (x=1);epplan:t;epplan-energy-j:1235"},
		{"epplan-energy-j:9;a note;epplan-saved-j:7", nil, true, "a note;epplan-energy-j:1235"},
		{"A note", nil, true, "A note;epplan-energy-j:1235"},
		{"A note", nil, false, ""},
		{`a "note"`, nil, true, ""},
		{"it's", nil, true, ""},
		{"a`b", nil, true, ""},
		{`a\b`, nil, true, ""},
		{"two\nlines", nil, true, ""},
		{"größe", nil, true, ""},
		{" ahead", nil, true, ""},
		{"behind ", nil, true, ""},
		{strings.Repeat("x", 1020), nil, true, ""},
	} {
		got, err := slurm.EnergyComment(c.comment, 1234.6, c.saved, c.keeps)
		if got != c.want && c.want != "" || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v, want %q", c.comment, got, err, c.want)
		}
	}
}

func TestSlurmsAccountingIsToldByPlainArguments(t *testing.T) {
	var asked [][]string
	c := slurm.NewClient(slurm.RunnerFunc(func(_ context.Context, name string, args ...string) ([]byte, error) {
		asked = append(asked, append([]string{name}, args...))
		return []byte("JobIDRaw\x1fState\x1fSubmit\x1fAdminComment\n7\x1fCOMPLETED\x1f2026-11-26T10:00:00\x1fold\n" +
			"7\x1fCOMPLETED\x1f2026-11-26T11:00:00\x1fnew\n7\x1fCOMPLETED\x1f2026-11-26T09:00:00\x1folder\n"), nil
	}), 0)
	row, err := c.Accounted(t.Context(), 7)
	if err != nil || row.AdminComment != "new" {
		t.Errorf("%+v, %v", row, err)
	}
	if _, err := c.Accounted(t.Context(), 8); !errors.Is(err, slurm.ErrNotFound) {
		t.Error(err)
	}
	asked = nil
	if err := errors.Join(c.AccountEnergy(t.Context(), 7, 1234.6), c.AccountEnergy(t.Context(), 7, -1),
		c.AccountComment(t.Context(), 7, "a note;$(reboot)")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"tres=energy=1235", "tres=energy=0", "admincomment=a note;$(reboot)"} {
		if got := asked[i]; got[0] != "sacctmgr" || got[len(got)-1] != want || !slices.Contains(got, "jobid=7") {
			t.Errorf("%q, want %s", got, want)
		}
	}
	for _, id := range []slurm.JobID{0, slurm.NoVal, slurm.Infinite} {
		if err := c.AccountEnergy(t.Context(), id, 1); !errors.Is(err, slurm.ErrInvalid) {
			t.Errorf("job %d: %v", id, err)
		}
	}
	if err := c.AccountComment(t.Context(), 7, "a\x00b"); !errors.Is(err, slurm.ErrInvalid) {
		t.Error(err)
	}
}

// pythonBase64 decodes as Python's base64.b64decode does: it passes over what is no base64, and stops at
// padding that ends a group; strict takes base64 alone.
func pythonBase64(text string, strict bool) ([]byte, error) {
	if strict {
		return base64.StdEncoding.DecodeString(text)
	}
	var kept strings.Builder
	for pads, quad, rest := 0, 0, text; rest != ""; rest = rest[1:] {
		switch c := rest[0]; {
		case c == '=':
			if pads++; quad >= 2 && quad+pads >= 4 {
				return base64.RawStdEncoding.DecodeString(kept.String())
			}
		case c == '+' || c == '/' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
			pads, quad = 0, (quad+1)%4
			kept.WriteByte(c)
		}
	}
	return base64.StdEncoding.DecodeString(kept.String())
}

// readSummary reads an AdminComment as tools do that keep a job's summary there: JS1:, then base64 of gzip of
// JSON.
func readSummary(comment string, strict bool) (any, error) {
	packed, err := pythonBase64(strings.TrimPrefix(comment, "JS1:"), strict)
	if err != nil {
		return nil, err
	}
	unpack, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(unpack)
	if err != nil {
		return nil, err
	}
	var summary any
	return summary, json.Unmarshal(text, &summary)
}

func TestSummariesOfAnotherToolStayReadable(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 600))
	const drawn = 600
	broken := map[bool]int{}
	for range drawn {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = fmt.Fprintf(w, `{"nodes":{"n%d":{"total_memory":%d,"used_memory":%d,"cpus":%d,"gpu_utilization":{"0":%.1f}}},`+
			`"total_time":%d,"gpus":%d}`, random.IntN(900), random.Int64N(1<<40), random.Int64N(1<<38), random.IntN(128),
			100*random.Float64(), random.IntN(1e6), random.IntN(8))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		comment := "JS1:" + base64.StdEncoding.EncodeToString(packed.Bytes())
		saved := 7.0
		if changed, err := slurm.EnergyComment(comment, 1e6*random.Float64(), &saved, true); err == nil {
			comment = changed
		}
		for _, strict := range []bool{false, true} {
			if _, err := readSummary(comment, strict); err != nil {
				broken[strict]++
			}
		}
	}
	if len(broken) > 0 {
		t.Errorf("of %d summaries %d can't be read any more, %d by a strict reader", drawn, broken[false], broken[true])
	}
}

func TestOnlyWordsForPeopleArePlain(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "a note": true, "A note, (x=1)": true, "see ticket 4711; call anna!": true, "Ours": true,
		"JS1:H4sIAAAA": false, "js1": true, "{}": false, `{"a":1}`: false, "key=value": false, "a;key=value": false,
		"(a=b=c)": false, "H4sIAAAAAAAA": false, "deadbeefdeadbeefdeadbeef": false, "a%20b": false, "1,2,3": false,
		"policy:gold": false, "SGVsbG8gd29ybGQ": false, "a|b": false, "a/b": false, "gpu01": false, " a": false,
		"a ":         false,
		"two\nlines": false, "größe": false, "job 12345678901234567890123": false, "-x": false, "a+b": false,
	} {
		if got := slurm.IsPlainComment(text); got != want {
			t.Errorf("%q: plain %v", text, got)
		}
	}
}
