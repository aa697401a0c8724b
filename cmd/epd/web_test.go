package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/internal/web/login"
)

const webTokens = "admin alice 0123456789abcdef0123\nreader bob fedcba98765432100000\n"

// fetch returns a page.
func fetch(t *testing.T, client *http.Client, address string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read only
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// atSocket asks at a Unix socket.
func atSocket(path string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}

// loggedIn is a browser that logged in.
func loggedIn(t *testing.T, client *http.Client, address, token string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client.Jar = jar
	_, form := fetch(t, client, address+"/login")
	field := regexp.MustCompile(`name="form_token" value="([0-9a-f]+)"`).FindStringSubmatch(form)
	if field == nil {
		t.Fatalf("no form: %s", form)
	}
	response, err := client.PostForm(address+"/login", url.Values{"form_token": {field[1]}, "token": {token}}) //nolint:noctx // a test's
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

func TestPagesAreServedAtSocketsAndToThoseWhoLogIn(t *testing.T) {
	dir, address := t.TempDir(), freePort(t)
	writeFile(t, filepath.Join(dir, "tokens"), webTokens)
	writeFile(t, filepath.Join(dir, "c.toml"), "[web]\ntoken_file = \""+filepath.Join(dir, "tokens")+"\"\n")
	submit := filepath.Join(dir, "submit.sock")
	_, stop := start(t, dir, "--submit-socket", submit, "--web", address, "--config",
		filepath.Join(dir, "c.toml"))
	defer stop()
	for _, socket := range []string{filepath.Join(dir, "epd.sock"), submit} {
		status, text := fetch(t, atSocket(socket), "http://localhost/")
		if status != http.StatusOK || !strings.Contains(text, "Overview of cluster") ||
			!strings.Contains(text, "admin.") {
			t.Errorf("%s: %d\n%s", socket, status, text)
		}
		if status, _ := fetch(t, atSocket(socket), "http://evil.example/v1/status"); status !=
			http.StatusMisdirectedRequest {
			t.Errorf("%s answers to another site's name: %d", socket, status)
		}
	}
	client := &http.Client{}
	if status, text := fetch(t, client, "http://"+address+"/"); status != http.StatusOK ||
		!strings.Contains(text, "<h1>Log in</h1>") {
		t.Errorf("without a login: %d\n%s", status, text)
	}
	loggedIn(t, client, "http://"+address, "fedcba98765432100000")
	for _, path := range []string{"/", "/queue", "/jobs", "/nodes", "/workloads"} {
		if status, text := fetch(t, client, "http://"+address+path); status != http.StatusOK ||
			!strings.Contains(text, "You are bob, reader.") {
			t.Errorf("%s: %d\n%s", path, status, text)
		}
	}
	if status, text := fetch(t, client, "http://"+address+"/v1/jobs"); status != http.StatusOK ||
		!strings.Contains(text, `"jobs":[]`) {
		t.Errorf("the JSON interface: %d %s", status, text)
	}
	writeFile(t, filepath.Join(dir, "tokens"), "admin alice 0123456789abcdef0123\n# nobody else any more\n")
	if _, text := fetch(t, client, "http://"+address+"/"); !strings.Contains(text, "<h1>Log in</h1>") {
		t.Error("a session outlives its token")
	}
}

func TestPagesForANetworkNeedTLSOrAnAdministratorWhoWantsNone(t *testing.T) {
	storetest.NeedSQLite(t)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key)
	writeFile(t, filepath.Join(dir, "open"), webTokens)
	if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ config, address, want string }{
		"no TLS": {"", "0.0.0.0:0", "want cert and key in [web]"},
		"no key": {
			"cert = \"" + cert + "\"\nkey = \"/none\"", "127.0.0.1:0", "[web] cert and key",
		},
		"no token file": {"token_file = \"/none\"", "127.0.0.1:0", "[web] token_file"},
		"a token file for all": {
			"token_file = \"" + filepath.Join(dir, "open") + "\"", "127.0.0.1:0", "mode 0644, want 0600",
		},
	} {
		writeFile(t, filepath.Join(dir, "c.toml"), "[web]\n"+c.config+"\n")
		var out, log text
		args := []string{
			"epd", "--gpu", "sim:2", "--slurm", "off", "--state", filepath.Join(dir, "state"), "--socket",
			filepath.Join(dir, "epd.sock"),
			"--config", filepath.Join(dir, "c.toml"), "--web", c.address,
		}
		if code := run(t.Context(), args, &out, &log); code != exitFailed ||
			!strings.Contains(log.String(), c.want) {
			t.Errorf("%s: status %d, want %q in\n%s", name, code, c.want, &log)
		}
	}
	address := freePort(t)
	writeFile(t, filepath.Join(dir, "c.toml"), "[web]\ncert = \""+cert+"\"\nkey = \""+key+"\"\n")
	_, stop := start(t, dir, "--config", filepath.Join(dir, "c.toml"), "--web", address)
	defer stop()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if status, text := fetch(t, client, "https://"+address+"/healthz"); status != http.StatusOK ||
		text != "ok\n" {
		t.Errorf("by TLS: %d %s", status, text)
	}
}

// writeCertificate makes a certificate for this machine.
func writeCertificate(t *testing.T, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
}

func TestViewersAreTheCallersThatTheyAreAtASocket(t *testing.T) {
	for _, c := range []struct {
		viewer login.Viewer
		want   query.Caller
	}{
		{login.Viewer{UID: -1}, query.Caller{UID: math.MaxUint32}},
		{login.Viewer{UID: -1, Name: "root"}, query.Caller{UID: math.MaxUint32}},
		{login.Viewer{UID: 1000, Name: "ada", Role: login.User}, query.Caller{UID: 1000, Name: "ada"}},
		{
			login.Viewer{UID: -1, Name: "bob", Role: login.Reader},
			query.Caller{UID: math.MaxUint32, Name: "bob", Operator: true},
		},
		{
			login.Viewer{UID: -1, Name: "alice", Role: login.Admin},
			query.Caller{UID: math.MaxUint32, Name: "alice", Operator: true, Admin: true},
		},
		{
			login.Viewer{UID: 0, Name: "root", Role: login.Admin},
			query.Caller{UID: 0, Name: "root", Operator: true, Admin: true},
		},
	} {
		if got := callerOf(c.viewer); got != c.want {
			t.Errorf("%+v is %+v, want %+v", c.viewer, got, c.want)
		}
	}
}

func TestAFileIsReadAgainWhereItChanged(t *testing.T) {
	path, reads := filepath.Join(t.TempDir(), "f"), 0
	var failures []error
	read := func(keep bool) *cachedFile[string] {
		return &cachedFile[string]{
			keep: keep, failed: func(err error) { failures = append(failures, err) },
			read: func(path string) (string, error) {
				reads++
				text, err := os.ReadFile(path)
				if bytes.HasPrefix(text, []byte("bad")) {
					err = errors.New("bad")
				}
				return string(text), err
			},
		}
	}
	forgets, keeps := read(false), read(true)
	for i, step := range []struct{ text, forgets, keeps string }{
		{"one", "one", "one"},
		{"", "one", "one"},
		{"bad", "", "one"},
		{"", "", "one"},
		{"three", "three", "three"},
	} {
		if step.text != "" {
			writeFile(t, path, step.text)
		}
		a, err := forgets.get(path)
		b, kept := keeps.get(path)
		if err == nil && a != step.forgets || (err != nil) != (step.forgets == "") || kept != nil ||
			b != step.keeps {
			t.Errorf("step %d: %q (%v) and %q (%v)", i, a, err, b, kept)
		}
	}
	if reads != 6 || len(failures) != 2 {
		t.Errorf("%d reads, %d failures told", reads, len(failures))
	}
}

// What is mended elsewhere, such as a file's owner or the key of a certificate,
// doesn't show in the file.
func TestAFileThatCouldNotBeUsedIsTriedAgainThoughItDidNotChange(t *testing.T) {
	path, wrong, told := filepath.Join(t.TempDir(), "f"), true, 0
	writeFile(t, path, "one")
	now := time.Unix(1e9, 0)
	c := &cachedFile[string]{
		now: func() time.Time { return now }, failed: func(error) { told++ },
		read: func(string) (string, error) {
			if wrong {
				return "", errors.New("its owner is wrong")
			}
			return "one", nil
		},
	}
	for range 3 {
		if _, err := c.get(path); err == nil {
			t.Fatal("what is wrong is taken")
		}
	}
	wrong = false
	if _, err := c.get(path); err == nil {
		t.Error("it is read again at once, however often somebody asks")
	}
	now = now.Add(retryAfter)
	if text, err := c.get(path); err != nil || text != "one" {
		t.Errorf("%q, %v", text, err)
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

func TestATokenFileThatGoesToAnotherOwnerIsLookedAtAgain(t *testing.T) {
	shareddata.Need(t, os.Geteuid() == 0, "only root gives files away")
	path := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, path, "admin alice 0123456789abcdef0123456789abcdef\n")
	c := &cachedFile[*login.Tokens]{read: login.ReadTokenFile, failed: func(error) {}}
	if _, err := c.get(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 4711, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.get(path); !errors.Is(err, login.ErrTokens) {
		t.Errorf("a user's own token file counts: %v", err)
	}
}

func TestThePageOfPagesWorksAsWritten(t *testing.T) {
	c := doctest.Claim(t, "web")
	dir, address := t.TempDir(), freePort(t)
	there := strings.NewReplacer("/etc/epplan", dir)
	for _, b := range c.Blocks {
		for _, s := range b.Steps {
			c.Ran(s)
			command := exec.CommandContext(t.Context(), "sh", "-e", "-c", there.Replace(s.Command))
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", s.At(), err, out)
			}
		}
	}
	lines, err := os.ReadFile(filepath.Join(dir, "web-tokens"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/web.md")
	if err != nil {
		t.Fatal(err)
	}
	_, config, _ := strings.Cut(string(page), "```toml\n")
	config, _, _ = strings.Cut(config, "```")
	writeFile(t, filepath.Join(dir, "c.toml"), there.Replace(config))
	_, stop := start(t, dir, "--config", filepath.Join(dir, "c.toml"), "--web", address)
	defer stop()
	for line := range strings.Lines(string(lines)) {
		words := strings.Fields(line)
		client := &http.Client{}
		loggedIn(t, client, "http://"+address, words[2])
		if _, text := fetch(t, client, "http://"+address+"/"); !strings.Contains(text,
			"You are "+words[1]+", "+words[0]+".") {
			t.Errorf("%s %s isn't logged in:\n%s", words[0], words[1], text)
		}
	}
}

func TestTheSitesProxyLogsInUsersOfThisMachine(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	dir, address := t.TempDir(), freePort(t)
	writeFile(t, filepath.Join(dir, "c.toml"), "[web]\nproxy_header = \"X-Remote-User\"\n"+
		"proxies = [\"127.0.0.1/32\", \"::1/128\"]\nreaders = [\"carol\"]\n")
	_, stop := start(t, dir, "--web", address, "--config", filepath.Join(dir, "c.toml"))
	defer stop()
	for name, want := range map[string]string{
		me.Username: "You see your own jobs only", "carol": "You are carol, reader.",
		"no-such-user": "knows no user of your name", "a b": "a name that can&#39;t be",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/jobs", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Remote-User", name)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if _ = response.Body.Close(); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d, %v, want %q in\n%s", name, response.StatusCode, err, want, text)
		}
	}
}

func TestPagesAreServedWhileTheIssuerIsDown(t *testing.T) {
	dir, address := t.TempDir(), freePort(t)
	writeFile(t, filepath.Join(dir, "c.toml"), "[web]\nadmins = [\"alice\"]\n[web.oidc]\nissuer = \"http://"+
		freePort(t)+"\"\nclient_id = \"epd\"\n")
	_, stop := start(t, dir, "--web", address, "--config", filepath.Join(dir, "c.toml"))
	defer stop()
	for path, want := range map[string]string{
		"/healthz": "ok", "/": "Log in with the site", "/login/oidc": "answer now. Try again",
	} {
		if _, text := fetch(t, &http.Client{}, "http://"+address+path); !strings.Contains(text, want) {
			t.Errorf("%s: want %q in\n%s", path, want, text)
		}
	}
}
