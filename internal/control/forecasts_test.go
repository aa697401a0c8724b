package control

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/predict"
	words "github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// submitAs submits, and returns what was noted of it.
func (r *rig) submitAs(s *hooks.Submission) (*record.Decision, hooks.SubmitAnswer) {
	r.t.Helper()
	answer, err := r.Submit(context.Background(), s)
	if err != nil {
		r.t.Fatal(err)
	}
	r.flush()
	token, _, _ := slurm.ParseToken(string(answer.AdminComment))
	d, err := r.store.DecisionByToken(context.Background(), "alpha", token)
	if err != nil {
		r.t.Fatal(err)
	}
	return &d, answer
}

func TestASubmissionIsPredictedAndScoredWhenItEnds(t *testing.T) {
	r := newRig(t, nil)
	first, _ := r.submitAs(script(1000))
	if first.Rung != string(predict.Prior) || first.TimeS.Value != live.Known(1800) ||
		first.PowerW.Value != live.Known(200) {
		t.Errorf("without any history: %+v", first)
	}
	r.runScript(script(1000), 1, 3)
	again, _ := r.submitAs(script(1000))
	want := memoryBound().Time(1, 1) // some ran at lower clocks
	if again.Rung != string(predict.Repeat) || math.Abs(again.TimeS.Value.Or(0)-want) > 0.1*want ||
		!(again.TimeS.High.Or(0) > want) {
		t.Errorf("the same script: %+v, want %g s", again, want)
	}
	other := script(1000)
	other.Script += "more\n"
	if edited, _ := r.submitAs(other); edited.Rung != string(predict.Similar) {
		t.Errorf("another script of the name: %+v", edited)
	}
	s := r.status().Forecasts
	i := slices.IndexFunc(s.Scores, func(s epdapi.ForecastScore) bool {
		return s.Target == "time" && s.Rung == ""
	})
	if !s.Enabled || i < 0 || s.Scores[i].Jobs != 2 || // not the first, made with nothing known
		s.Scores[i].Coverage != 1 || s.Missed != 0 {
		t.Errorf("%+v", s)
	}
}

func TestASubmissionsLimitIsSpokenOfAfterSeveralRunsAndWhereThatIsWanted(t *testing.T) {
	const said, advised = "--time=0-", "mode = \"advise\"\nlimit_hints = true\n"
	for text, want := range map[string]string{
		"mode = \"advise\"\n":                                                  "", // administrators alone are told
		"mode = \"enforce\"\n":                                                 "",
		"mode = \"advise\"\nlimit_hints = true\n":                              said,
		"mode = \"enforce\"\nlimit_hints = true\n":                             said,
		"mode = \"observe\"\nlimit_hints = true\n":                             "",
		"mode = \"advise\"\nlimit_hints = false\n":                             "",
		"mode = \"advise\"\nlimit_hints = {gpu = true}\n":                      said,
		"mode = \"advise\"\nlimit_hints = {other = true}\n":                    "",
		"mode = \"advise\"\nmodes = {gpu = \"observe\"}\nlimit_hints = true\n": "",
		advised + "limit_hint_text = \"%s %n ask <b>$(id)</b> for {limit}: {runs} runs\"\n": "epplan: " +
			"%s %n ask <b>$(id)</b> for 0-00:13:00: 4 runs",
	} {
		r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, "[live]\nhold_out = 0\nexplore = 0\n"+text, nil)
		long := script(1000)
		long.Partition, long.TimeLimit = "gpu", 600
		least := r.Settings().Live.LimitHint.Runs
		for runs := range least {
			if _, answer := r.submitAs(long); answer.Message != "" {
				t.Errorf("%s after %d runs: %q", text, runs, answer.Message)
			}
			r.runScript(long, slurm.JobID(runs+1), 1)
		}
		_, answer := r.submitAs(long)
		if got := string(answer.Message); !strings.Contains(got, want) || want == "" && got != "" ||
			want == said && !strings.Contains(got, "by its last runs") {
			t.Errorf("%s after %d: %q, want %q", text, least, got, want)
		}
	}
}

func TestARestartLearnsFromTheRecordsAndFromImportedLogs(t *testing.T) {
	r := newRig(t, nil)
	r.runScript(script(1000), 1, 3)
	past := record.HistoryJob{
		Cluster: "alpha", JobID: "77", Submitted: start.Add(-2 * time.Hour),
		Started: start.Add(-2 * time.Hour), Ended: start.Add(-2*time.Hour + 4242*time.Second),
		User: "bob", Account: "", Partition: "gpu", Name: []byte("old"), GPUs: live.Known(1),
		Nodes: live.Known(1), State: "COMPLETED",
	}
	cpu, unknown := past, past
	cpu.JobID, cpu.GPUs, cpu.Name = "78", live.Known(0), []byte("cpu")
	unknown.JobID, unknown.Ended = "79", time.Time{}
	if _, err := r.store.Learning.AddHistory(t.Context(), []record.HistoryJob{past, cpu, unknown}); err != nil {
		t.Fatal(err)
	}
	if err := r.forecasts.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := r.status().Forecasts; f.Jobs != 4 || f.Imported != 1 || f.Version == 0 {
		t.Errorf("%+v", f)
	}
	r.forecasts.SeeUser(7, "bob", "", "gpu")
	old := script(7)
	old.Name, old.Script = "old", ""
	d, _ := r.submitAs(old)
	if math.Abs(d.TimeS.Value.Or(0)-4242) > 1e-6 || rungOfTime(d) != string(predict.Similar) {
		t.Errorf("by the log: %+v", d)
	}
	versions, err := r.store.Learning.Models(t.Context(), record.WorkloadKey{
		Cluster: "alpha", Workload: forecast.Workload,
	})
	if err != nil || len(versions) == 0 || versions[0].Samples != 4 {
		t.Errorf("%+v, %v", versions, err)
	}
	if err := r.learner.Load(t.Context()); err != nil {
		t.Error(err)
	}
	standings, err := r.Queries.ModelStatuses(t.Context(), query.ForEPD())
	if err != nil {
		t.Fatal(err)
	}
	if last := standings[len(standings)-1]; last.Workload != forecast.Workload || last.Samples != 4 ||
		!strings.Contains(last.Note, "3 own and 1 imported") {
		t.Errorf("%+v", standings)
	}
	if status := r.callAs(nil, http.MethodPost, "/v1/models/use",
		`{"workload":"forecast","gpu_model":"","version":1}`, nil); status != http.StatusBadRequest {
		t.Errorf("choosing a version: status %d", status)
	}
}

func TestPredictionsCanBeSwitchedOff(t *testing.T) {
	r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, enforceAll+"[predict]\nenabled = false\n", nil)
	d, _ := r.submitAs(script(1000))
	if d.Rung != "" || d.TimeS.Value != (live.Number{}) {
		t.Errorf("%+v", d)
	}
	if e := r.estimateOf(nil, script(1000), ""); e.Forecast != nil {
		t.Errorf("%+v", e.Forecast)
	}
}

func TestPredictionsNeverChooseClocksNorShortenLimits(t *testing.T) {
	r := newRig(t, nil)
	s := script(1000)
	s.Script = "" // no workload model is made of these
	r.job(1, nil)
	plain := r.decide(ask(1))
	for id := slurm.JobID(2); id < 6; id++ {
		_, answer := r.submitAs(s)
		r.job(id, func(j *slurm.Job) { j.AdminComment = string(answer.AdminComment) })
		d := r.decide(ask(id))
		if d.Apply || d.Limit != plain.Limit || d.Upper != plain.Upper {
			t.Errorf("%+v, want what was decided without a prediction: %+v", d, plain)
		}
	}
}

// rungOfTime returns what a predicted time rests on.
func rungOfTime(d *record.Decision) string {
	rung, _, _ := strings.Cut(d.Rung, "/")
	return rung
}

// vectorOf returns what a client sends of a code.
func vectorOf(text string) *epdapi.Code {
	code := &epdapi.Code{Files: 2, Digest: "d"}
	for _, x := range words.Embed(words.Read(text)) {
		code.Vector = append(code.Vector, float32(x))
	}
	return code
}

func TestCodeThatWasAnnouncedPredictsAJobThatNeverRan(t *testing.T) {
	r := newRig(t, nil)
	program := func(epochs int) string {
		return fmt.Sprintf("import torch\nepochs = %d\nfor e in range(epochs): train(e)\n", epochs)
	}
	announce := func(s *hooks.Submission, epochs int) {
		t.Helper()
		var a epdapi.CodeAnswer
		body := string(must(json.Marshal(&epdapi.CodeRequest{
			Submission: *s, Code: vectorOf(program(epochs)),
		})))
		if status := r.callAs(&ada, http.MethodPost, epdapi.PathCode, body, &a); status != http.StatusOK ||
			!a.Kept || a.WantsText {
			t.Fatalf("status %d, %+v", status, a)
		}
	}
	for i := range 24 {
		s := script(ada.UID)
		s.Script = hooks.Hex(fmt.Sprintf("#!/bin/sh\npython train%d.py\n", i))
		s.Name = hooks.Hex(fmt.Sprintf("n%d", i))
		announce(s, i+1)
		_, answer := r.submitAs(s)
		id := slurm.JobID(i + 1)
		r.job(id, func(j *slurm.Job) {
			j.AdminComment, j.Name, j.UID, j.User = string(answer.AdminComment), string(s.Name),
				ada.UID, "ada"
		})
		request := ask(id)
		request.UID = ada.UID
		truth := memoryBound()
		truth.D, truth.T0 = truth.D*float64(i+1), truth.T0*float64(i+1)
		r.record(r.ran(r.decide(request), request.RunID, truth), store.Stored)
	}
	if err := r.forecasts.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := r.status().Forecasts; f.Codes != 24 || f.Scripts != 24 {
		t.Errorf("%+v", f)
	}
	s := script(ada.UID)
	s.Script, s.Name = "#!/bin/sh\npython other.py\n", "unseen"
	announce(s, 12)
	d, _ := r.submitAs(s)
	want := 12 * memoryBound().Time(1, 1)
	if got := d.TimeS.Value.Or(0); rungOfTime(d) != string(predict.Code) || math.Abs(got-want) > 0.25*want {
		t.Errorf("%g s by %q, want about %g", got, d.Rung, want)
	}
	s.Comment = "epplan:nocode"
	body := string(must(json.Marshal(&epdapi.CodeRequest{Submission: *s, Code: vectorOf(program(3))})))
	var a epdapi.CodeAnswer
	if status := r.callAs(&ada, http.MethodPost, epdapi.PathCode, body, &a); status != http.StatusOK ||
		a.Kept {
		t.Errorf("opted out: status %d, %+v", status, a)
	}
	strange := script(ada.UID)
	strange.Script, strange.Name = "#!/bin/sh\n./fortran\n", "strange"
	body = string(must(json.Marshal(&epdapi.CodeRequest{
		Submission: *strange,
		Code: vectorOf(strings.Repeat("subroutine lattice_boltzmann collide stream halo_exchange "+
			"mpi_sendrecv\n", 30)),
	})))
	var e epdapi.Estimate
	if status := r.callAs(&ada, http.MethodPost, "/v1/estimate", body, &e); status != http.StatusOK ||
		e.Forecast == nil || !e.Forecast.Strange || !(e.Forecast.Score > 1) {
		t.Errorf("status %d, %+v", status, e.Forecast)
	}
}

func TestImpossibleCodeIsRefused(t *testing.T) {
	r := newRig(t, nil)
	good := vectorOf("x = 1")
	for name, change := range map[string]func(*epdapi.Code){
		"too short":   func(c *epdapi.Code) { c.Vector = c.Vector[:1023] },
		"too long":    func(c *epdapi.Code) { c.Vector = append(c.Vector, 0) },
		"no vector":   func(c *epdapi.Code) { c.Vector = nil },
		"huge":        func(c *epdapi.Code) { c.Vector[7] = 1e30 },
		"no files":    func(c *epdapi.Code) { c.Files = 0 },
		"long digest": func(c *epdapi.Code) { c.Digest = hooks.Hex(strings.Repeat("x", 65)) },
		"long text":   func(c *epdapi.Code) { c.Text = hooks.Hex(strings.Repeat("x", 64<<10+1)) },
	} {
		code := *good
		code.Vector = slices.Clone(good.Vector)
		change(&code)
		body := string(must(json.Marshal(&epdapi.CodeRequest{Submission: *script(1000), Code: &code})))
		for _, path := range []string{epdapi.PathCode, epdapi.PathEstimate} {
			if status := r.callAs(&ada, http.MethodPost, path, body, nil); status != http.StatusBadRequest {
				t.Errorf("%s at %s: status %d", name, path, status)
			}
		}
	}
	for _, wrong := range []string{`"vector":[1e400]`, `"vector":[NaN]`, `"vector":"x"`} {
		if status := r.callAs(&ada, http.MethodPost, epdapi.PathCode,
			`{"v":1,"kind":"batch","uid":1,"code":{`+wrong+`}}`, nil); status != http.StatusBadRequest {
			t.Errorf("%s: status %d", wrong, status)
		}
	}
}

func TestAPredictionStaysWithinTheTimeLimitAndWhatTheGPUsCanUse(t *testing.T) {
	r := newRig(t, nil)
	s := script(1000)
	limit := (time.Hour + time.Minute).Seconds() // after which Slurm has killed it
	first, _ := r.submitAs(s)
	if high := first.TimeS.High.Or(0); high != limit || first.PowerW.High.Or(0) < 1000 {
		t.Errorf("no GPU model is known: time to %g s, want %g; power %+v, want no bound", high, limit,
			first.PowerW)
	}
	r.runScript(s, 1, 1)
	again, _ := r.submitAs(s)
	profile, err := r.settings.Load().Profiles.Lookup("V100")
	if err != nil {
		t.Fatal(err)
	}
	if p := again.PowerW; p.Low.Or(0) < float64(profile.IdleW) ||
		p.High.Or(math.Inf(1)) > float64(profile.BusyW) || !(p.Low.Or(0) < p.High.Or(0)) {
		t.Errorf("power %+v, want it within %v to %v W", p, profile.IdleW, profile.BusyW)
	}
	if most := limit * float64(profile.BusyW); again.EnergyJ.High.Or(math.Inf(1)) > most {
		t.Errorf("energy %+v, want %g J at most", again.EnergyJ, most)
	}
}

func TestFactorsOverTimeMakeAForecastsFootprint(t *testing.T) {
	dir := t.TempDir()
	series := "time,carbon_g_per_kwh\n2026-05-04T09:00:00Z,100\n2026-05-04T09:15:00Z,400\n" +
		"2026-05-04T10:00:00Z,400\n"
	if err := os.WriteFile(filepath.Join(dir, "factors.csv"), []byte(series), 0o600); err != nil {
		t.Fatal(err)
	}
	text := enforceAll + "[factors]\nseries = \"factors.csv\"\ncost_per_kwh = 0.5\ncurrency = \"EUR\"\n"
	s, err := ReadSettings(strings.NewReader(text), filepath.Join(dir, "epd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *Options) { o.Settings = s })
	f := r.estimateOf(nil, script(1000), "").Forecast // half an hour, by its limit
	kWh := f.Energy.Value / 3.6e6
	if p := f.Footprint; p == nil || math.Abs(p.Carbon.Value-250*kWh) > 1e-9 ||
		math.Abs(p.Cost.Value-0.5*kWh) > 1e-9 || p.Currency != "EUR" ||
		!(p.Carbon.Low < p.Carbon.Value && p.Carbon.Value < p.Carbon.High) || p.Water.High != 0 {
		t.Errorf("%+v of %+v", f.Footprint, f)
	}
	if _, err := ReadSettings(strings.NewReader(strings.Replace(text, "factors.csv", "missing.csv", 1)),
		filepath.Join(dir, "epd.toml")); err == nil {
		t.Error("a series that isn't there was loaded")
	}
}

// remembering are records of many jobs of one user that ended: not for the training at
// the start, which ends before another one learns from them.
type remembering struct {
	everything
	asked chan struct{} // closed when the first training reads
	first *sync.Once
}

func (r remembering) EndedJobs(context.Context, string, int) ([]record.EndedJob, error) {
	started := false
	r.first.Do(func() { started = true; close(r.asked) })
	if started {
		return nil, nil
	}
	all := make([]record.EndedJob, 20000)
	for i := range all {
		took := time.Duration(100+i%977) * time.Second
		submitted := time.Unix(int64(i), 0)
		all[i] = record.EndedJob{
			Job: record.Job{
				ID: int64(i), Submitted: submitted, User: "ada", Name: fmt.Append(nil, "job-", i%500),
				Partition: "gpu",
				GPUs:      1, Nodes: 1, Limit: live.LimitOf(time.Hour),
			},
			Ended: submitted.Add(took), TimeS: live.Known(took.Seconds()),
			EnergyJ:   live.Known(200 * took.Seconds()),
			Completed: true, Runs: 1,
		}
	}
	return all, nil
}

func BenchmarkSubmit(b *testing.B) {
	for _, enabled := range []bool{true, false} {
		b.Run(fmt.Sprint("predicted ", enabled), func(b *testing.B) {
			text := fmt.Sprintf("%s[predict]\nenabled = %v\n", enforceAll, enabled)
			records := remembering{asked: make(chan struct{}), first: new(sync.Once)}
			r := rigAt(b, b.TempDir()+"/epd.db", &hand{now: start}, text, func(o *Options) {
				records.everything = &discard{everything: o.everything()}
				o.Records = recordsIn(records)
			})
			if enabled {
				<-records.asked
				if err := r.forecasts.Train(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			r.forecasts.SeeUser(1000, "ada", "", "gpu")
			s := script(1000)
			took := make([]time.Duration, 0, b.N)
			for i := range b.N {
				s.Name = hooks.Hex(fmt.Sprint("job-", i%600))
				begin := time.Now()
				if _, err := r.Submit(b.Context(), s); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "µs-p50")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "µs-p99")
		})
	}
}
