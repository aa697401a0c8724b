package daemon

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/spooltest"
)

// desk is a controller with its records.
type desk struct {
	t       *testing.T
	tape    *tape
	path    string // of its database
	store   *store.Store
	control *control.Controller
	handler http.Handler
	full    bool // one outcome doesn't fit on its disk
	// commits are where the transactions of outcomes begin and end in the database's log.
	commits [][2]int64
}

// newDesk makes a controller of a process on a database.
func newDesk(t *testing.T, path string, of *tape) *desk {
	t.Helper()
	o := &desk{t: t, tape: of, path: path}
	var err error
	if o.store, err = store.Open(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	settings := control.DefaultSettings()
	settings.Live.Mode = "enforce"
	mortal := mortalRecords{o.store, o}
	records := control.RecordsIn(o.store)
	records.Runs, records.Decisions = mortal, mortal
	o.control, err = control.New(t.Context(), control.Options{
		Records: records, Cluster: "alpha", Settings: settings, StoreWait: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	o.handler = o.control.Handler()
	return o
}

// close closes what the process, dead or not, had open. The dead finish nothing.
func (o *desk) close() {
	o.t.Helper()
	at, cancel := context.WithCancel(context.Background())
	cancel()
	_ = o.control.Close(at)
	if err := o.store.Close(); err != nil {
		o.t.Error(err)
	}
}

// logSize returns how long the database's log is.
func (o *desk) logSize() int64 {
	info, err := os.Stat(o.path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// frame is what one page takes in the log.
const frame = 24 + 4096

// restarted returns the desk after its process was killed: on what the files were then. With torn, the
// transaction of the last outcome is in the log up to half a page, or lacks a page: nobody was told of it.
// With a negative one, the process was taking over what is in the log into the database, so many half pages
// of it; ok: there are as many.
func (o *desk) restarted(torn int) (next *desk, ok bool) {
	o.t.Helper()
	data, log := o.files()
	path := filepath.Join(filepath.Dir(o.path), strconv.Itoa(len(o.path))+filepath.Base(o.path))
	ok = true
	switch {
	case torn > 0:
		log = o.tear(log, torn)
	case torn < 0:
		o.write(path+".whole", data, log)
		data, ok = partly(data, o.emptied(path+".whole"), -torn)
	}
	o.close()
	o.write(path, data, log)
	if found, err := store.Check(o.t.Context(), path); err != nil || len(found) > 0 {
		o.t.Errorf("the database after a kill: %q, %v", found, err)
	}
	// What is torn may be several transactions, of whoever wrote at the same time.
	if lost, err := store.SalvageLog(path, time.Now()); err != nil || lost != "" && torn <= 0 {
		o.t.Errorf("its log after a kill is taken for a damaged one: %q, %v", lost, err)
	}
	return newDesk(o.t, path, &tape{disk: spooltest.New()}), ok
}

// files returns the database and its log as they are at one moment: others may write meanwhile, and take over
// into the database what a log has that was read before.
func (o *desk) files() (data, log []byte) {
	o.t.Helper()
	for {
		log, data = o.read("-wal"), o.read("")
		if bytes.Equal(log, o.read("-wal")) {
			return data, log
		}
	}
}

// write writes a database with its log.
func (o *desk) write(path string, data, log []byte) {
	o.t.Helper()
	for ending, text := range map[string][]byte{"": data, "-wal": log} {
		if err := os.WriteFile(path+ending, text, 0o600); err != nil {
			o.t.Fatal(err)
		}
	}
}

// emptied returns a database once it took over all of its log.
func (o *desk) emptied(path string) []byte {
	o.t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		o.t.Fatal(err)
	}
	_, err = db.ExecContext(o.t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := errors.Join(err, db.Close()); err != nil {
		o.t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		o.t.Fatal(err)
	}
	return data
}

// read returns one of the database's files.
func (o *desk) read(ending string) []byte {
	o.t.Helper()
	data, err := os.ReadFile(o.path + ending)
	if err != nil && (ending == "" || !errors.Is(err, os.ErrNotExist)) {
		o.t.Fatal(err)
	}
	return data
}

// partly returns a file with the first so many of the half pages that another state of it has otherwise;
// false: there are fewer.
func partly(from, to []byte, halves int) ([]byte, bool) {
	const half = 4096 / 2
	for at := 0; at < len(to) && halves > 0; at += half {
		if at < len(from) && bytes.Equal(from[at:at+half], to[at:at+half]) {
			continue
		}
		if at >= len(from) {
			from = append(from, make([]byte, half)...)
		}
		copy(from[at:], to[at:at+half])
		halves--
	}
	return from, halves == 0
}

// tears is in how many ways the log of one transaction can be torn.
func tears(commit [2]int64) int { return 3 * int((commit[1]-commit[0])/frame) }

// tear cuts the last transaction off the log after so many half pages, or empties one of its pages.
func (o *desk) tear(log []byte, torn int) []byte {
	last := o.commits[len(o.commits)-1]
	if half := last[0] + int64(torn-1)*frame/2; half < last[1] {
		return log[:half]
	}
	hole := min(last[0]+int64(torn-1)*frame-2*(last[1]-last[0]), last[1]-frame)
	clear(log[hole : hole+frame])
	return log
}

// errBroken tells that a connection ended.
var errBroken = errors.New("connection reset by peer")

// answer returns what comes back of a request: nothing, where the process died before it said anything; half,
// where it died while it did.
func (o *desk) answer(r *http.Request, body []byte) (*http.Response, error) {
	if err := o.tape.outside("arrive", nothing); err != nil {
		return nil, errBroken
	}
	w := httptest.NewRecorder()
	as := query.WithCaller(r.Context(), query.Caller{Admin: true})
	asked := httptest.NewRequestWithContext(as, r.Method, r.URL.String(), bytes.NewReader(body))
	asked.Header = r.Header
	o.handler.ServeHTTP(w, asked)
	if err := o.tape.outside("answer", nothing); err != nil {
		return nil, errBroken
	}
	answer := w.Result()
	if o.tape.outside("rest of the answer", nothing) != nil {
		halve(answer)
	}
	return answer, nil
}

func nothing() error { return nil }

// halve has half of an answer come.
func halve(r *http.Response) {
	text, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text[:len(text)/2]), brokenReader{}))
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// trouble is what the network, or the controller, does to one request.
type trouble int

const (
	lineWell trouble = iota
	lineRefused
	lineHalfRequest
	lineUnanswered
	lineHalfAnswer
	lineTwice
	lineBusy
	lineTooEarly
	lineGarbled
	deskFull // its disk
	numTroubles
)

// line is the network between a node's process and its controller.
type line struct {
	node    *tape
	machine *machine
}

// RoundTrip is part of [http.RoundTripper].
func (l line) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	err = l.node.outside("send", func() error {
		answer, err = l.pass(r, body) //nolint:bodyclose // whoever asked closes it
		return err
	})
	return answer, err
}

// pass carries a request and its answer as the trouble of the moment lets it.
func (l line) pass(r *http.Request, body []byte) (*http.Response, error) {
	m := l.machine
	m.requests++
	if m.requests != m.troubled {
		return m.desk.answer(r, body)
	}
	switch m.trouble {
	case lineRefused:
		return nil, errBroken
	case lineHalfRequest:
		_, _ = m.desk.answer(r, body[:len(body)/2])
		return nil, errBroken
	case lineUnanswered:
		_, _ = m.desk.answer(r, body)
		return nil, errBroken
	case lineBusy, lineTooEarly, lineGarbled:
		w := httptest.NewRecorder()
		w.WriteHeader(map[trouble]int{
			lineBusy: http.StatusServiceUnavailable, lineTooEarly: http.StatusTooEarly, lineGarbled: http.StatusOK,
		}[m.trouble])
		_, _ = w.WriteString("\x00{")
		return w.Result(), nil
	case lineTwice:
		_, _ = m.desk.answer(r, body)
	case deskFull:
		m.desk.full = true
	case lineWell, lineHalfAnswer, numTroubles:
	}
	answer, err := m.desk.answer(r, body)
	if err == nil && m.trouble == lineHalfAnswer {
		halve(answer)
	}
	return answer, err
}

// mortalRecords are those of a process that may die before a commit.
type mortalRecords struct {
	*store.Store
	desk *desk
}

func (r mortalRecords) PutOutcome(ctx context.Context, o *record.Outcome) (receipt store.Receipt, err error) {
	err = r.desk.tape.outside("commit", func() error {
		if r.desk.full {
			r.desk.full = false
			return store.ErrFull
		}
		before := r.desk.logSize()
		receipt, err = r.Store.PutOutcome(ctx, o)
		r.desk.commits = append(r.desk.commits, [2]int64{before, r.desk.logSize()})
		return err
	})
	return receipt, err
}

func (r mortalRecords) PutDecision(ctx context.Context, d *record.Decision) (int64, error) {
	if r.desk.tape.dead() {
		return 0, store.ErrClosed
	}
	return r.Store.PutDecision(ctx, d)
}
