package slurm_test

import (
	"context"
	"errors"
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
