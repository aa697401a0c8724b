package livetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// askerVariable has this program ask a socket, as somebody else.
const askerVariable = "EPPLAN_LIVE_ASK"

// question is what is asked of a socket.
type question struct{ Socket, Address, Method, Path, Body string }

// ask puts a question and prints what comes back: the status, or "refused".
func ask(text string) {
	var q question
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		fmt.Println(err) //nolint:forbidigo // the parent reads it
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if q.Address != "" {
				return new(net.Dialer).DialContext(ctx, "tcp", q.Address)
			}
			return new(net.Dialer).DialContext(ctx, "unix", q.Socket)
		}},
	}
	request, err := http.NewRequestWithContext(ctx, q.Method, "http://epd"+q.Path, strings.NewReader(q.Body))
	if err != nil {
		fmt.Println(err) //nolint:forbidigo // the parent reads it
		return
	}
	response, err := client.Do(request)
	if err != nil {
		fmt.Println("refused") //nolint:forbidigo // the parent reads it
		return
	}
	defer response.Body.Close() //nolint:errcheck // the program ends
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	fmt.Println(response.StatusCode, strings.TrimSpace(string(body))) //nolint:forbidigo // the parent reads it
}

// asked puts a question as a user.
func (l *lab) asked(uid uint32, q *question) string {
	l.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		l.Fatal(err)
	}
	cmd := exec.CommandContext(l.Context(), filepath.Join(l.dir, "asker"))
	cmd.Env = []string{askerVariable + "=" + string(text)}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("ask as %d: %v\n%s", uid, err, out)
	}
	return strings.TrimSpace(string(out))
}

// installAsker puts a copy of this program where anybody can run it.
func (l *lab) installAsker() {
	l.Helper()
	self, err := os.Executable()
	if err != nil {
		l.Fatal(err)
	}
	text, err := os.Open(self)
	if err != nil {
		l.Fatal(err)
	}
	defer text.Close() //nolint:errcheck // only read
	l.writeProgram(filepath.Join(l.dir, "asker"), text, 0o755)
}

// nobody is a user who may run jobs and nothing else.
const nobody = 65534

func TestASocketRefusesEverybodyWhomItDoesntServe(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	l.installAsker()
	job := l.lock("n1", 1)

	paths := everyPath(job)
	for _, q := range paths {
		q.Socket = l.socket("n1")
		if got := l.asked(nobody, &q); got != "refused" {
			t.Errorf("%s %s by nobody: %s", q.Method, q.Path, got)
		}
	}
	l.openButClosed(l.socket("n1"), paths)
	q := question{Socket: l.socket("n1"), Method: http.MethodGet, Path: epdapi.PathStatus}
	if got := l.asked(0, &q); !strings.HasPrefix(got, "200 ") {
		t.Errorf("status by root: %s", got)
	}
	l.usersSee(job, paths)
	told := strings.Count(l.read("n1.log"), "by uid 65534")
	if told < len(paths)/2 {
		t.Errorf("%d refusals of nobody's are in the log", told)
	}
	l.usersSee(job, everyPath(job))
	if again := strings.Count(l.read("n1.log"), "by uid 65534") - told; again != 0 {
		t.Errorf("what is refused again is in the log %d times more", again)
	}
	if got := l.hardware("n1"); len(got) != 1 {
		t.Errorf("locked %v, want what was locked before", got)
	}
	l.slurm("scancel", name(job))
	l.ends(job, "CANCELLED")
	l.free("n1")
	l.undrained()
}

func TestTheSocketsOfAControllerAndItsAgentsRefuseOthers(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{config: enforce, roles: true})
	l.installAsker()
	paths := everyPath(1)
	l.openButClosed(l.socket("n1"), paths)
	l.openButClosed(l.socket(controller), paths)
	// Without munge's word nobody is anybody.
	for _, q := range paths {
		q.Address = "127.0.0.1:" + strconv.Itoa(l.port)
		for _, uid := range []uint32{0, nobody} {
			if got := l.asked(uid, &q); !strings.HasPrefix(got, "401 ") && !strings.HasPrefix(got, "403 ") {
				t.Errorf("%s %s at the port, as %d without a credential: %s", q.Method, q.Path, uid, got)
			}
		}
	}
	job := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", fixed)
	l.ends(job, "COMPLETED")
	l.recovered("n1", job)
}

// openButClosed checks that a socket whose file anybody may open refuses nobody:
// the kernel says who asks.
func (l *lab) openButClosed(socket string, paths []question) {
	l.Helper()
	if err := os.Chmod(socket, 0o666); err != nil {
		l.Fatal(err)
	}
	for _, q := range paths {
		q.Socket = socket
		if got := l.asked(nobody, &q); !strings.HasPrefix(got, "403 ") {
			l.Errorf("%s %s by nobody, at %s, which is open: %s", q.Method, q.Path,
				filepath.Base(socket), got)
		}
	}
}

// everyPath asks for everything that an epd does.
func everyPath(job int64) []question {
	event := fmt.Sprintf(`{"v":1,"event":"epilog","job":%d,"node":"n1"}`, job)
	return []question{
		{Method: http.MethodPost, Path: epdapi.PathProlog, Body: event},
		{Method: http.MethodPost, Path: epdapi.PathEpilog, Body: event},
		{Method: http.MethodPost, Path: epdapi.PathRestore, Body: "{}"},
		{Method: http.MethodGet, Path: epdapi.PathStatus},
		{Method: http.MethodGet, Path: "/v1/jobs"},
		{Method: http.MethodGet, Path: fmt.Sprintf("/v1/jobs/%d", job)},
		{Method: http.MethodGet, Path: "/v1/models"},
		{Method: http.MethodGet, Path: "/v1/savings"},
		{Method: http.MethodPost, Path: "/v1/decide", Body: "{}"},
		{Method: http.MethodPost, Path: "/v1/outcome", Body: "{}"},
		{Method: http.MethodPost, Path: "/v1/outlook", Body: "{}"},
		{Method: http.MethodPost, Path: "/v1/models/use", Body: "{}"},
		{Method: http.MethodPost, Path: "/v1/reload", Body: "{}"},
		{Method: http.MethodGet, Path: "/metrics"},
		{Method: http.MethodGet, Path: "/"},
		{Method: http.MethodGet, Path: "/v1/queue"},
		{
			Method: http.MethodPost, Path: epdapi.PathHistory,
			Body: `{"jobs":[{"job_id":"1","submitted":"2026-01-01T00:00:00Z","state":"COMPLETED"}]}`,
		},
		{Method: http.MethodGet, Path: epdapi.PathHistory + "?after_id=1"},
		{Method: http.MethodGet, Path: "/v1/../v1/status"},
		{Method: http.MethodGet, Path: fmt.Sprintf("/v1/jobs/%d/series", job)},
		{Method: http.MethodGet, Path: "/v1/overview"},
		{Method: http.MethodGet, Path: "/v1/decisions"},
		{Method: http.MethodGet, Path: "/v1/nodes"},
		{Method: http.MethodGet, Path: "/v1/models/fit?workload=w&gpu_model=V100"},
		{Method: http.MethodGet, Path: epdapi.PathProfiles},
		{Method: http.MethodPost, Path: "/v1/report", Body: "{}"},
		{Method: http.MethodGet, Path: fmt.Sprintf("/jobs/%d", job)},
		{Method: http.MethodGet, Path: "/queue"},
		{Method: http.MethodGet, Path: "/workloads"},
		{Method: http.MethodGet, Path: "/admin"},
		{Method: http.MethodPost, Path: "/admin/levers", Body: "{}"},
		{Method: http.MethodPost, Path: "/admin/reload", Body: "{}"},
	}
}

// usersSee checks the socket that is open to everybody: job_submit asks there,
// and users are told of their own jobs.
func (l *lab) usersSee(job int64, paths []question) {
	l.Helper()
	const other = 65533
	socket := filepath.Join(l.dir, "submit.sock")
	may := make(map[string]bool)
	for _, path := range []string{
		epdapi.PathStatus, "/v1/../v1/status", "/v1/jobs", fmt.Sprintf("/v1/jobs/%d", job),
		fmt.Sprintf("/v1/jobs/%d/series", job), "/v1/savings",
		"/v1/queue", epdapi.PathHistory + "?after_id=1", "/v1/overview", "/v1/decisions", "/v1/nodes", "/",
		fmt.Sprintf("/jobs/%d", job), "/queue",
	} {
		may[path] = true
	}
	for _, q := range append(paths,
		question{Method: http.MethodPost, Path: epdapi.PathSubmit, Body: `{"v":1,"uid":0}`}) {
		q.Socket = socket
		got := l.asked(nobody, &q)
		if refused := strings.HasPrefix(got, "403 ") ||
			strings.HasPrefix(got, "404 "); refused == may[q.Path] ||
			!refused && !strings.HasPrefix(got, "200 ") {
			l.Errorf("%s %s by nobody, at the socket of job_submit: %s", q.Method, q.Path, got)
		}
	}
	mine, theirs := question{Socket: socket, Method: http.MethodGet, Path: "/v1/jobs"}, question{
		Socket: socket, Method: http.MethodGet, Path: fmt.Sprintf("/v1/jobs/%d", job),
	}
	if got := l.asked(other, &mine); !strings.Contains(got, `"jobs":[]`) {
		l.Errorf("jobs of somebody who has none: %s", got)
	}
	if got := l.asked(other, &theirs); !strings.HasPrefix(got, "404 ") {
		l.Errorf("somebody else's job: %s", got)
	}
}
