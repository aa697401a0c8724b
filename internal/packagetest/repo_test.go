package packagetest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestARepositoryKeepsEarlierPackages(t *testing.T) {
	script := filepath.Join(root(t), "packaging", "repo.sh")
	for kind, index := range map[string]struct{ program, file string }{
		"deb": {"apt-ftparchive", "Packages"}, "rpm": {"createrepo_c", "repodata/repomd.xml"},
	} {
		out, err := command(t.Context(), []string{"KINDS=" + kind, "PATH=" + t.TempDir()}, "/bin/bash", script,
			t.TempDir(), filepath.Join(t.TempDir(), "repo")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), index.program+" is missing: install ") {
			t.Errorf("without %s: %v %s", index.program, err, out)
		}
		if _, err := exec.LookPath(index.program); err != nil {
			t.Logf("%s: %v", kind, err)
			continue
		}
		repo := t.TempDir()
		for _, version := range []string{older, newer} {
			do(t, []string{"KINDS=" + kind}, script, filepath.Join(built(t), version), repo)
		}
		if list := debsOrRPMs(t, repo, kind); len(list) != 2*len(packages()) {
			t.Errorf("%s: %q", kind, list)
		}
		do(t, nil, "test", "-s", filepath.Join(repo, kind, index.file))
	}
}

func debsOrRPMs(t *testing.T, repo, kind string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(repo, kind, "*."+kind))
	if err != nil {
		t.Fatal(err)
	}
	return list
}
