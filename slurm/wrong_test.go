package slurm_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm"
)

func TestATimeWithoutAZoneIsAnError(t *testing.T) {
	if _, err := slurm.ParseTime("2026-11-21T08:55:23", nil); !errors.Is(err, slurm.ErrInvalid) {
		t.Errorf("error is %v, want ErrInvalid", err)
	}
	outcomes, rejected, err := slurm.ParseAccounting("sacct -P",
		[]byte("JobIDRaw|State|End\n5|COMPLETED|2026-11-21T08:55:23\n"), "|", nil)
	if err != nil || len(outcomes) != 0 || len(rejected) != 1 {
		t.Errorf("outcomes %v, rejected %v, error %v, want the line rejected", outcomes, rejected, err)
	}
}

func TestALimitIsWrittenWhateverTheDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-3 * time.Hour:                "0-00:00:00",
		time.Nanosecond:               "0-00:01:00",
		time.Minute:                   "0-00:01:00",
		90*time.Second + 25*time.Hour: "1-01:02:00",
		math.MaxInt64:                 "106751-23:48:00",
	} {
		if got := slurm.FormatLimit(d); got != want {
			t.Errorf("%v is written %s, want %s", d, got, want)
		}
	}
}
