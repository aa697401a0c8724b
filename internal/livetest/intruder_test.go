package livetest_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	vouch "github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/testkit/mungetest"
)

// intruder is root of the machine apart, who has munge's key.
type intruder struct {
	*lab
	key     []byte
	metrics string // where the controller's are
}

// request is what an intruder sends. Zero values are those of an agent's.
type request struct {
	from         string // an address of the machine; the node's own
	method, path string // POST
	body         string
	uid          uint32
	made         time.Time // its credential; now
	key          []byte    // of the credential; munge's
	claims       string    // the statement that it vouches for; that of this request
	header       map[string]string
	credentials  int // 1; negative: none
}

// statement returns what a credential has to say of a request.
func (q *request) statement() string {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // never fails
	return fmt.Sprintf("epplan/1 request %x %s %x %x", nonce, q.method, sha256.Sum256([]byte(q.path)),
		sha256.Sum256([]byte(q.body)))
}

// complete fills in what isn't said.
func (n *intruder) complete(q request) request {
	if q.from == "" {
		q.from = n.machine.addrs[0]
	}
	if q.method == "" {
		q.method = http.MethodPost
	}
	if q.made.IsZero() {
		q.made = time.Now()
	}
	if q.key == nil {
		q.key = n.key
	}
	if q.claims == "" {
		q.claims = q.statement()
	}
	if q.credentials == 0 {
		q.credentials = 1
	}
	return q
}

// text returns a request as it goes over the wire.
func (q *request) text() []byte {
	var b bytes.Buffer
	_, _ = fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: epd\r\n", q.method, q.path)
	length := strconv.Itoa(len(q.body))
	for name, value := range q.header {
		if name == "Content-Length" {
			length = value
			continue
		}
		_, _ = fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	credential := mungetest.Mint(q.key, mungetest.Credential{
		UID: q.uid, GID: q.uid, Encoded: q.made, TTL: time.Minute, Payload: []byte(q.claims),
	})
	for range q.credentials {
		_, _ = fmt.Fprintf(&b, "%s: %s\r\n", vouch.Header, credential)
	}
	_, _ = fmt.Fprintf(&b, "Content-Length: %s\r\n\r\n%s", length, q.body)
	return b.Bytes()
}

// connect connects to the controller's port.
func (n *intruder) connect(from string, root bool) net.Conn {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), patience)
	defer cancel()
	c, err := n.machine.dial(ctx, from, n.controllerAt(), root)
	if err != nil {
		n.Fatal(err)
	}
	return c
}

// send sends a request and returns the answer; 0: there was none.
func (n *intruder) send(q request) (status int, body string) {
	n.Helper()
	q = n.complete(q)
	return n.sendText(q.from, q.method, q.text())
}

func (n *intruder) sendText(from, method string, text []byte) (status int, body string) {
	n.Helper()
	c := n.connect(from, true)
	defer c.Close() //nolint:errcheck // nothing was buffered
	_ = c.SetDeadline(time.Now().Add(patience))
	_, wrote := c.Write(text)
	response, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		n.Logf("no answer: %v, %v", wrote, err)
		return 0, ""
	}
	defer response.Body.Close() //nolint:errcheck // read
	said, err := io.ReadAll(response.Body)
	if err != nil {
		n.Logf("the answer ends early: %v", err)
	}
	return response.StatusCode, string(said)
}

// counted returns what the controller's metrics count of what went wrong, by kind.
func (n *intruder) counted() map[string]int {
	n.Helper()
	response, err := http.Get("http://" + n.metrics + "/metrics") //nolint:noctx // a server of the test
	if err != nil {
		n.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		n.Fatal(err)
	}
	counts := make(map[string]int)
	for _, m := range errorLine.FindAllStringSubmatch(string(text), -1) {
		value, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			n.Fatal(err)
		}
		counts[m[1]] = int(value)
	}
	return counts
}

var errorLine = regexp.MustCompile(`(?m)^epplan_errors_total\{kind="([^"]*)"\} (\S+)$`)

// more returns the kinds of which there are more now.
func more(before, now map[string]int) string {
	var kinds []string
	for kind, count := range now {
		if count > before[kind] {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}

// wrongHTTP sends what is no proper request, and returns how many that were.
func (n *intruder) wrongHTTP() int {
	n.Helper()
	report := n.complete(request{path: "/v1/report", body: report("n2", "")})
	with := func(name, value string) []byte {
		const host = "Host: epd\r\n"
		return []byte(strings.Replace(string(report.text()), host, host+name+": "+value+"\r\n", 1))
	}
	tries := map[string]struct {
		text []byte
		want int
	}{
		"a header of 64 KiB":           {with("X", strings.Repeat("x", 64<<10)), 431},
		"two lengths":                  {with("Content-Length", "7"), 400},
		"a header of two lines":        {with("X", "a\rb: c"), 400},
		"no HTTP":                      {[]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"), 400},
		"a path that splits an answer": {[]byte("GET /v1/jobs/1\r\nX: y HTTP/1.1\r\nHost: epd\r\n\r\n"), 400},
	}
	for what, try := range tries {
		if got, body := n.sendText(n.machine.addrs[0], http.MethodPost, try.text); got != 0 && got != try.want ||
			strings.Contains(body, "\r") {
			n.Errorf("%s: %d %q, want %d", what, got, body, try.want)
		}
	}
	// What comes back of a path is no header.
	q := n.complete(request{method: http.MethodGet, path: "/v1/jobs/1%0d%0aSet-Cookie:%20a=b"})
	got, body := n.send(q)
	if got != http.StatusBadRequest || strings.ContainsAny(strings.TrimSpace(body), "\r\n") {
		n.Errorf("a path with lines: %d %q", got, body)
	}
	return len(tries) + 1
}

// slow sends bodies that don't come.
func (n *intruder) slow() int {
	n.Helper()
	const many = 20
	before := n.counted()
	var all sync.WaitGroup
	var answered atomic.Int64
	for range many {
		all.Go(func() {
			q := n.complete(request{path: "/v1/report", body: report("n2", "")})
			q.header = map[string]string{"Content-Length": strconv.Itoa(len(q.body) + 1000)}
			switch got, body := n.sendText(q.from, q.method, q.text()); got {
			case http.StatusRequestTimeout:
				answered.Add(1)
			case 0, http.StatusServiceUnavailable: // the machine is busy
			default:
				n.Errorf("a body that doesn't come: %d %s", got, body)
			}
		})
	}
	all.Wait()
	got := n.counted()["refused-request"] - before["refused-request"]
	if want := int(answered.Load()); want == 0 || got < want {
		n.Errorf("%d bodies that don't come are counted, %d are refused", got, want)
	}
	return 1
}

// replay sends one request twice.
func (n *intruder) replay() int {
	n.Helper()
	q := n.complete(request{path: "/v1/report", body: report("n2", "")})
	text := q.text()
	first, _ := n.sendText(q.from, q.method, text)
	again, body := n.sendText(q.from, q.method, text)
	if first != http.StatusOK || again != http.StatusUnauthorized {
		n.Errorf("a request that is sent again: %d, %d %s", first, again, body)
	}
	return 1
}

// flood sends outcomes of jobs that never were.
func (n *intruder) flood() int {
	n.Helper()
	const many = 200
	log, before, taken := len(n.said()), n.counted(), 0
	for i := range many {
		status, body := n.send(request{
			path: "/v1/outcome",
			body: outcome("n2", int64(100_000+i), fmt.Sprintf("flood-%d", i), `,"time_s":1,"gpu_energy_j":100`),
		})
		switch status {
		case http.StatusOK:
			taken++
		case 0, http.StatusTooEarly, http.StatusServiceUnavailable: // the machine is busy
		default:
			n.Errorf("an outcome of no job: %d %s", status, body)
		}
	}
	if next := n.said()[log:]; len(next) > 1 {
		n.Errorf("%d lines in the log of %d outcomes: %q", len(next), many, next[:2])
	}
	if got := n.counted()["outcome-elsewhere"] - before["outcome-elsewhere"]; taken == 0 || got < taken {
		n.Errorf("%d outcomes of jobs that never were are counted, %d were taken", got, taken)
	}
	if got := n.rows("SELECT run_id FROM outcomes WHERE run_id LIKE 'flood-%' AND NOT unmatched"); got != "" {
		n.Errorf("outcomes of jobs that never were count:\n%s", got)
	}
	return 1
}

// crowd takes as many places at the controller's port as there are, while a job starts on another node.
func (n *intruder) crowd() {
	n.Helper()
	before := n.counted()
	ctx, cancel := context.WithCancel(n.Context())
	var all sync.WaitGroup
	const each = 160 // more than one address may have
	for half := range 2 {
		all.Go(func() {
			for i := half; ctx.Err() == nil; i += 2 {
				var open []net.Conn
				for range each {
					c, err := n.machine.dial(ctx, n.machine.addrs[i%26], n.controllerAt(), false)
					if err != nil {
						break
					}
					_, _ = io.WriteString(c, "POST /v1/decide HTTP/1.1\r\nHost: epd\r\n")
					open = append(open, c)
				}
				for _, c := range open {
					_ = c.Close()
				}
			}
		})
	}
	n.eventually("all places of an address are taken", func() bool {
		now := n.counted()
		return strings.Contains(more(before, now), "-connection")
	})
	job := n.lock("n1", 1)
	cancel()
	all.Wait()
	n.completes(job)
}

// texts reports hostile texts, which people are shown as text.
func (n *intruder) texts() {
	n.Helper()
	n.stopEPD("n2", os.Interrupt)
	n.installAsker()
	texts := append(hostileTexts("/tmp/canary"), "<script>alert(1)</script>",
		"</title><img src=x onerror=alert(1)>", "=cmd|' /C calc'!A0")
	for _, text := range texts {
		quoted, err := json.Marshal(strings.ToValidUTF8(text[:min(len(text), 150)], "?"))
		if err != nil {
			n.Fatal(err)
		}
		more := strings.ReplaceAll(`,"version":T,"gpus":[{"uuid":T,"bus":T,"model":T,"external_change":T,`+
			`"refused":T,"read":true}],"runs":[{"id":T,"job":1,"gpus":[T],"partition":T,"hands_off":T}],`+
			`"troubles":[{"message":T}]`, "T", string(quoted))
		if status, body := n.send(request{path: "/v1/report", body: report("n2", more)}); status != http.StatusOK {
			n.Logf("a report with %.40q: %d %s", text, status, body)
			continue
		}
		for _, path := range []string{"/nodes", "/nodes/n2", "/", "/admin"} {
			page := n.asked(0, &question{Socket: n.socket(controller), Method: http.MethodGet, Path: path})
			if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") ||
				strings.ContainsAny(page, "\x1b\x07\u202e\x00") {
				n.Errorf("%s shows a report with %q as it is", path, text)
			}
		}
		for _, command := range [][]string{{"status"}, {"jobs"}} {
			out, _ := exec.CommandContext(n.Context(), filepath.Join(n.bin, "epplan"), append(command, "--socket",
				n.socket(controller))...).CombinedOutput()
			for line := range strings.Lines(string(out)) {
				if !plain(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", " ")) {
					n.Errorf("epplan %q shows a report with %q as %q", command, text, line)
				}
			}
		}
	}
}
