package doctest

import (
	"path"
	"strings"
)

// Runner is a test that runs blocks of pages.
type Runner struct {
	Name string
	// Package is the folder of the test, Test its name.
	Package, Test string
	// Pages are those whose blocks it runs unless a block says otherwise; a
	// pattern as of path.Match, or a folder with a slash at its end.
	Pages []string
	// Prompts are those that its pages have before commands; none means "$ ", so
	// that output may begin with #.
	Prompts []string
	// How is what stands for the machine that a page is about.
	How string
}

// Runners are all runners. Of several that name a page the first one has it.
var Runners = []Runner{
	{
		Name: "slurm", Package: "internal/livetest", Test: "TestTheGuideWorksAsWritten",
		Pages:   []string{"docs/slurm.md"},
		Prompts: []string{"# ", "$ ", "head# ", "node# "},
		How: "a real Slurm of one node with simulated GPUs, from the first block to the last; " +
			"systemctl, scp and make are stand-ins that keep record",
	},
	{
		Name: "tutorial", Package: "internal/tutorial", Test: "TestTheTutorialWorksAsWritten",
		Pages:   []string{"docs/tutorial.md"},
		Prompts: []string{"# ", "$ "},
		How:     "a copy of the project, one shell, a real Slurm and a browser",
	},
	{
		Name: "epd", Package: "internal/livetest", Test: "TestEpdRunsWithoutSlurmAsWritten",
		Pages:   []string{"docs/epd.md", "docs/records.md"},
		Prompts: []string{"# ", "$ "},
		How:     "epd with simulated GPUs and no Slurm; in its state folder",
	},
	{
		Name: "web", Package: "cmd/epd", Test: "TestThePageOfPagesWorksAsWritten",
		Pages: []string{"docs/web.md"},
		How: "a folder in place of /etc/epplan, and an epd whose pages are logged in to with the " +
			"tokens that were made",
	},
	{
		Name: "keys", Package: "cmd/epd", Test: "TestThePageOfKeysWorksAsWritten",
		Pages:   []string{"docs/how-to/without-munge.md"},
		Prompts: []string{"head# ", "node# "},
		How:     "folders in place of the /etc/epplan of two machines",
	},
	{
		Name: "packages", Package: "internal/packagetest", Test: "TestThePageOfPackagesWorksAsWritten",
		Pages:   []string{"docs/packages.md", "packaging/"},
		Prompts: []string{"# ", "$ "},
		How:     "the packages in a root folder of their own",
	},
	{
		Name: "ci", Package: "internal/testkit/doctest", Test: "TestTheCIRunsTheBlocksThatItClaims",
		Pages: []string{"CONTRIBUTING.md"},
		How:   ".ci/run has each line as a step, and a run that is green ran it",
	},
	{
		Name: "go", Package: "internal/testkit/doctest", Test: "TestCommandsOfGoNameWhatIsThere",
		Pages: []string{"docs/performance.md"},
		How: "packages, tests and benchmarks that a go test command names are there; they take minutes, " +
			"and are run when their figures are written down",
	},
	{
		Name: "lab", Package: "cmd/epplab", Test: "TestConsoleBlocksShowWhatCommandsPrint",
		Pages: []string{"lab/docs/", "cmd/epplab/", "examples/README.md"},
		How:   "the same folder; epplab and epplan themselves, stand-ins of Slurm's commands",
	},
	{
		Name: "cli", Package: "cmd/epplan", Test: "TestConsoleBlocksShowWhatCommandsPrint",
		Pages: []string{"README.md", "docs/", "examples/", "testdata/", "cmd/"},
		How: "a folder with the demo's files; epplan itself, a stand-in of epd behind its sockets, " +
			"stand-ins of Slurm's and NVIDIA's commands",
	},
}

// runnerOf returns the runner whose page it is, "" for none.
func runnerOf(page string) string {
	for _, r := range Runners {
		for _, pattern := range r.Pages {
			matches, err := path.Match(pattern, page)
			if err == nil && matches || strings.HasSuffix(pattern, "/") && strings.HasPrefix(page, pattern) {
				return r.Name
			}
		}
	}
	return ""
}

// promptsOf returns the prompts of a runner's blocks.
func promptsOf(runner string) []string {
	for _, r := range Runners {
		if r.Name == runner && len(r.Prompts) > 0 {
			return r.Prompts
		}
	}
	return []string{"$ "}
}
