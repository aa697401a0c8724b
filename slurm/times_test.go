package slurm_test

import (
	"testing"
	"time"
	_ "time/tzdata" // a root of another Slurm has no zones

	"pgregory.net/rapid"

	"github.com/epplan/epplan/slurm"
)

func TestTimesAreReadAsPackageTimeReadsThem(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]`).Draw(
			t, "time",
		)
		want, wrong := time.ParseInLocation("2006-01-02T15:04:05", text, zone)
		got, err := slurm.ParseTime(text, zone)
		if (err == nil) != (wrong == nil) || !got.Equal(want) {
			t.Fatalf("%s: got %v, %v, want %v, %v", text, got, err, want, wrong)
		}
	})
}
