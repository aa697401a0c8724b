package joblog_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/trace/joblog"
)

func TestReportedLogsAreReadAsTheyAreMeant(t *testing.T) {
	for _, c := range []struct {
		file, zone string
		want       []string // id, GPUs, model, run time s, energy J
		noted      string
	}{
		{"01-suspended-run-time/log.txt", "UTC", []string{"1 1 a100 3600 900000", "2 1 a100 3600 900000"}, ""},
		{"01-suspended-run-time/prolog.json", "UTC", []string{"4242_42 1  217 -1"}, "run time isn't End - Start"},
		{"02-autumn-hour/log.txt", "Europe/Berlin", []string{"1 1 a100 1200 900000", "2 1 a100 5100 900000"}, ""},
		{"04-federated-job-ids/log.txt", "UTC", []string{
			"67109080 1 a100 3600 900000",
			"134218000_4 1 a100 3600 900000",
		}, ""},
		{"07-energy-for-people/log.txt", "UTC", []string{"1 1  3600 1440000", "2 1  3600 870250"}, ""},
		{"08-gpus-only-in-allocgres/log.txt", "UTC", []string{
			"1 2  3600 -1", "2 2  3600 -1", "3 4 v100 3600 -1",
		}, ""},
		{"21-two-gpu-models-in-one-job/log.txt", "UTC", []string{"1 2  3600 900000"}, "GPUs of several models"},
		{"26-energy-of-job-is-extern-plus-steps/log.txt", "UTC", []string{
			"1 200  123141 2080000000",
			"2 1 a100 3600 4580000",
		}, "energy of the job is that of its steps added up"},
		{"27-slice-is-no-gpu/log.txt", "UTC", []string{
			"1 1 1g.5gb 3600 900000",
			"2 1 a100_3g.20gb 3600 900000",
		}, "part of a GPU"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		f, err := os.Open(shareddata.Path(t, "../trials/field/"+c.file))
		if err != nil {
			t.Fatal(err)
		}
		tally, err := joblog.ReadSacct(io.Reader(f), "log", &joblog.Options{Zone: zone},
			func(p *record.HistoryJob) error {
				got = append(got, fmt.Sprintf("%s %.0f %s %.0f %.0f", p.JobID, p.GPUs.Or(-1), p.GPUModel,
					p.RunTime().Or(-1), p.EnergyJ.Or(-1)))
				return nil
			})
		_ = f.Close() // only read
		if err != nil || strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.file, err, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			continue
		}
		if noted := fmt.Sprint(tally.Noted); c.noted != "" && !strings.Contains(noted, c.noted) {
			t.Errorf("%s: noted %s, want %q among it", c.file, noted, c.noted)
		}
	}
}
