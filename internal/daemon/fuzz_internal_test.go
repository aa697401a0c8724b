package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/testkit/spooltest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// memoryFolder is a folder of files in memory, which several GPUs' goroutines may use at once.
type memoryFolder struct {
	mu    sync.Mutex
	files map[string]*bytes.Buffer
}

func newMemoryFolder() *memoryFolder { return &memoryFolder{files: make(map[string]*bytes.Buffer)} }

// memoryFile is a file that is being written.
type memoryFile struct {
	folder *memoryFolder
	text   *bytes.Buffer
}

func (f memoryFile) Write(p []byte) (int, error) {
	f.folder.mu.Lock()
	defer f.folder.mu.Unlock()
	return f.text.Write(p)
}

func (memoryFile) Sync() error  { return nil }
func (memoryFile) Close() error { return nil }

func (m *memoryFolder) Create(name string) (statedir.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = new(bytes.Buffer)
	return memoryFile{m, m.files[name]}, nil
}

func (m *memoryFolder) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.files[name]; ok {
		return slices.Clone(f.Bytes()), nil
	}
	return nil, fs.ErrNotExist
}

func (m *memoryFolder) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.files[from]
	if !ok {
		return fs.ErrNotExist
	}
	delete(m.files, from)
	m.files[to] = f
	return nil
}

func (m *memoryFolder) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[name]; !ok {
		return fs.ErrNotExist
	}
	delete(m.files, name)
	return nil
}

func (m *memoryFolder) Names() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.files)), nil
}

func (*memoryFolder) Sync() error { return nil }

// entries returns how many entries of a journal there are, which stand beside what the GPUs had before.
func (m *memoryFolder) entries() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.files {
		if strings.HasSuffix(name, ".json") {
			n++
		}
	}
	return n
}

// hookRig is an agent's socket in memory: two GPUs, a controller that has all jobs at the lowest clock, and
// no process beside.
type hookRig struct {
	node     *AgentServer
	sims     []*gpu.Sim
	journal  *memoryFolder
	handler  http.Handler
	decision dvfsmodel.Setting
}

func newHookRig(tb testing.TB) *hookRig {
	tb.Helper()
	library, err := gpu.OpenSim("sim:2", config.BuiltinProfiles().Board, nil)
	if err != nil {
		tb.Fatal(err)
	}
	r := &hookRig{journal: newMemoryFolder()}
	if r.sims, err = library.Sims(); err != nil {
		tb.Fatal(err)
	}
	table, err := r.sims[0].Clocks()
	if err != nil {
		tb.Fatal(err)
	}
	cores := table.Core[0]
	r.decision = dvfsmodel.Setting{Core: cores[len(cores)-1]}
	outbox, err := spool.Open("spool", &spool.Options{FS: spooltest.New()})
	if err != nil {
		tb.Fatal(err)
	}
	r.node = NewAgentServer(Options{
		Node: "n1", Spool: outbox, Simulated: true, Access: &Access{}, Files: fstest.MapFS{},
		Controller: &ledger{decided: live.Decision{Mode: live.Enforce, Apply: true, Setting: r.decision}},
		Agent: agent.New(agent.Options{
			Journal: r.journal, Runs: newMemoryFolder(), Library: library, Boot: "boot",
		}),
	})
	r.node.Start(tb.Context())
	mux := http.NewServeMux()
	r.node.Routes(mux)
	r.handler = mux
	return r
}

// ask sends a request of a user.
func (r *hookRig) ask(tb testing.TB, uid int64, method, path, body string) *httptest.ResponseRecorder {
	tb.Helper()
	request := (&http.Request{
		Method: method, URL: &url.URL{Path: path}, Host: "epd", Header: make(http.Header),
		Body: io.NopCloser(strings.NewReader(body)),
	}).WithContext(context.WithValue(tb.Context(), peerKey{}, &peerConn{uid: uid}))
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, request)
	return w
}

// held returns what each GPU is locked at.
func (r *hookRig) held(tb testing.TB) (held []gpu.Value) {
	tb.Helper()
	for _, s := range r.sims {
		v, err := s.Held(gpu.CoreClock)
		if err != nil {
			tb.Fatal(err)
		}
		held = append(held, v)
	}
	return held
}

// told is what a hook is answered, or why not.
type told struct {
	Applied bool `json:"applied"`
	epdapi.ErrorAnswer
}

// Whatever hooks say, in whatever order: they get an answer in JSON, no GPU is locked but by a Prolog of
// root's that was answered so, on the GPUs that it names and at the clocks that were decided, never
// without an entry of the journal, and nothing stays locked once all is given back. A line of an input is a
// request: P a Prolog, E an Epilog, R a restore, S a status, and the same in lower case by another user.
func FuzzHooks(f *testing.F) {
	const prolog = `P{"v":1,"kind":"prolog","job_id":7,"node":"n1","gpus":[0],"gpus_known":true}`
	const epilog = `E{"v":1,"kind":"epilog","job_id":7,"node":"n1","gpus_known":false,"exit_code":1}`
	for _, seed := range []string{
		prolog, prolog + "\n" + epilog, prolog + "\nS\n" + prolog + "\n" + epilog + "\n" + epilog,
		prolog + "\nR{}\n" + epilog, prolog + "\nR{\"gpus\":[\"GPU-x\"]}", strings.ToLower(prolog), "s", "r{}",
		strings.Replace(prolog, "[0]", "[0,1]", 1) + "\n" + strings.Replace(prolog, "7", "8", 1),
		strings.Replace(prolog, "[0]", "[0,99]", 1), strings.Replace(prolog, "[0]", "[-1]", 1),
		strings.Replace(prolog, `"gpus":[0]`, `"gpus":[1],"gpu_uuids_hex":["4750552d78"]`, 1),
		strings.Replace(prolog, `"gpus":[0]`, `"mig_hex":["4d4947"],"gpus":[1]`, 1),
		strings.Replace(prolog, "true}", `true,"deadline_unix_ms":1}`, 1),
		strings.Replace(prolog, "true}", `true,"slurm_conf_hex":"2e2e2f2e2e"}`, 1),
		strings.Replace(prolog, "n1", "n2", 1), strings.Replace(epilog, "}", `,"end_unix_s":9e18}`, 1),
		"P", "P{}", "E{\"v\":1}", "Pnull", "P" + strings.Repeat("[", 10_000), "R[]", `R{"gpu":1}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		lines := strings.Split(input, "\n")
		rig := newHookRig(t)
		for _, line := range lines[:min(len(lines), 8)] {
			if line != "" {
				rig.play(t, line)
			}
		}
		w := rig.ask(t, 0, http.MethodPost, epdapi.PathRestore, "{}")
		if held := rig.held(t); w.Code != http.StatusOK || held[0] != 0 || held[1] != 0 ||
			rig.journal.entries() > 0 {
			t.Fatalf("at the end: %s, locked at %v, journal %v", w.Body, held, rig.journal.files)
		}
	})
}

// play sends one request and checks what comes of it.
func (r *hookRig) play(t *testing.T, line string) {
	t.Helper()
	before := r.held(t)
	uid, kind, body := int64(0), strings.ToUpper(line[:1]), line[1:]
	if kind != line[:1] {
		uid = 1 << 31 // nobody's
	}
	method, path := http.MethodPost, map[string]string{
		"P": epdapi.PathProlog, "E": epdapi.PathEpilog, "R": epdapi.PathRestore, "S": epdapi.PathStatus,
	}[kind]
	if kind == "S" {
		method = http.MethodGet
	}
	w := r.ask(t, uid, method, path, body)
	after := r.held(t)
	if path == "" {
		return
	}
	var answer told
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK &&
		w.Code != http.StatusBadRequest && w.Code != http.StatusForbidden || uid != 0 && w.Code !=
		http.StatusForbidden || (w.Code == http.StatusOK) != (answer.Error == "") {
		t.Fatalf("%s: status %d: %s, %v", line, w.Code, w.Body, err)
	}
	var said struct {
		GPUs  []int    `json:"gpus"`
		UUIDs []string `json:"gpu_uuids_hex"`
	}
	_ = json.Unmarshal([]byte(body), &said) // what isn't JSON has no GPUs
	for i := range after {
		switch {
		case after[i] != 0 && (after[i] != gpu.Value(r.decision.Core) ||
			r.journal.files[r.sims[i].Identity().UUID+".json"] == nil):
			t.Fatalf("%s: GPU %d is locked at %v, journal %v", line, i, after[i], r.journal.files)
		case after[i] == before[i], after[i] == 0:
		case kind != "P" || !answer.Applied || len(said.UUIDs) == 0 && !slices.Contains(said.GPUs, i):
			t.Fatalf("%s: GPU %d is locked at %v, answer %s", line, i, after[i], w.Body)
		}
	}
}
