package gpureport_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/gpureport"
)

var update = flag.Bool("update", false, "write the list in docs/hardware.md")

const (
	page  = "../../../docs/hardware.md"
	begin = "<!-- Written by go test ./internal/report/gpureport -update. -->\n"
	end   = "<!-- end of the list -->\n"
)

func TestTheHardwarePageListsTheBoardsWithTheirSources(t *testing.T) {
	models, err := gpureport.List(config.BuiltinProfiles())
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	list.WriteString("\n| model | clocks, MHz | default | idle W | limit W | locks | energy of | estimated | source |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for i := range models {
		if m := &models[i]; m.LimitWDefault != nil { // a board, not a measurement
			list.WriteString(m.Row() + "\n")
		}
	}
	list.WriteString("\n")
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	before, rest, ok1 := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no list of GPUs", page)
	}
	want := before + begin + list.String() + end + after
	if text == want {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date (-update writes it)", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

const own = `[[gpu]]
name = "K9"
default_core_mhz = 900
default_mem_mhz = 2000
clocks = [
  { mem_mhz = [400], core_mhz = [300], plan = false },
  { mem_mhz = [1000, 2000], core_mhz = [900, 600] },
]
idle_w = 5
limit_w_max = 80
core_lock = true
energy_scope = "none"
estimate = ["idle_w"]

[[gpu]]
name = "K8"
idle_w = 5
busy_w = 50
`

func ownModels(t *testing.T, names ...string) []gpureport.Model {
	t.Helper()
	mine, err := config.ReadProfiles(strings.NewReader(own), "mine.toml")
	if err != nil {
		t.Fatal(err)
	}
	models, err := gpureport.List(config.BuiltinProfiles().With(mine), names...)
	if err != nil {
		t.Fatal(err)
	}
	return models
}

func TestWhatIsNotKnownOfAGPUModelIsNull(t *testing.T) {
	got, err := json.Marshal(ownModels(t, "k-9", "K8"))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"K9","aliases":[],"vendor":null,"memory_gb":null,"clocks":[` +
		`{"mem_mhz":2000,"core_mhz":[600,900],"planned":true},{"mem_mhz":1000,"core_mhz":[600,900],"planned":true},` +
		`{"mem_mhz":400,"core_mhz":[300],"planned":false}],"default_core_mhz":900,"default_mem_mhz":2000,` +
		`"range":null,"idle_w":5,"busy_w":null,"host_w_per_gpu":25,"limit_w_min":null,"limit_w_default":null,` +
		`"limit_w_max":80,"core_lock":true,"memory_lock":null,"energy_scope":"none","estimate":["idle_w"],` +
		`"source":null},{"name":"K8","aliases":[],"vendor":null,"memory_gb":null,"clocks":[],` +
		`"default_core_mhz":null,"default_mem_mhz":null,"range":null,"idle_w":5,"busy_w":50,"host_w_per_gpu":25,` +
		`"limit_w_min":null,"limit_w_default":null,"limit_w_max":null,"core_lock":null,"memory_lock":null,` +
		`"energy_scope":null,"estimate":[],"source":null}]`
	if string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestAGPUModelIsShownWithAllThatIsKnownOfIt(t *testing.T) {
	want := `Model     K9
Clocks    memory 2000 MHz: core 600, 900 MHz
          memory 1000 MHz: core 600, 900 MHz
          memory 400 MHz: core 300 MHz; in no plan
Default   900/2000 MHz
Power     5 W idle, 25 W of the rest of the node
Limit     to 80 W
Locks     core memory?
Energy    no counter: power is integrated
Estimate  idle_w
`
	if got := ownModels(t, "K9")[0].Text(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for name, want := range map[string]string{
		"paper": "the EDL paper's wide range", "B200": "core 120 to 1965 by 7 and 8 MHz",
		"V100": "core 802, 945, 1087, 1237, 1380 MHz", "MI250X": "a counter of the module",
		"P100": "Locks     none", "K8": "Power     5 W idle, 50 W at work",
	} {
		if got := ownModels(t, name)[0].Text(); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s\nwant %q in it", name, got, want)
		}
	}
}

func TestTheListHasALineForEachModelThatIsKnown(t *testing.T) {
	models := ownModels(t)
	text := gpureport.Table(models).Text(&report.TextOptions{Rows: -1})
	if lines := strings.Count(text, "\n"); lines != len(models)+1 {
		t.Errorf("%d lines for %d models:\n%s", lines, len(models), text)
	}
	for _, want := range []string{"K9 ", "to 80", "wide range", "core memory?", "idle_w"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if _, err := gpureport.List(config.BuiltinProfiles(), "K9"); err == nil ||
		!strings.HasPrefix(fmt.Sprint(err), `unknown GPU model "K9", want one of `) {
		t.Errorf("error %v", err)
	}
}
