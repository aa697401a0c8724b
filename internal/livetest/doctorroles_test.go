package livetest_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/epplan/epplan/internal/doctor"
)

// ask runs epplan doctor as on a machine of its own.
func (p *patient) ask(args ...string) *doctor.Report {
	p.Helper()
	out, _ := p.doctor(append([]string{"--json"}, args...)).Output() // its status says what is bad
	var report doctor.Report
	if err := json.Unmarshal(out, &report); err != nil {
		p.Fatalf("%v: %s", err, out)
	}
	return &report
}

func TestTheDoctorLooksAtHeadAndNodeEachByItself(t *testing.T) {
	p := &patient{lab: newLab(t, setup{config: enforce, conf: doctorConf, roles: true}), bin: t.TempDir()}
	head := []string{
		"--role", "head", "--controller-socket", p.socket(controller), "--submit-socket",
		filepath.Join(p.dir, "submit.sock"),
	}
	node := []string{"--role", "node", "--agent-socket", p.socket("n1")}
	for _, machine := range [][]string{head, node} {
		p.eventually("nothing is bad on "+machine[1], func() bool {
			return len(ids(p.ask(machine...).Findings, doctor.Bad)) == 0
		})
	}
	for _, f := range p.ask(node...).Findings {
		if f.Check == "controller-link" &&
			(f.Grade != doctor.OK || !strings.Contains(f.What, strconv.Itoa(p.port))) {
			t.Errorf("%+v", f)
		}
	}
	p.stopEPD(controller, syscall.SIGTERM)
	stopped := slices.Concat(head, []string{
		"--state", filepath.Join(p.dir, controller), "--config", filepath.Join(p.dir, "config.toml"),
	})
	for want, machine := range map[string][]string{"epd-down": stopped, "controller-unreachable": node} {
		found := p.ask(machine...).Findings
		if got := ids(found, doctor.Bad); !slices.Equal(got, []string{want}) {
			t.Errorf("on %s: found %v, want %s: %+v", machine[1], got, want, found)
		}
	}
	p.startEPD(controller)
	p.stopEPD(munge, syscall.SIGKILL) // epd's own, beside Slurm's
	if got := ids(p.ask(node...).Findings, doctor.Bad); !slices.Equal(got, []string{"munge-down"}) {
		t.Errorf("found %v, want munge-down", got)
	}
	p.startMunge()
}
