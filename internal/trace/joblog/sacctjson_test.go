package joblog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
)

// TestJSONMeansWhatTextMeans reads the same records as sacct prints them in both forms.
func TestJSONMeansWhatTextMeans(t *testing.T) {
	const noValue = `{"set": false, "infinite": false, "number": 18446744073709551614}`
	jobJSON := func(id int, elapsed, suspended string, end int64, tres, steps string) string {
		return fmt.Sprintf(`{"job_id": %d, "user": "u", "name": "n", "nodes": "n1", "state": {"current": ["COMPLETED"]},
"time": {"submission": 1772438400, "start": 1772439000, "end": %d, "elapsed": %s, "suspended": %s,
"limit": 60}, "exit_code": {"return_code": 0}, "tres": {"allocated": [%s], "requested": []}, "steps": [%s]}`, id, end, elapsed,
			suspended, tres, steps)
	}
	gpu := func(name string, n int) string {
		return fmt.Sprintf(`{"type": "gres", "name": "%s", "count": %d}`, name, n)
	}
	step := func(name string, joules string) string {
		return fmt.Sprintf(`{"step": {"id": "9.%s"}, "time": {"elapsed": 3600},
"statistics": {"energy": {"consumed": %s}}}`, name, joules)
	}
	const header = "JobID|User|JobName|State|ExitCode|Submit|Start|End|ElapsedRaw|Suspended|TimelimitRaw|" +
		"AllocTRES|ConsumedEnergyRaw|NodeList\n"
	line := func(id string, end int64, elapsed, suspended, tres, joules string) string {
		return fmt.Sprintf("%s|u|n|COMPLETED|0:0|1772438400|1772439000|%d|%s|%s|60|%s|%s|n1\n", id, end, elapsed,
			suspended, tres, joules)
	}
	for name, c := range map[string]struct{ json, text, noted string }{
		"suspended": {
			jobJSON(1, "3600", "3600", 1772446200, gpu("gpu", 1), ""),
			line("1", 1772446200, "3600", "01:00:00", "gres/gpu=1", ""), "",
		},
		"a Prolog that failed": {
			jobJSON(1, "217", "0", 1772569979, gpu("gpu", 1), ""),
			line("1", 1772569979, "217", "00:00:00", "gres/gpu=1", ""), "run time isn't End - Start",
		},
		"no run time stated": {
			jobJSON(1, noValue, noValue, 1772442600, gpu("gpu", 1), ""),
			line("1", 1772442600, "4294967294", "Unknown", "gres/gpu=1", ""), "",
		},
		"two models": {
			jobJSON(1, "3600", "0", 1772442600, gpu("gpu", 2)+","+gpu("gpu:a100", 1)+","+gpu("gpu:v100", 1), ""),
			line("1", 1772442600, "3600", "00:00:00", "gres/gpu=2,gres/gpu:a100=1,gres/gpu:v100=1", ""),
			"GPUs of several models",
		},
		"a slice": {
			jobJSON(1, "3600", "0", 1772442600, gpu("gpu", 1)+","+gpu("gpu:1g.5gb", 1), ""),
			line("1", 1772442600, "3600", "00:00:00", "gres/gpu=1,gres/gpu:1g.5gb=1", ""), "part of a GPU",
		},
		"energy of the job is that of extern and steps": {
			jobJSON(1, "3600", "0", 1772442600, gpu("gpu", 4)+`,{"type": "energy", "name": "", "count": 8000000}`,
				step("batch", "100000")+","+step("extern", "4000000")+","+step("0", "3900000")),
			line("1", 1772442600, "3600", "00:00:00", "gres/gpu=4", "8000000") +
				line("1.batch", 1772442600, "3600", "00:00:00", "", "100000") +
				line("1.extern", 1772442600, "3600", "00:00:00", "", "4000000") +
				line("1.0", 1772442600, "3600", "00:00:00", "", "3900000"),
			"energy of the job is that of its steps added up",
		},
		"energy that isn't known": {
			jobJSON(1, "3600", "0", 1772442600, gpu("gpu", 4), step("extern", noValue)),
			line("1", 1772442600, "3600", "00:00:00", "gres/gpu=4", "18446744073709551614"), "",
		},
		"energy that can't be": {
			jobJSON(1, "3600", "0", 1772442600, gpu("gpu", 1), step("extern", "900000000")),
			line("1", 1772442600, "3600", "00:00:00", "gres/gpu=1", "900000000"), "energy beyond what GPUs",
		},
	} {
		var fromJSON, fromText []record.HistoryJob
		inJSON, err := joblog.ReadSacct(strings.NewReader(`{"jobs": [`+c.json+`]}`), "log", &joblog.Options{}, keep(&fromJSON))
		if err != nil {
			t.Fatal(name, err)
		}
		inText, err := joblog.ReadSacct(strings.NewReader(header+c.text), "log", &joblog.Options{}, keep(&fromText))
		if err != nil {
			t.Fatal(name, err)
		}
		if len(fromText) != 1 || fmt.Sprintf("%+v", fromJSON) != fmt.Sprintf("%+v", fromText) {
			t.Errorf("%s: JSON says\n%+v\ntext says\n%+v\n%v", name, fromJSON, fromText, inText.Skipped)
		}
		for form, tally := range map[string]*joblog.Tally{"JSON": inJSON, "text": inText} {
			if noted := fmt.Sprint(tally.Noted); !strings.Contains(noted, c.noted) || c.noted == "" && noted != "[]" {
				t.Errorf("%s: %s notes %s, want %q", name, form, noted, c.noted)
			}
		}
	}
}
