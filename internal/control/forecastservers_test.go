package control

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// llm speaks both APIs: an embedding says how many digits and lines a text has, and
// whether it is ours; a rewrite puts the source's last number into our style.
type llm struct {
	*httptest.Server
	mu   sync.Mutex
	sent []string
	fail bool
}

func newLLM(t *testing.T) *llm {
	t.Helper()
	l := &llm{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sent = append(l.sent, string(body))
		switch {
		case err != nil || l.fail:
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/embeddings"):
			var q struct{ Input []string }
			_ = json.Unmarshal(body, &q)
			ours := 0.0
			if strings.Contains(q.Input[0], "import torch") {
				ours = 40
			}
			var epochs float64
			_, _ = fmt.Sscanf(q.Input[0][strings.LastIndex(q.Input[0], "=")+1:], "%g", &epochs)
			_, _ = fmt.Fprintf(w, `{"data":[{"index":0,"embedding":[%g,%g,1]}]}`, ours, 5*math.Log(epochs))
		default:
			var q struct {
				Messages []struct{ Content string } `json:"messages"`
			}
			_ = json.Unmarshal(body, &q)
			source := q.Messages[1].Content
			var epochs int
			_, _ = fmt.Sscanf(source[strings.Index(source, "loops = ")+len("loops = "):], "%d", &epochs)
			text, _ := json.Marshal(fmt.Sprintf("import torch\nepochs = %d", epochs))
			_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":%s}}]}`, text)
		}
	}))
	t.Cleanup(l.Close)
	return l
}

// tell announces a text as a client does: features first, and the text if it is
// wanted.
func (r *rig) tell(s *hooks.Submission, text string) (wanted bool) {
	r.t.Helper()
	request := &epdapi.CodeRequest{Submission: *s, Code: vectorOf(text)}
	for {
		var a epdapi.CodeAnswer
		if status := r.callAs(&ada, http.MethodPost, epdapi.PathCode, string(must(json.Marshal(request))),
			&a); status != http.StatusOK {
			r.t.Fatal(status)
		}
		if !a.WantsText {
			break
		}
		wanted, request.Code.Text = true, hooks.Hex(text)
	}
	r.flush()
	return wanted
}

func TestServersEmbedCodeAndRewriteWhatIsStrange(t *testing.T) {
	l := newLLM(t)
	text := fmt.Sprintf("%s[predict]\nembedding_url = %q\nalign_url = %q\nallow_hosts = [\"127.0.0.1\"]\n",
		enforceAll, l.URL, l.URL)
	r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, text, nil)
	job := func(i int) *hooks.Submission {
		s := script(ada.UID)
		s.Script, s.Name = hooks.Hex(fmt.Sprintf("#!/bin/sh\npython train%d.py\n", i)),
			hooks.Hex(fmt.Sprintf("n%d", i))
		return s
	}
	for i := range 24 {
		s := job(i)
		if !r.tell(s, fmt.Sprintf("import torch\npassword = 'hunter2222'\nepochs = %d", i+1)) {
			t.Fatal("no text is wanted")
		}
		_, answer := r.submitAs(s)
		id := slurm.JobID(i + 1)
		r.job(id, func(j *slurm.Job) {
			j.AdminComment, j.Name, j.UID, j.User = string(answer.AdminComment), string(s.Name),
				ada.UID, "ada"
		})
		truth := memoryBound()
		truth.D, truth.T0 = truth.D*float64(i+1), truth.T0*float64(i+1)
		r.record(r.ran(r.decide(ask(id)), ask(id).RunID, truth), store.Stored)
	}
	if err := r.forecasts.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := 12 * memoryBound().Time(1, 1)
	strange := job(100)
	r.tell(strange, "fn main() {}\nloops = 12")
	d, _ := r.submitAs(strange)
	if got := d.TimeS.Value.Or(0); rungOfTime(d) != string(predict.Code) || math.Abs(got-want) > 0.25*want {
		t.Errorf("rewritten: %g s by %q, want about %g", got, d.Rung, want)
	}
	if s := r.status().Forecasts; s.Aligned != 1 || s.AskErrors != 0 || s.Codes != 24 {
		t.Errorf("%+v", s)
	}
	l.mu.Lock()
	for _, sent := range l.sent {
		if strings.Contains(sent, "hunter2222") {
			t.Fatalf("a password was sent: %s", sent)
		}
	}
	before := len(l.sent)
	l.fail = true
	l.mu.Unlock()

	// Servers that fail, and jobs that don't want any.
	broken := job(101)
	r.tell(broken, "import torch\nepochs = 12")
	if d, _ := r.submitAs(broken); d.Rung == "" || strings.HasPrefix(d.Rung, "code") {
		t.Errorf("without an embedding: %q", d.Rung)
	}
	private := job(102)
	private.Comment = "epplan:nocode"
	if r.tell(private, "import torch\nepochs = 3") {
		t.Error("text is wanted of a job that opted out")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sent) != before+1 || r.status().Forecasts.AskErrors != 1 {
		t.Errorf("%d requests, %+v", len(l.sent)-before, r.status().Forecasts)
	}
}
