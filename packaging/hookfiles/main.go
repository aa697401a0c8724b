// Command hookfiles writes the files that epplan install slurm puts into
// /etc/slurm, for packages: nodes that share no folder get them from there.
package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm/install"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run writes the files below a folder and returns the exit status.
func run(args []string, stderr io.Writer) int {
	if len(args) != 1 {
		_, _ = fmt.Fprintln(stderr, "usage: hookfiles FOLDER")
		return 2
	}
	if err := write(args[0]); err != nil {
		_, _ = fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

// hookDir is where a site's Slurm has its configuration.
const hookDir = "/etc/slurm"

// write writes what a site without scripts of its own gets.
func write(dir string) error {
	plan, err := install.PlanInstall(install.Site{
		Dir: hookDir, Socket: epdapi.PublicSocket, Binary: "/usr/bin/epplan", Conf: "ClusterName=cluster\n",
		Read:      func(string) (string, error) { return "", fs.ErrNotExist },
		CheckLua:  func(string, string) error { return nil },
		Unchecked: true,
	})
	if err != nil {
		return err
	}
	for i := range plan.Steps {
		step := &plan.Steps[i]
		name, ours := strings.CutPrefix(step.File, hookDir+"/")
		if !step.New || !ours {
			continue // a line for slurm.conf
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // below the folder that is named
			return err
		}
		if err := os.WriteFile(path, []byte(step.Text), fs.FileMode(step.Mode)); err != nil { //nolint:gosec // below the folder that is named
			return err
		}
	}
	return nil
}
