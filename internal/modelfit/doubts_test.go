package modelfit_test

import (
	"errors"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/modelfit"
)

func TestMeasurementsThatCannotBeAreDoubtedWithTheWorstOfThem(t *testing.T) {
	profile, err := config.BuiltinProfiles().Lookup("V100-SXM2")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		change func(*dvfsmodel.Sample)
		want   string
	}{
		"as measured": {func(*dvfsmodel.Sample) {}, ""},
		"another unit": {
			func(s *dvfsmodel.Sample) { s.Power *= 10 },
			`3 measurements beyond the 300 W of a V100-SXM2, such as "fft" at 1380/877 MHz: 2500 W, want the mean power of one ` +
				`GPU in watts`,
		},
		"a part": {
			func(s *dvfsmodel.Sample) { s.Power /= 10 },
			`2 measurements below the 42 W of an idle V100-SXM2, such as "fft" at 510/877 MHz: 15 W, want the mean power of one ` +
				`GPU in watts`,
		},
		"columns that were mixed up": {
			func(s *dvfsmodel.Sample) { s.Time = 4 / s.Time },
			`1 application is faster at lower clocks, such as "fft" at 1380/877 MHz: 4 s, and 1.333 s at 510/877 MHz, want ` +
				`longer times there`,
		},
	} {
		samples := []dvfsmodel.Sample{
			{Core: 510, Mem: 877, Time: 3, Power: 150},
			{Core: 945, Mem: 877, Time: 2, Power: 200},
			{Core: 1380, Mem: 877, Time: 1, Power: 250},
		}
		if what == "a part" {
			samples[2].Power = 400 // is 40 then
		}
		for i := range samples {
			c.change(&samples[i])
		}
		table := modelfit.Table{Apps: []dvfsmodel.AppSamples{{App: "fft", Samples: samples}}, Profile: profile}
		got := ""
		if err := errors.Join(table.Doubts()...); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, c.want)
		}
	}
}
