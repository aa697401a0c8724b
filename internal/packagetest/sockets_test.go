package packagetest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
)

// socketUnit is what systemd opens for a unit, and the name by which it passes it.
type socketUnit struct{ listen, name, service string }

// socketUnits returns those of the packages, by file name.
func socketUnits(t *testing.T) map[string]socketUnit {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root(t), "packaging", "systemd", "*.socket"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%q, %v: want sockets", paths, err)
	}
	found := make(map[string]socketUnit)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		setting := func(key string) string {
			_, rest, _ := strings.Cut(string(text), "\n"+key+"=")
			value, _, _ := strings.Cut(rest, "\n")
			return value
		}
		found[filepath.Base(path)] = socketUnit{
			setting("ListenStream"), setting("FileDescriptorName"), setting("Service"),
		}
	}
	return found
}

// activate runs epd with listeners as systemd passes them, by name. The function
// that it returns sends a signal and waits for its end; signal 0 only waits.
func activate(
	t *testing.T, sockets map[string]net.Listener, flags ...string,
) (log *strings.Builder, stop func(syscall.Signal) error) {
	t.Helper()
	names, files := make([]string, 0, len(sockets)), make([]*os.File, 0, len(sockets))
	for name, l := range sockets {
		file, err := l.(interface{ File() (*os.File, error) }).File() //nolint:errcheck,forcetypeassert // TCP and Unix have it
		if err != nil {
			t.Fatal(err)
		}
		names, files = append(names, name), append(files, file)
	}
	log = &strings.Builder{}
	args := append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh", filepath.Join(built(t), "epd")}, flags...)
	cmd := command(context.WithoutCancel(t.Context()), []string{
		"LISTEN_FDS=" + strconv.Itoa(len(files)), "LISTEN_FDNAMES=" + strings.Join(names, ":"),
	}, "sh", args...)
	cmd.Stderr, cmd.ExtraFiles = log, files
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		_ = file.Close() // epd has its own
	}
	ended := sync.OnceValue(cmd.Wait)
	stop = func(signal syscall.Signal) error {
		_ = cmd.Process.Signal(signal) // it may have ended
		return ended()
	}
	t.Cleanup(func() { _ = stop(syscall.SIGKILL) })
	return log, stop
}

// open opens what a unit names: ports that are free, and paths in a folder.
func (u socketUnit) open(t *testing.T, dir string) net.Listener {
	t.Helper()
	network, address := "tcp", "127.0.0.1:0"
	if strings.HasPrefix(u.listen, "/run/") {
		network, address = "unix", filepath.Join(dir, filepath.Base(u.listen))
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	if socket, ok := l.(*net.UnixListener); ok {
		socket.SetUnlinkOnClose(false) // it is systemd's
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestEPDAnswersAtTheSocketsOfTheControllersUnits(t *testing.T) {
	built(t)
	dir, sockets := t.TempDir(), make(map[string]net.Listener)
	for file, unit := range socketUnits(t) {
		if unit.service == "epd-controller.service" {
			sockets[unit.name] = unit.open(t, dir)
		} else if unit != (socketUnit{epdapi.AgentSocket, "socket", "epd-agent.service"}) {
			t.Errorf("%s is %+v", file, unit)
		}
	}
	// No flag names a socket or a port.
	_, stop := activate(t, sockets, "--role", "controller", "--slurm", "off", "--state",
		filepath.Join(dir, "state"))

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, name := range []string{"socket", "submit-socket"} {
		if s, err := epdapi.New(sockets[name].Addr().String()).Status(ctx); err != nil ||
			s.Role != "controller" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	for name, want := range map[string]int{"listen": http.StatusUnauthorized, "metrics": http.StatusOK} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"http://"+sockets[name].Addr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != want {
			t.Errorf("%s answers %s (%v): %s", name, answer.Status, err, text)
		}
	}
	if err := stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	// systemd's sockets outlive epd: who asks meanwhile waits for the next one.
	if _, err := os.Lstat(sockets["socket"].Addr().String()); err != nil {
		t.Errorf("epd took the socket along: %v", err)
	}
}

func TestASocketThatNoFlagStandsForIsRefused(t *testing.T) {
	built(t)
	dir := t.TempDir()
	log, stop := activate(t,
		map[string]net.Listener{"sockets": socketUnit{listen: epdapi.AgentSocket}.open(t, dir)},
		"--role", "both", "--gpu", "sim:1", "--slurm", "off", "--state", filepath.Join(dir, "state"))
	var exit *exec.ExitError
	if err := stop(0); !errors.As(err, &exit) || exit.ExitCode() != 1 ||
		!strings.Contains(log.String(), `named "sockets", want FileDescriptorName= one of socket`) {
		t.Errorf("%v: %s", err, log)
	}
}
