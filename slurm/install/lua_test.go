package install_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/install"
)

// luaProgram runs a Lua program that finds epplan.lua beside it, after a
// stand-in for slurmctld's slurm table.
func luaProgram(t *testing.T, module, text string) string {
	t.Helper()
	lua, err := exec.LookPath("lua5.1")
	shareddata.Need(t, err == nil, "lua5.1 isn't installed: run scripts/test-packages.sh")
	err = exec.CommandContext(t.Context(), lua, "-e", `require "socket.unix"`).Run()
	shareddata.Need(t, err == nil, "lua-socket isn't installed: run scripts/test-packages.sh")
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "epplan.lua"), module)
	//nolint:lll // a program
	writeFile(t, filepath.Join(dir, "main.lua"), `
slurm = { NO_VAL = 4294967294, SUCCESS = 0, log_info = function(f, ...) print("log", string.format(f, ...)) end, log_user = function(f, ...) print("user", string.format(f, ...)) end }
local s = require "socket"
MODULE = "`+dir+`/epplan.lua"
function submit(jd) return pcall(function() EPPLAN = EPPLAN or dofile(MODULE); EPPLAN.submit(jd, 1000) end) end
`+text)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, lua, filepath.Join(dir, "main.lua")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// unhurried gives whom the module asks the time of a machine that is busy with tests.
func unhurried(t *testing.T, module string) string {
	t.Helper()
	return waiting(t, module, "5")
}

// waiting gives whom the module asks another time, in seconds.
func waiting(t *testing.T, module, deadline string) string {
	t.Helper()
	const usual = "DEADLINE  = 0.015"
	if strings.Contains(module, "DEADLINE") && !strings.Contains(module, usual) {
		t.Fatalf("no line %q, by which tests give more time", usual)
	}
	return strings.ReplaceAll(module, usual, "DEADLINE  = "+deadline)
}

func luaModule(t *testing.T, socket, program string) string {
	t.Helper()
	module, err := install.LuaModule("/etc/slurm", socket, program)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// luaRun submits twice and prints what came of it. Whoever is asked has a second, so
// that it is asked on a machine that is busy with tests, too.
func luaRun(t *testing.T, socket, prelude string) string {
	t.Helper()
	//nolint:lll // a program
	return luaProgram(t, waiting(t, luaModule(t, socket, ""), "1"), prelude+`
for i = 1, 2 do
  local jd = { name = "a\n\"\255\0b", comment = "epplan:off", admin_comment = "site", script = "#!/bin/sh\n", time_limit = 90, tres_per_node = "gres:gpu:1", priority = 4294967294 }
  local t = s.gettime()
  local ok, err = submit(jd)
  print(i, tostring(jd.admin_comment), s.gettime() - t < 4 and "bounded" or "slow", err)
end`)
}

// serve answers on a Unix socket and counts the requests.
func serve(t *testing.T, handler http.HandlerFunc) (string, func() int) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "epl") //nolint:usetesting // socket paths are short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	server := &http.Server{
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			n++
			mu.Unlock()
			handler(w, r)
		}),
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-done; _ = os.RemoveAll(dir) })
	return socket, func() int { mu.Lock(); defer mu.Unlock(); return n }
}

func TestTheLuaHookCarriesAnyBytesAndSetsTheToken(t *testing.T) {
	var got hooks.Submission
	var failed error
	socket, count := serve(t, func(w http.ResponseWriter, r *http.Request) {
		s, err := hooks.DecodeSubmission(r.Body)
		got, failed = s, err
		merged, _ := slurm.MergeToken(string(s.Admin), "ab12")
		_, _ = fmt.Fprintf(w, `{"v":1,"admin_comment_hex":"%s","message_hex":"%s"}`,
			hex.EncodeToString([]byte(merged)), hex.EncodeToString([]byte("hello\nyou")))
	})
	out := luaRun(t, socket, "")
	if failed != nil || got.Name != "a\n\"\xff\x00b" || got.UID != 1000 || got.Kind != "batch" ||
		got.TimeLimit != 90 || !got.WantsGPU() || got.Comment != "epplan:off" || got.Held ||
		got.Script != "#!/bin/sh\n" {
		t.Errorf("%+v, %v", got, failed)
	}
	if strings.Count(out, "site;epplan:ab12\tbounded") != 2 || !strings.Contains(out, "user\thello you") ||
		count() != 2 {
		t.Errorf("%d requests: %s", count(), out)
	}
}

// TestTheLuaHookPutsAJobBehindOthersWhereItsUserGaveItNoNice, and only together with the word that says so.
func TestTheLuaHookPutsAJobBehindOthersWhereItsUserGaveItNoNice(t *testing.T) {
	for _, c := range []struct{ own, offset, answer, want string }{
		{"nil", "2147483648", `"nice":30`, "2147483678"},
		{"4294967294", "2147483648", `"nice":30`, "2147483678"},
		{"2147483648", "2147483648", `"nice":30`, "2147483648"}, // --nice=0 is a user's word
		{"2147483650", "2147483648", `"nice":30`, "2147483650"},
		{"nil", "nil", `"nice":30`, "nil"},
		{"nil", "2147483648", `"nice":0`, "nil"},
		{"nil", "2147483648", `"nice":-30`, "nil"},
		{"nil", "2147483648", `"nice":1048577`, "nil"},
		{"nil", "2147483648", `"nice":"30"`, "nil"},
		{"nil", "2147483648", `"other":30`, "nil"},
	} {
		for word, kept := range map[string]bool{"site;epplan:ab12-nice30": true, "epplan:ab12-nice30": false} {
			var asked hooks.Submission
			socket, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if s, err := hooks.DecodeSubmission(r.Body); err != nil {
					t.Error(err)
				} else {
					asked = s
				}
				_, _ = fmt.Fprintf(w, `{"v":1,"admin_comment_hex":"%s",%s}`, hex.EncodeToString([]byte(word)), c.answer)
			})
			out := luaProgram(t, waiting(t, luaModule(t, socket, ""), "1"), `
slurm.NICE_OFFSET = `+c.offset+`
local jd = { name = "a", admin_comment = "site", tres_per_node = "gres:gpu:1", nice = `+c.own+` }
submit(jd)
print("nice", jd.nice and string.format("%.0f", jd.nice) or "nil")`)
			want := c.want
			if !kept { // what others wrote would be lost: nothing is set
				want = c.own
			}
			if !strings.Contains(out, "nice\t"+want+"\n") {
				t.Errorf("%+v, word %q: %s, want %s", c, word, out, want)
			}
			if own := c.own != "nil" && c.own != "4294967294"; asked.OwnNice != own {
				t.Errorf("%+v: says that its user gave it a nice: %v", c, asked.OwnNice)
			}
		}
	}
}

// TestTheLuaHookPutsAJobOffWhoseUserSaidNothingOfIt, for a time that is to come and not too far, and only
// together with the word that says so.
func TestTheLuaHookPutsAJobOffWhoseUserSaidNothingOfIt(t *testing.T) {
	now := time.Now().Unix()
	for _, c := range []struct {
		own  string
		in   int64 // seconds
		want bool
	}{
		{"nil", 7200, true},
		{"0", 7200, true},
		{"4294967294", 7200, true},
		{"1000", 7200, false}, // --begin=now
		{"nil", -10, false},
		{"nil", 8 * 86400, false},
	} {
		for word, kept := range map[string]bool{"site;epplan:ab12-begin3": true, "epplan:ab12-begin3": false} {
			socket, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, `{"v":1,"admin_comment_hex":"%s","begin_unix_s":%d}`,
					hex.EncodeToString([]byte(word)), now+c.in)
			})
			out := luaProgram(t, waiting(t, luaModule(t, socket, ""), "1"), `
local jd = { name = "a", admin_comment = "site", tres_per_node = "gres:gpu:1", begin_time = `+c.own+` }
submit(jd)
print("begin", jd.begin_time and string.format("%.0f", jd.begin_time) or "nil")`)
			want := c.own
			if kept && c.want {
				want = strconv.FormatInt(now+c.in, 10)
			}
			if !strings.Contains(out, "begin\t"+want+"\n") {
				t.Errorf("%+v, word %q: %s, want %s", c, word, out, want)
			}
		}
	}
}

func TestTheLuaHookSaysWhatAJobIsTiedTo(t *testing.T) {
	for field, tied := range map[string]bool{
		`dependency = "afterok:7"`: true, `reservation = "maint"`: true, "deadline = 1800000000": true,
		`dependency = ""`: false, "deadline = 0": false, "deadline = 4294967294": false, "nice = 3": false,
	} {
		var asked hooks.Submission
		socket, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked, _ = hooks.DecodeSubmission(r.Body)
			_, _ = w.Write([]byte("{}"))
		})
		luaProgram(t, waiting(t, luaModule(t, socket, ""), "1"), `
submit({ name = "a", tres_per_node = "gres:gpu:1", `+field+` })`)
		if asked.Name != "a" || asked.Tied != tied {
			t.Errorf("%s: %+v", field, asked)
		}
	}
}

func TestTheLuaHookFailsOpenWithABreaker(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	hung, count := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	if out := luaRun(t, hung, ""); strings.Count(out, "site\tbounded") != 2 ||
		strings.Count(out, "log\t") != 1 || count() != 1 {
		t.Errorf("hung: %d requests: %s", count(), out)
	}
	if out := luaRun(t, "/nonexistent/s", ""); strings.Count(out, "site\tbounded") != 2 ||
		strings.Count(out, "log\t") != 1 {
		t.Errorf("nobody there: %s", out)
	}
	garbage, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"admin_comment_hex":"zz","message_hex":"6`))
	})
	if out := luaRun(t, garbage, ""); strings.Count(out, "site\tbounded") != 2 {
		t.Errorf("garbage: %s", out)
	}
	refusing, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	})
	if out := luaRun(t, refusing, ""); strings.Count(out, "site\tbounded") != 2 ||
		strings.Count(out, "log\t") != 1 {
		t.Errorf("refused: %s", out)
	}
	dropping, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"admin_comment_hex":"78"}`))
	})
	if out := luaRun(t, dropping, ""); strings.Count(out, "site\tbounded") != 2 {
		t.Errorf("an answer that drops foreign text: %s", out)
	}
	if out := luaRun(t, hung,
		`package.loaded["socket.unix"] = nil; package.preload["socket.unix"] = function() error("not installed") end`); strings.Count(out, "site\tbounded") != 2 || !strings.Contains(out, "lua-socket is missing") {
		t.Errorf("without lua-socket: %s", out)
	}
	if out := luaRun(t, hung,
		`local real = dofile; dofile = function() return real("/nonexistent/epplan.lua") end`); strings.Count(
		out, "site\tbounded",
	) != 2 || !strings.Contains(out, "cannot open") {
		t.Errorf("missing module: %s", out)
	}
}

// hung returns a socket that takes requests and never answers.
func hung(t *testing.T) (string, func() int) {
	t.Helper()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	return serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
}

// Each submission sends its full script, of which all is read and written in hexadecimal digits.
func TestThirtySecondsOfAHungControllerCostSixWaitsOfTwentyMilliseconds(t *testing.T) {
	// 6 × 15 ms; the rest is for a machine that is busy with something else. It may be
	// busier than that at any moment, but not at each.
	const most, tries = 6*15 + 180, 20
	least := math.Inf(1)
	for i := 0; i < tries && least > most; i++ {
		least = min(least, thirtySeconds(t))
	}
	if least > most {
		t.Errorf("at least %v ms in %d tries, want 90", least, tries)
	}
}

// thirtySeconds submits for half a minute while the controller hangs, and returns how
// long that took in all, in milliseconds.
func thirtySeconds(t *testing.T) (total float64) {
	t.Helper()
	socket, count := hung(t)
	out := luaProgram(t, luaModule(t, socket, ""), `
local real, ahead = s.gettime, 0
s.gettime = function() return real() + ahead end
local jd = { name = "x", script = string.rep("#!/bin/sh\n\0\255", 100000), tres_per_node = "gres:gpu:1" }
local total, worst = 0, 0
for i = 1, 300 do
  local t = real()
  submit(jd)
  local took = real() - t
  total, worst = total + took, math.max(worst, took)
  ahead = ahead + 0.1
end
print("total_ms", math.floor(total * 1000), "worst_ms", math.floor(worst * 1000))`)
	var worst float64
	at := strings.Index(out, "total_ms")
	if at < 0 {
		t.Fatal(out)
	}
	if _, err := fmt.Sscanf(out[at:], "total_ms %f worst_ms %f", &total, &worst); err != nil {
		t.Fatal(err, out)
	}
	t.Logf("%d requests, %v ms in all, the slowest %v ms", count(), total, worst)
	if waits := strings.Count(out, "log\t"); waits != 6 || count() > 6 {
		t.Errorf("%d waits, %d requests, want 6: %s", waits, count(), out)
	}
	return total
}

// asker returns a program in epplan's place that notes its arguments and answers.
func asker(t *testing.T, answer string) (program string, calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, "epplan")
	writeFile(t, program,
		"#!/bin/sh\nprintf '%s|' \"$@\" >>"+dir+"/calls\necho >>"+dir+"/calls\n"+answer+"\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	return program, func() []string {
		text, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil {
			return nil
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

// withoutSocket is a Lua that has no luasocket.
const withoutSocket = `
local loader = _G.require
_G.require = function(name) if name:match("^socket") then error("not installed") end return loader(name) end
`

func TestWithoutLuaSocketAProgramIsAskedWithHexadecimalDigitsOnly(t *testing.T) {
	answer := fmt.Sprintf(`echo '{"v":1,"admin_comment_hex":"%x","message_hex":"%x"}'`,
		"site;epplan:t1", "hi")
	for name, job := range map[string]string{
		"plain": `name = "x", comment = "epplan:off"`,
		"hostile": `name = "'; touch hacked; '", comment = "$(reboot)` + "`reboot`" +
			`\n\0\255\"", work_dir = "/\1\127"`,
		"megabyte": `name = string.rep("\0", 1000000), comment = string.rep("'\255", 500000), features = string.rep("x", 1000000), work_dir = string.rep("y", 9999)`,
		"array": `array_inx = string.rep("1,3,", 9999), name = string.rep("n", 9999), comment = string.rep("c", 9999), ` +
			`features = string.rep("f", 9999), prefer = string.rep("p", 9999), account = string.rep("a", 9999), ` +
			`qos = string.rep("q", 9999), tres_per_job = string.rep("t", 9999), work_dir = string.rep("w", 9999)`,
	} {
		t.Run(name, func(t *testing.T) {
			program, calls := asker(t, answer)
			out := luaProgram(t, luaModule(t, "/run/x.sock", program), withoutSocket+`
local jd = { `+job+`, admin_comment = "site", script = "secret", tres_per_node = "gres:gpu:1" }
submit(jd)
print(jd.admin_comment)`)
			if !strings.Contains(out, "user\thi") || !strings.Contains(out, "site;epplan:t1") {
				t.Error(out)
			}
			got := calls()
			if len(got) != 1 {
				t.Fatalf("%q", got)
			}
			args := strings.Split(strings.TrimSuffix(got[0], "|"), "|")
			if len(args) != 5 || strings.Join(args[:4], " ") != "submit --socket /run/x.sock --hex" ||
				len(args[4]) > 32<<10 {
				t.Fatalf("%d arguments, the last of %d bytes: %q", len(args),
					len(args[len(args)-1]), args[:4])
			}
			raw, err := hex.DecodeString(args[4])
			if err != nil {
				t.Fatal(err)
			}
			sub, err := hooks.DecodeSubmission(strings.NewReader(string(raw)))
			if err != nil || sub.UID != 1000 || sub.Kind != "batch" || sub.Script != "" ||
				sub.Admin != "site" || !sub.WantsGPU() {
				t.Errorf("%+v, %v", sub, err)
			}
			if name == "array" && (len(sub.Array) != 1001 || len(sub.Name) > 512) { // too long for a nice
				t.Errorf("a list of %d bytes, a name of %d", len(sub.Array), len(sub.Name))
			}
		})
	}
}

func TestAProgramThatFailsIsLeftAloneForFiveSeconds(t *testing.T) {
	for name, answer := range map[string]string{
		"fails": "exit 4", "prints garbage": "echo nonsense", "prints bytes": `printf '\0\377{}'`,
		"floods": "head -c 1000000 /dev/zero", "half": `printf '{"v":1'`,
	} {
		t.Run(name, func(t *testing.T) {
			program, calls := asker(t, answer)
			out := luaProgram(t, luaModule(t, "/run/x.sock", program), withoutSocket+`
local ahead = 0
os.time = function() return 1000 + math.floor(ahead) end
local jd = { name = "x", admin_comment = "site", tres_per_node = "gres:gpu:1" }
for i = 1, 300 do submit(jd); ahead = ahead + 0.1 end
print(jd.admin_comment)`)
			if n := len(calls()); n != 5 || strings.Count(out, "log\t") != n ||
				!strings.HasSuffix(out, "site\n") {
				t.Errorf("%d calls, want 5 in 30 s of whole seconds: %s", n, out)
			}
		})
	}
	out := luaProgram(t, luaModule(t, "/run/x.sock", "/nonexistent/epplan"),
		withoutSocket+`submit({ name = "x" })`)
	if !strings.Contains(out, "has no answer") {
		t.Error(out)
	}
}

func TestWithLuaSocketNoProgramIsStarted(t *testing.T) {
	socket, count := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"v":1}`))
	})
	program, calls := asker(t, "true")
	out := luaProgram(t, unhurried(t, luaModule(t, socket, program)), `submit({ name = "x" }) print "end"`)
	if count() != 1 || calls() != nil || out != "end\n" {
		t.Errorf("%d requests, %q: %s", count(), calls(), out)
	}
	if _, err := install.LuaModule("/etc/slurm", "/run/s", "/usr/bin/epplan; reboot"); err == nil {
		t.Error("a program with a shell's signs was accepted")
	}
}

func TestTheHookSendsAsMuchOfAScriptAsCounts(t *testing.T) {
	text, err := os.ReadFile("epplan.lua")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("local MAXSCRIPT = %d\n", hooks.SentScript); !strings.Contains(string(text), want) {
		t.Errorf("epplan.lua has no %q", want)
	}
}

// TestTheLuaHookHasTheSameRuleForPlainText draws texts and has epplan.lua and the controller judge them.
func TestTheLuaHookHasTheSameRuleForPlainText(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 9))
	pieces := []string{
		"a", "note", "JS1:", "key", "=", "(", ")", " ", ";", ",", "4711", "H4sIAAAA", "gpu01", "aB", "Ab",
		"-", ".", "{",
		"%", "deadbeefdeadbeefdeadbeef", "\n", "\xff", "?", "#", "/", "(x=1)", "_", ":", "12345a",
	}
	texts := append(make([]string, 0, 2004), "", "(", "=", "a ;")
	for range 2000 {
		var b strings.Builder
		for range random.IntN(6) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		texts = append(texts, b.String())
	}
	var program strings.Builder
	program.WriteString("local m = dofile(MODULE)\n")
	for _, text := range texts {
		program.WriteString(`io.write(m.is_plain((("` + hex.EncodeToString([]byte(text)) +
			`"):gsub("..", function(h) return string.char(tonumber(h, 16)) end))) and "1" or "0")` + "\n")
	}
	said := luaProgram(t, luaModule(t, "/none", ""), program.String())
	plain := 0
	for i, text := range texts {
		want := slurm.IsPlainComment(text)
		if want {
			plain++
		}
		if (said[i] == '1') != want {
			t.Errorf("%q is plain: %v, epplan.lua says %c", text, want, said[i])
		}
	}
	if plain < 100 || plain > len(texts)-100 {
		t.Errorf("%d of %d texts are plain: draw others", plain, len(texts))
	}
}
