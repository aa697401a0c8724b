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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict"
	words "github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// submitAs submits, and returns what was noted of it.
func (r *rig) submitAs(s *slurm.Submission) (*record.Decision, slurm.SubmitAnswer) {
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
	if first.Rung != string(predict.Prior) || first.TimeS.Value != record.Known(1800) || first.PowerW.Value != record.Known(200) {
		t.Errorf("without any history: %+v", first)
	}
	r.runScript(script(1000), 1, 3)
	again, _ := r.submitAs(script(1000))
	want := memoryBound().Time(1, 1) // some ran at lower clocks
	if again.Rung != string(predict.Repeat) || math.Abs(again.TimeS.Value.Or(0)-want) > 0.1*want || !(again.TimeS.High.Or(0) > want) {
		t.Errorf("the same script: %+v, want %g s", again, want)
	}
	other := script(1000)
	other.Script += "more\n"
	if edited, _ := r.submitAs(other); edited.Rung != string(predict.Similar) {
		t.Errorf("another script of the name: %+v", edited)
	}
	s := r.Status(context.Background()).Forecasts
	i := slices.IndexFunc(s.Scores, func(s epdapi.ForecastScore) bool { return s.Target == "time" && s.Rung == "" })
	if !s.Enabled || i < 0 || s.Scores[i].Jobs != 3 || s.Scores[i].Coverage != 1 || s.Missed != 0 {
		t.Errorf("%+v", s)
	}
}

func TestASubmissionsLimitIsSpokenOfAfterSeveralRunsAndWhereThatIsWanted(t *testing.T) {
	for hints, want := range map[string]bool{"": true, "limit_hints = true\n": true, "limit_hints = false\n": false} {
		r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, "[live]\nmode = \"advise\"\n"+hints, nil)
		long := script(1000)
		long.Partition, long.TimeLimit = "gpu", 600
		for runs := range fewRuns + 1 {
			if _, answer := r.submitAs(long); answer.Message != "" {
				t.Errorf("%s after %d runs: %q", hints, runs, answer.Message)
			}
			r.runScript(long, slurm.JobID(runs+1), 1)
		}
		_, answer := r.submitAs(long)
		if text := string(answer.Message); strings.Contains(text, "--time=0-") != want || want && !strings.Contains(text, "by its last runs") {
			t.Errorf("%s after %d: %q", hints, fewRuns+1, text)
		}
	}
}

func TestARestartLearnsFromTheRecordsAndFromImportedLogs(t *testing.T) {
	r := newRig(t, nil)
	r.runScript(script(1000), 1, 3)
	past := record.Past{
		Cluster: "alpha", JobID: "77", Submitted: start.Add(-2 * time.Hour), Started: start.Add(-2 * time.Hour), Ended: start.Add(-2*time.Hour + 4242*time.Second),
		User: "bob", Account: "", Partition: "gpu", Name: []byte("old"), GPUs: record.Known(1), Nodes: record.Known(1), State: "COMPLETED",
	}
	cpu, unknown := past, past
	cpu.JobID, cpu.GPUs, cpu.Name = "78", record.Known(0), []byte("cpu")
	unknown.JobID, unknown.Ended = "79", time.Time{}
	if _, err := r.store.AddHistory(t.Context(), []record.Past{past, cpu, unknown}); err != nil {
		t.Fatal(err)
	}
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := r.forecasts.latest.Load()
	if f.Own != 3 || f.Imported != 1 || f.Version == 0 {
		t.Errorf("%+v", f)
	}
	r.forecasts.people.note(&knownJob{uid: 7, user: kept("bob"), account: kept(""), partition: kept("gpu")})
	old := script(7)
	old.Name, old.Script = "old", ""
	d, _ := r.submitAs(old)
	if math.Abs(d.TimeS.Value.Or(0)-4242) > 1e-6 || rungsOf(d.Rung)[predict.Time] != string(predict.Similar) {
		t.Errorf("by the log: %+v", d)
	}
	versions, err := r.store.Models(t.Context(), r.forecastKey())
	if err != nil || len(versions) == 0 || versions[0].Samples != 4 {
		t.Errorf("%+v, %v", versions, err)
	}
	if err := r.LoadModels(t.Context()); err != nil {
		t.Error(err)
	}
	standings := r.Standings()
	if last := standings[len(standings)-1]; last.Workload != forecastWorkload || last.Samples != 4 || !strings.Contains(last.Note, "3 own and 1 imported") {
		t.Errorf("%+v", standings)
	}
	if status := r.callAs(nil, http.MethodPost, "/v1/models/use", `{"workload":"forecast","gpu_model":"","version":1}`, nil); status != http.StatusBadRequest {
		t.Errorf("choosing a version: status %d", status)
	}
}

func TestUsersThatNoJobIsKnownOfAreAskedFor(t *testing.T) {
	r := newRig(t, func(o *Options) { o.UserName = func(uid uint32) string { return map[uint32]string{7: "bob"}[uid] } })
	past := record.Past{
		Cluster: "alpha", JobID: "77", Submitted: start.Add(-2 * time.Hour), Started: start.Add(-2 * time.Hour), Ended: start.Add(-time.Hour),
		User: "bob", Partition: "gpu", Name: []byte("old"), GPUs: record.Known(1), Nodes: record.Known(1), State: "COMPLETED",
	}
	if _, err := r.store.AddHistory(t.Context(), []record.Past{past}); err != nil {
		t.Fatal(err)
	}
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := script(7)
	s.Name = "old"
	r.submitAs(s) // his name is looked up meanwhile
	if user := r.forecasts.people.get(7).user; user != "bob" {
		t.Errorf("uid 7 is %q", user)
	}
	if d, _ := r.submitAs(s); math.Abs(d.TimeS.Value.Or(0)-3600) > 1e-6 {
		t.Errorf("%+v", d)
	}
}

func TestPredictionsCanBeSwitchedOff(t *testing.T) {
	r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, enforceAll+"[predict]\nenabled = false\n", nil)
	d, _ := r.submitAs(script(1000))
	if d.Rung != "" || d.TimeS.Value != (record.Number{}) {
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

// vectorOf is what a client sends of a code.
func vectorOf(text string) *epdapi.Code {
	return &epdapi.Code{Files: 2, Vector: narrow(words.Embed(words.Read(text))), Digest: "d"}
}

func TestCodeThatWasAnnouncedPredictsAJobThatNeverRan(t *testing.T) {
	r := newRig(t, nil)
	program := func(epochs int) string {
		return fmt.Sprintf("import torch\nepochs = %d\nfor e in range(epochs): train(e)\n", epochs)
	}
	announce := func(s *slurm.Submission, epochs int) {
		t.Helper()
		var a epdapi.CodeAnswer
		body := string(must(json.Marshal(&epdapi.CodeRequest{Submission: *s, Code: vectorOf(program(epochs))})))
		if status := r.callAs(&ada, http.MethodPost, epdapi.PathCode, body, &a); status != http.StatusOK || !a.Kept || a.WantsText {
			t.Fatalf("status %d, %+v", status, a)
		}
	}
	for i := range 24 {
		s := script(ada.UID)
		s.Script = slurm.Hex(fmt.Sprintf("#!/bin/sh\npython train%d.py\n", i))
		s.Name = slurm.Hex(fmt.Sprintf("n%d", i))
		announce(s, i+1)
		_, answer := r.submitAs(s)
		id := slurm.JobID(i + 1)
		r.job(id, func(j *slurm.Job) {
			j.AdminComment, j.Name, j.UID, j.User = string(answer.AdminComment), string(s.Name), ada.UID, "ada"
		})
		request := ask(id)
		request.UID = ada.UID
		truth := memoryBound()
		truth.D, truth.T0 = truth.D*float64(i+1), truth.T0*float64(i+1)
		r.record(r.ran(r.decide(request), request.RunID, truth), store.Stored)
	}
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := r.forecasts.latest.Load(); f.Codes != 24 || f.Scripts != 24 {
		t.Errorf("%+v", f)
	}
	s := script(ada.UID)
	s.Script, s.Name = "#!/bin/sh\npython other.py\n", "unseen"
	announce(s, 12)
	d, _ := r.submitAs(s)
	want := 12 * memoryBound().Time(1, 1)
	if got := d.TimeS.Value.Or(0); rungsOf(d.Rung)[predict.Time] != string(predict.Code) || math.Abs(got-want) > 0.25*want {
		t.Errorf("%g s by %q, want about %g", got, d.Rung, want)
	}
	s.Comment = "epplan:nocode"
	body := string(must(json.Marshal(&epdapi.CodeRequest{Submission: *s, Code: vectorOf(program(3))})))
	var a epdapi.CodeAnswer
	if status := r.callAs(&ada, http.MethodPost, epdapi.PathCode, body, &a); status != http.StatusOK || a.Kept {
		t.Errorf("opted out: status %d, %+v", status, a)
	}
	strange := script(ada.UID)
	strange.Script, strange.Name = "#!/bin/sh\n./fortran\n", "strange"
	body = string(must(json.Marshal(&epdapi.CodeRequest{Submission: *strange, Code: vectorOf(strings.Repeat("subroutine lattice_boltzmann collide stream halo_exchange mpi_sendrecv\n", 30))})))
	var e epdapi.Estimate
	if status := r.callAs(&ada, http.MethodPost, "/v1/estimate", body, &e); status != http.StatusOK || e.Forecast == nil || !e.Forecast.Strange || !(e.Forecast.Score > 1) {
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
		"long digest": func(c *epdapi.Code) { c.Digest = slurm.Hex(strings.Repeat("x", 65)) },
		"long text":   func(c *epdapi.Code) { c.Text = slurm.Hex(strings.Repeat("x", maxCodeText+1)) },
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
		if status := r.callAs(&ada, http.MethodPost, epdapi.PathCode, `{"v":1,"kind":"batch","uid":1,"code":{`+wrong+`}}`, nil); status != http.StatusBadRequest {
			t.Errorf("%s: status %d", wrong, status)
		}
	}
}

func TestAUserCanPushOnlyTheirOwnCodeOut(t *testing.T) {
	var c codes
	key := func(uid, i int) source { return sourceOf(uint32(uid), strconv.Itoa(i), "") }
	c.put(key(1, 0), &announced{uid: 1, at: start, vector: []float32{1}})
	for i := range 10 * maxCodesOfUser {
		c.put(key(2, i), &announced{uid: 2, at: start.Add(time.Duration(i) * time.Second), vector: []float32{2}})
	}
	if v, _ := c.get(key(1, 0), start, false); v == nil {
		t.Error("another user's code is gone")
	}
	if len(c.of) != maxCodesOfUser+1 {
		t.Errorf("%d are kept, want %d", len(c.of), maxCodesOfUser+1)
	}
	if v, _ := c.get(key(1, 0), start.Add(codeTrust+time.Second), false); v != nil {
		t.Error("it is believed for ever")
	}
}

func TestAUserCantFillTheQueueForServers(t *testing.T) {
	var c codes
	asked := 0
	for range askQueue {
		if c.ask(2) {
			asked++
		}
	}
	if asked != maxAsksOfUser || asked >= askQueue || !c.ask(1) {
		t.Errorf("a user has %d texts wait", asked)
	}
	c.asked(2)
	if !c.ask(2) || c.ask(2) {
		t.Error("after an answer there is room for one")
	}
	for range maxAsksOfUser {
		c.asked(2)
	}
	c.asked(1)
	if len(c.asks) != 0 {
		t.Errorf("%v is left", c.asks)
	}
}

func TestOfALongScriptWhatPredictionsLookAtIsKept(t *testing.T) {
	r := newRig(t, nil)
	s := script(1000)
	s.Script = slurm.Hex("#!/bin/sh\npython train.py --epochs 3\n" + strings.Repeat("# word\n", embedScript/7) + "python other.py --layers 9\n")
	r.submitAs(s)
	kept, err := r.store.Features(t.Context(), "alpha", 10)
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if want := narrow(words.Embed(words.Read(string(s.Script[:embedScript])))); !slices.Equal(kept[0].Script, want) {
		t.Error("features of a long script are not those that it is predicted by")
	}
}

func TestFactorsOverTimeMakeAForecastsFootprint(t *testing.T) {
	dir := t.TempDir()
	series := "time,carbon_g_per_kwh\n2026-05-04T09:00:00Z,100\n2026-05-04T09:15:00Z,400\n2026-05-04T10:00:00Z,400\n"
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
	if p := f.Footprint; p == nil || math.Abs(p.Carbon.Value-250*kWh) > 1e-9 || math.Abs(p.Cost.Value-0.5*kWh) > 1e-9 || p.Currency != "EUR" ||
		!(p.Carbon.Low < p.Carbon.Value && p.Carbon.Value < p.Carbon.High) || p.Water.High != 0 {
		t.Errorf("%+v of %+v", f.Footprint, f)
	}
	if _, err := ReadSettings(strings.NewReader(strings.Replace(text, "factors.csv", "missing.csv", 1)), filepath.Join(dir, "epd.toml")); err == nil {
		t.Error("a series that isn't there was loaded")
	}
}

func BenchmarkSubmit(b *testing.B) {
	for _, enabled := range []bool{true, false} {
		b.Run(fmt.Sprint("predicted ", enabled), func(b *testing.B) {
			text := fmt.Sprintf("%s[predict]\nenabled = %v\n", enforceAll, enabled)
			r := rigAt(b, b.TempDir()+"/epd.db", &hand{now: start}, text, func(o *Options) { o.Store = &discard{Records: o.Store} })
			all := make([]predict.Past, 0, 20000)
			for i := range cap(all) {
				took := float64(100 + i%977)
				all = append(all, predict.Past{
					Job: predict.Job{
						ID: strconv.Itoa(i), Submit: float64(i), Owner: "ada", Labels: []string{fmt.Sprint("job-", i%500), "gpu", ""}, Sizes: []float64{1, 1}, Requested: 3600,
					},
					Outcome: predict.Outcome{End: float64(i) + took, Completed: true, Value: [3]float64{took, took / 100, 200}},
				})
			}
			if _, err := r.forecasts.live.Train(b.Context(), func(context.Context) ([]predict.Past, error) { return all, nil }); err != nil {
				b.Fatal(err)
			}
			r.forecasts.people.note(&knownJob{uid: 1000, user: kept("ada"), account: kept(""), partition: kept("gpu")})
			s := script(1000)
			took := make([]time.Duration, 0, b.N)
			for i := range b.N {
				s.Name = slurm.Hex(fmt.Sprint("job-", i%600))
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
