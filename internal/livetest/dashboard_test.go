package livetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// What sites put into their Grafana and Prometheus.
const (
	dashboardFile = "../../packaging/grafana/epplan.json"
	rulesFile     = "../../packaging/prometheus/epplan.rules.yml"
	rulesTest     = "../../packaging/prometheus/epplan.rules.test.yml"
	monitoring    = "../../docs/monitoring.md"
)

// promtool runs promtool, which must be content.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	shareddata.Need(t, err == nil, "promtool isn't installed: run scripts/test-packages.sh")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

func TestPrometheusTakesTheAlertsAndTheirTestsPass(t *testing.T) {
	slurmlab.AnySlurm(t, "promtool")
	promtool(t, "check", "rules", rulesFile)
	promtool(t, "test", "rules", rulesTest)
}

// dashboard is what is looked at of a Grafana dashboard.
type dashboard struct {
	Panels []struct {
		Title, Type, Description string
		Targets                  []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// queries returns the dashboard's, by where they are.
func (d *dashboard) queries() map[string]string {
	all := make(map[string]string)
	for i := range d.Panels {
		for n, target := range d.Panels[i].Targets {
			all[fmt.Sprintf("panel %q %d", d.Panels[i].Title, n)] = target.Expr
		}
	}
	for _, a := range d.Annotations.List {
		all["annotation "+a.Name] = a.Expr
	}
	return all
}

var (
	alertLine = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
	exprLine  = regexp.MustCompile(`(?ms)^ +expr: (?:>-\n)?(.*?)\n +(?:for|labels):`)
	runbook   = regexp.MustCompile(
		`(?m)^ +runbook_url: https://github\.com/epplan/epplan/blob/main/docs/monitoring\.md#(\w+)$`,
	)
	selector = regexp.MustCompile(`\b(epplan_\w+)(\{[^}]*\})?`)
)

// readAlerts returns the expressions of the alerts, by name.
func readAlerts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(monitoring)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, rule := range strings.SplitAfter(string(text), "\n      - ")[1:] {
		rule = "      - " + rule
		name, expr, book := alertLine.FindStringSubmatch(rule), exprLine.FindStringSubmatch(rule),
			runbook.FindStringSubmatch(rule)
		if name == nil || expr == nil || book == nil {
			t.Errorf("%s: want alert, expr, labels and runbook_url", rule)
			continue
		}
		all[name[1]] = expr[1]
		if book[1] != strings.ToLower(name[1]) || !strings.Contains(string(page), "\n### "+name[1]+"\n") {
			t.Errorf("%s has no chapter in docs/monitoring.md, or links to %s", name[1], book[1])
		}
		for _, part := range []string{"summary:", "description:", "severity:"} {
			if !strings.Contains(rule, part) {
				t.Errorf("%s has no %s", name[1], part)
			}
		}
	}
	if len(all) < 10 || len(all) != strings.Count(string(text), "- alert:") {
		t.Fatalf("%d alerts were read", len(all))
	}
	return all
}

// exported returns the metrics of docs/metrics.md, which a test of package metrics
// holds against the program.
func exported(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(epplan_\\w+)` \\|").FindAllStringSubmatch(string(page), -1) {
		names = append(names, row[1])
		if row[1] == "epplan_request_duration_seconds" {
			names = append(names, row[1]+"_bucket", row[1]+"_count", row[1]+"_sum")
		}
	}
	return names
}

func TestDashboardAndAlertsNameMetricsThatThereAre(t *testing.T) {
	there := exported(t)
	used := make(map[string]bool)
	all := map[string]map[string]string{"alert": readAlerts(t)}
	d := readDashboard(t)
	all["dashboard"] = d.queries()
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			all["dashboard"]["variable "+v.Name] = v.Definition
		}
	}
	for kind, queries := range all {
		for where, query := range queries {
			found := selector.FindAllStringSubmatch(query, -1)
			if len(found) == 0 {
				t.Errorf("%s %s names no metric of ours: %s", kind, where, query)
			}
			for _, m := range found {
				used[m[1]] = true
				if !slices.Contains(there, m[1]) {
					t.Errorf("%s %s: there is no metric %s", kind, where, m[1])
				}
			}
		}
	}
	for _, p := range d.Panels {
		if p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %q has no description or no query", p.Title)
		}
	}
	if len(used) < 30 {
		t.Errorf("only %d metrics are shown: %v", len(used), slices.Sorted(maps.Keys(used)))
	}
}

// watcher is a Prometheus that scrapes a lab.
type watcher struct {
	*lab
	url string
}

// watch starts a Prometheus with our rules that scrapes an address.
func watch(l *lab, address string) *watcher {
	l.Helper()
	program, err := exec.LookPath("prometheus")
	shareddata.Need(l, err == nil, "prometheus isn't installed: run scripts/test-packages.sh")
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		l.Fatal(err)
	}
	l.write("prometheus.yml", "global: {scrape_interval: 1s, evaluation_interval: 5s}\n"+
		"rule_files: ["+rules+"]\n"+
		"scrape_configs:\n  - job_name: epplan\n    static_configs: [{targets: ['"+address+"']}]\n", 0o644)
	at := slurmlab.Address(l)
	log, err := os.Create(filepath.Join(l.dir, "prometheus.log"))
	if err != nil {
		l.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+filepath.Join(l.dir, "prometheus.yml"), "--web.listen-address="+at, //nolint:noctx // stopped below
		"--storage.tsdb.path="+filepath.Join(l.dir, "tsdb"), "--storage.tsdb.retention.size=100MB",
		"--log.level=warn")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		_ = log.Close()
	})
	return &watcher{lab: l, url: "http://" + at}
}

// ask puts a query and returns how many series answer.
func (w *watcher) ask(query string) (int, error) {
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet,
		w.url+"/api/v1/query?"+url.Values{"query": {query}}.Encode(), http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return 0, err
	}
	var answer struct {
		Error string
		Data  struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, fmt.Errorf("%s: %w", query, err)
	}
	if answer.Error != "" {
		return 0, fmt.Errorf("%s: %s", query, answer.Error)
	}
	return len(answer.Data.Result), nil
}

// grafana fills in a query what Grafana does.
var grafana = strings.NewReplacer("$__rate_interval", "30s", "$__interval", "5s", "$__range", "1h",
	"$instance", ".*", "$partition", ".*", "$part", ".*")

func TestEachPanelAndEachMetricOfAnAlertHasDataFromARunningEPD(t *testing.T) {
	slurmlab.AnySlurm(t, "prometheus")
	const more = "[predict]\nenabled = true\n[budget]\nmode = \"observe\"\ncluster_w = 100000\n" +
		"[factors]\ncost_per_kwh = 0.2\ncurrency = \"EUR\"\ncarbon_g_per_kwh = 300\n"
	l := newLab(t, setup{config: enforce + more})
	address := slurmlab.Address(l)
	l.stopEPD("n1", syscall.SIGTERM)
	l.startEPD("n1", "--metrics", address)
	w := watch(l, address)
	for range 3 {
		l.ends(l.submit("sleep 1", "--gres=gpu:1", "-w", "n1"), "COMPLETED")
	}
	l.ends(l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", fixed), "COMPLETED")
	busy := l.lock("n1", 1) // for what is only there while a GPU is locked
	missing := make(map[string]string)
	d := readDashboard(t)
	for where, query := range d.queries() {
		missing[where] = grafana.Replace(query)
	}
	for name, expr := range readAlerts(t) {
		for _, m := range selector.FindAllString(expr, -1) {
			missing["alert "+name+", "+m] = m
		}
	}
	l.within(patience, "every query has data", func() bool {
		maps.DeleteFunc(missing, func(_, query string) bool {
			n, err := w.ask(query)
			if err != nil && !strings.Contains(err.Error(), "connection refused") {
				l.Errorf("%v", err)
			}
			return n > 0
		})
		if len(missing) > 0 {
			<-time.After(time.Second)
		}
		for where, query := range missing {
			l.Logf("%d queries wait for data, such as %s: %s", len(missing), where, query)
			break
		}
		return len(missing) == 0 || l.Failed()
	})
	if n, err := w.ask(`count(ALERTS)`); err != nil {
		t.Error(err)
	} else if n > 0 {
		t.Log("some alerts are pending or firing")
	}
	l.slurm("scancel", strconv.FormatInt(busy, 10))
}
