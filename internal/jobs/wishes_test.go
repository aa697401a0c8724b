package jobs_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/slurm"
)

// What is kept of a comment says what the comment did, however it is written.
func TestAJobHasTheWishesOfItsComment(t *testing.T) {
	now := time.Date(2026, 11, 21, 17, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		comment := ""
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			comment += rapid.SampledFrom([]string{ //nolint:perfsprint // few
				"epplan", "Epplan", "EPPLAN", "epplan:", ":", "=", " ", ";", ",", "(", ")", "\"", "\u00a0", "off", "OFF",
				"no", "fixed=1200,5001", "deadline=+1h", "slack=3h", "slowdown=1.2", "cap=200", "nocode", "a note", "ü",
			}).Draw(t, "piece")
		}
		want := slurm.ParseWishes(comment, now)
		if got := jobs.FromDescription(1, "ada", "gpu", comment).Wishes(now); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %+v, want %+v", comment, got, want)
		}
	})
}
