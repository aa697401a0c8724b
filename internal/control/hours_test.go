package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/begins"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

func TestAJobThatCanWaitIsToldWhenItBegins(t *testing.T) {
	var asked *begins.Ask
	r := newRig(t, func(o *Options) {
		o.Settings.Live.Hours.By = config.HoursCost
		o.HourAtSubmit = func(ask *begins.Ask) (begins.Hour, bool) {
			asked = ask
			return begins.Hour{Begin: start.Add(2 * time.Hour), Saves: 0.4}, true
		}
		o.NiceAtSubmit = func(string, uint32, bool) int64 { return 12 }
	})
	const none = -1
	for what, c := range map[string]struct {
		change func(s *hooks.Submission, l *config.Live)
		slack  time.Duration // of the latest begin; none: nobody is asked
		gpus   int
		nice   int64
		note   bool
	}{
		"it can wait":    {func(*hooks.Submission, *config.Live) {}, 4 * time.Hour, 2, 0, true},
		"nobody says so": {func(s *hooks.Submission, _ *config.Live) { s.Comment = "" }, none, 0, 12, false},
		"its partition's jobs can": {func(s *hooks.Submission, l *config.Live) {
			s.Comment, l.Hours.Slacks = "", map[string]float64{"gpu": 3600}
		}, time.Hour, 2, 0, true},
		"it can't though its partition's jobs can": {func(s *hooks.Submission, l *config.Live) {
			s.Comment, l.Hours.Slacks = "epplan:slack=0", map[string]float64{"gpu": 3600}
		}, none, 0, 12, false},
		"an opt-out though its partition's jobs can": {func(s *hooks.Submission, l *config.Live) {
			s.Comment, l.Hours.Slacks = "epplan:off", map[string]float64{"gpu": 3600}
		}, none, 0, 0, false},
		"a deadline": {func(s *hooks.Submission, _ *config.Live) {
			s.Comment += ",deadline=+150m"
		}, 150*time.Minute - time.Hour - startMargin, 2, 0, true},
		"an array": {func(s *hooks.Submission, _ *config.Live) {
			s.Array = "1-10%2"
		}, 4 * time.Hour, 20, 0, true},
		"interactive": {func(s *hooks.Submission, _ *config.Live) { s.Kind = "interactive" }, none, 0, 12, false},
		"its own begin": {func(s *hooks.Submission, _ *config.Live) {
			s.BeginTime = start.Unix()
		}, none, 0, 0, false},
		"held":     {func(s *hooks.Submission, _ *config.Live) { s.Held = true }, none, 0, 0, false},
		"tied":     {func(s *hooks.Submission, _ *config.Live) { s.Tied = true }, none, 0, 12, false},
		"no limit": {func(s *hooks.Submission, _ *config.Live) { s.TimeLimit = 0 }, none, 0, 12, false},
		"a part of GPUs": {func(s *hooks.Submission, _ *config.Live) {
			s.TRESPerNode = "gres/shard:2"
		}, none, 0, 12, false},
		"only advised": {func(_ *hooks.Submission, l *config.Live) {
			l.Mode = live.Advise
		}, 4 * time.Hour, 2, 12, false},
		"not touched": {func(_ *hooks.Submission, l *config.Live) { l.Mode = live.Observe }, none, 0, 12, false},
		"another's words": {func(s *hooks.Submission, _ *config.Live) {
			s.Admin = "JS1:H4sIAAAAAAAAA"
		}, none, 0, 0, false},
		"others' words without room": {func(s *hooks.Submission, _ *config.Live) {
			s.Admin = hooks.Hex(strings.Repeat("words ", 165))
		}, none, 0, 0, false},
	} {
		s := hooks.Submission{
			Version: 1, Kind: "batch", UID: 1000, Name: "train", Partition: "gpu", TRESPerNode: "gres/gpu:2",
			Comment: "epplan:slack=4h", TimeLimit: 60,
		}
		asked = nil
		settings := *r.settings.Load()
		c.change(&s, &settings.Live)
		before := r.settings.Swap(&settings)
		answer, err := r.Submit(t.Context(), &s)
		r.settings.Store(before)
		job := slurm.Job{AdminComment: string(answer.AdminComment)}
		begins := c.slack != none && c.note && s.Admin == ""
		if err != nil || (asked != nil) != (c.slack != none) || answer.Nice != c.nice && s.Admin == "" ||
			(answer.Begin > 0) != begins || job.BeginAtSubmit() != answer.Begin ||
			strings.Contains(string(answer.Message), "begins Mon 11:00, when its energy costs 40 % less") != begins {
			t.Errorf("%s: %+v, %v, asked %+v", what, answer, err, asked)
		}
		if asked != nil && (asked.GPUs != c.gpus || !asked.Latest.Equal(start.Add(c.slack)) ||
			asked.Note != c.note || asked.Run != time.Hour) {
			t.Errorf("%s: %+v", what, asked)
		}
	}
}

func TestHoursAreChosenByWhatTheSeriesStates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hours.csv")
	text := "time,cost_per_kwh,carbon_g_per_kwh\n2026-03-02T12:00Z,0.36,72\n2026-03-02T13:00Z,0.18,108\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	series, err := factors.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for by, want := range map[config.HoursBy][2]float64{
		config.HoursOff: {}, config.HoursCost: {1e-7, 0.5e-7}, config.HoursCarbon: {2e-5, 3e-5},
	} {
		s := DefaultSettings()
		s.series, s.Live.Hours.By = series, by
		prices := s.Prices()
		if by == config.HoursOff {
			if prices != nil {
				t.Errorf("%s: there are prices", by)
			}
			continue
		}
		at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
		p, known := prices(at)
		if p.At(0) != want[0] || p.At(3600) != want[1] || known != 7200 {
			t.Errorf("%s: %v, known until %g", by, p.Function[:2], known)
		}
	}
}
