package packagetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recipes are those of containers, with what each says of its user.
var recipes = map[string]string{
	"Dockerfile": "\nUSER 65532:65532\n", "apptainer.def": "\n%runscript\n    exec /usr/bin/epplan \"$@\"\n",
}

var (
	baseImage  = regexp.MustCompile(`(?m)^(?:FROM|From:) (\S+)`)
	buildLine  = regexp.MustCompile(`(?m)^(?:RUN|   ) (CGO_ENABLED=0 .*go build .*)$`)
	copiedFrom = regexp.MustCompile(`(?m)^    ([a-zA-Z.]+) /src/$`)
)

// recipe returns the text of a recipe.
func recipe(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "packaging", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestContainersAreOfPinnedImagesAndNotRoot(t *testing.T) {
	module, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(module), "\ngo ")
	release, _, _ := strings.Cut(rest, "\n")
	for name, user := range recipes {
		text := recipe(t, name)
		images := baseImage.FindAllStringSubmatch(text, -1)
		if len(images) != 2 || images[0][1] != "golang:"+release+"-bookworm" {
			t.Errorf("%s: images %q, want two, the first with Go %s", name, images, release)
		}
		for _, image := range images {
			if _, tag, ok := strings.Cut(image[1], ":"); !ok || tag == "latest" {
				t.Errorf("%s: %s isn't pinned", name, image[1])
			}
		}
		if !strings.Contains(text, user) {
			t.Errorf("%s doesn't say %q", name, user)
		}
	}
}

func TestTheBuildLinesOfContainersMakeAProgramThatPlans(t *testing.T) {
	for name := range recipes {
		line := buildLine.FindStringSubmatch(recipe(t, name))
		if line == nil {
			t.Fatalf("%s builds nothing", name)
		}
		source, dir := root(t), t.TempDir()
		if folders := copiedFrom.FindAllStringSubmatch(recipe(t, name), -1); folders != nil {
			source = filepath.Join(dir, "src") // only what the recipe copies is there
			if err := os.Mkdir(source, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, folder := range folders {
				do(t, nil, "cp", "-r", filepath.Join(root(t), folder[1]), source)
			}
		}
		out := filepath.Join(dir, "epplan")
		// With -trimpath all that the program uses would be compiled once more, a minute of two cores.
		build := strings.NewReplacer("/out/epplan", out, "/usr/local/go/bin/go", "go", "{{ VERSION }}",
			"1.2.3", "${VERSION}", "1.2.3", "-trimpath ", "").Replace(line[1])
		do(t, nil, "sh", "-c", "cd "+source+" && "+build)
		demo := func(file string) string { return filepath.Join(root(t), "testdata", "demo", file) }
		if got := do(t, nil, out, "version"); !strings.HasPrefix(got, "epplan 1.2.3 ") {
			t.Errorf("%s: %s", name, got)
		}
		if got := do(t, nil, out, "plan", demo("batch.csv"), "--cluster", demo("cluster.toml"), "--models",
			demo("models.toml"), "--policy", "edl"); !strings.Contains(got, "complete") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
