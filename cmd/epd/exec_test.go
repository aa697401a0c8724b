package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm"
)

// wrapper is a site's script in front of one GPU.
const wrapper = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
core=1410
test -f core && core=$(cat core)
case $1 in
list) echo 'GPU-aaaaaaaa-0000-0000-0000-000000000000,00000000:3B:00.0,NVIDIA A100-SXM4-40GB,3' ;;
read) echo "61.25,$core,1215,400" ;;
set) echo "$2" >core ;;
release) rm -f core ;;
esac
`

const wrapperCommands = `
[list]
command = ["DIR/wrapper", "list"]
columns = ["uuid", "bus", "model", "minor"]
[read]
command = ["DIR/wrapper", "read"]
columns = ["power_w", "core_mhz", "memory_mhz", "limit_w"]
[core]
set = ["DIR/wrapper", "set", "{mhz}"]
release = ["DIR/wrapper", "release"]
`

func TestAJobOnAGPUBehindCommandsRunsAtItsClock(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "wrapper"), []byte(wrapper), 0o700))
	writeFile(t, filepath.Join(dir, "commands.toml"), strings.ReplaceAll(wrapperCommands, "DIR", dir))
	sysfs = noKernel{} // claims aren't those of this machine
	t.Cleanup(func() { sysfs = nil })
	config := filepath.Join(dir, "epd.toml")
	writeFile(t, config, "[live]\nmode = \"enforce\"\nhold_out = 0\n")
	d := launchWith(t, dir, "exec:"+filepath.Join(dir, "commands.toml"), "--config", config, "--node", "n1",
		"--gpu-order", "GPU-aaaaaaaa-0000-0000-0000-000000000000")
	event := slurm.HookEvent{
		Version: slurm.ProtocolVersion, Kind: slurm.Prolog, Job: 7, Node: "n1", GPUs: []int{0}, GPUsKnown: true,
		Comment: slurm.Hex("epplan:fixed=1005"), Partition: "main",
	}
	a, err := d.client.Hook(t.Context(), &event)
	must(t, err)
	core, err := os.ReadFile(filepath.Join(dir, "core"))
	if err != nil || string(core) != "1005\n" || !a.Applied {
		t.Errorf("locked at %q, %v, answer %+v\n%s", core, err, a, d.log)
	}
	event.Kind = slurm.Epilog
	_, err = d.client.Hook(t.Context(), &event)
	must(t, err)
	if _, err := os.Stat(filepath.Join(dir, "core")); !os.IsNotExist(err) {
		t.Errorf("still locked: %v", err)
	}
}

// noKernel is one without graphics.
type noKernel struct{}

func (noKernel) ReadFile(string) ([]byte, error) { return nil, os.ErrNotExist }
func (noKernel) WriteFile(string, []byte) error  { return os.ErrNotExist }
func (noKernel) Names(string) ([]string, error)  { return nil, os.ErrNotExist }
func (noKernel) Readlink(string) (string, error) { return "", os.ErrNotExist }
func (noKernel) Writable(string) bool            { return false }

func TestAFileOfCommandsThatIsWrongIsAMistakeWithItsLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "commands.toml")
	writeFile(t, file, "[list]\ncommand = [\"nvidia-smi\"]\n")
	var out, failed text
	code := run(t.Context(), []string{
		"epd", "--dry-run", "--gpu", "exec:" + file, "--role", "agent", "--controller", "localhost:1", "--state",
		t.TempDir(),
	}, &out, &failed)
	if code != exitFailed || !strings.Contains(failed.String(), file+":2:12: list.command has \"nvidia-smi\"") {
		t.Errorf("%d\n%s%s", code, &out, &failed)
	}
}
