package follow_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/follow"
)

// folder has some files below a temporary folder, and a secret beside it.
func folder(t *testing.T) *os.Root {
	t.Helper()
	outer := t.TempDir()
	dir := filepath.Join(outer, "work")
	for name, text := range map[string]string{
		"../secret.py": "secret", "train.py": "epochs = 3", "src/model.py": "layers = 4",
		"src/pkg/__main__.py": "main = 1",
		".env":                "KEY=secret", ".venv/bin/activate.sh": "secret",
		"src/run.sh": "python model.py --deep",
		"inner.sh":   "cd src\n./run.sh\n", "env.sh": "CODE=src\n", "loop.sh": "bash loop.sh\n",
		"a.out": "\x7fELF\x00", "image.sif": "\x00", "big.py": strings.Repeat("x", follow.MaxFile+1),
		"full.py": strings.Repeat("y", follow.MaxFile),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("p%02d.py", i)), []byte("p"),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"out.py": "../secret.py", "in.py": "train.py",
		"dev.py": "/dev/zero",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.py"), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(dir, "huge.sh")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 10<<30); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestScriptsAreFollowedToWhatTheyRun(t *testing.T) {
	root := folder(t)
	for script, want := range map[string]string{
		"python train.py --epochs 3":                                           "train.py",
		"python3.11 -u -W ignore train.py":                                     "train.py",
		"srun -n 4 --gpus=2 python train.py &":                                 "train.py",
		"mpirun -np 8 ./src/run.sh":                                            "src/run.sh",
		"torchrun --nproc_per_node=4 train.py --lr 1":                          "train.py",
		"accelerate launch --num_processes 2 train.py":                         "train.py",
		"python -m torch.distributed.run --nproc_per_node 2 train.py":          "train.py",
		"torchrun -m src.model":                                                "src/model.py",
		"singularity exec --nv image.sif python train.py":                      "train.py",
		"apptainer run --bind /data:/data image.sif bash inner.sh":             "inner.sh src/run.sh",
		"cd src && python -m pkg":                                              "src/pkg/__main__.py",
		"cd src; python model.py":                                              "src/model.py",
		"(cd src; python model.py)":                                            "src/model.py",
		"bash inner.sh":                                                        "inner.sh src/run.sh",
		"source env.sh\npython $CODE/model.py":                                 "env.sh src/model.py",
		"DIR=src\nFILE=\"${DIR}/model.py\"\nexport OTHER=1 \npython \"$FILE\"": "src/model.py",
		"python ${MAIN:-train.py}":                                             "train.py",
		"cd $SLURM_SUBMIT_DIR\npython train.py":                                "train.py",
		"srun \\\n  --ntasks=2 \\\n  python \\\n  train.py":                    "train.py",
		"OMP_NUM_THREADS=4 python train.py":                                    "train.py",
		"for i in 1 2; do python train.py; done":                               "train.py",
		"if true; then\n\tpython in.py\nfi":                                    "in.py",
		"python train.py\npython train.py":                                     "train.py",
		"bash loop.sh":                                                         "loop.sh",
		"python -c 'import train'":                                             "",
		"python $UNKNOWN/train.py":                                             "",
		"F=$(ls *.py)\npython $F":                                              "",
		"cd /elsewhere\npython train.py":                                       "",
		"cd ..\npython secret.py":                                              "",
		"python ../secret.py":                                                  "",
		"python /etc/passwd":                                                   "",
		"# python train.py":                                                    "",
		"echo done":                                                            "",
	} {
		got := follow.Script(root, "#!/bin/bash\n"+script+"\n", "")
		if names := strings.Join(got.Files, " "); names != want {
			t.Errorf("%q: %q, want %q; skipped %v", script, names, want, got.Skipped)
		}
		if strings.Contains(got.Text, "secret") && !strings.Contains(script, "secret") {
			t.Errorf("%q: read what lies outside", script)
		}
	}
	if got := follow.Script(root, "python model.py", "src"); !slices.Equal(got.Files,
		[]string{"src/model.py"}) || !strings.Contains(got.Text, "layers = 4") {
		t.Errorf("--chdir: %+v", got)
	}
}

// Pipes would hang, and devices never end.
func TestWhatIsNoPlainSourceIsNamedAndSkipped(t *testing.T) {
	root := folder(t)
	for file, why := range map[string]string{
		"out.py": "path escapes from parent", "dev.py": "path escapes from parent",
		"pipe.py": "is no regular file", "big.py": "has more than 65536 bytes",
		".env": "is hidden", ".venv/bin/activate.sh": "is hidden", "missing.py": "no such file or directory",
		"src": "is no regular file",
	} {
		done := make(chan *follow.Sources, 1)
		go func() { done <- follow.Script(root, "python "+file, "") }()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		select {
		case got := <-done:
			if len(got.Files) != 0 || len(got.Skipped) != 1 ||
				got.Skipped[0] != (follow.Skipped{Name: file, Why: why}) {
				t.Errorf("%s: %+v, want %s", file, got, why)
			}
		case <-ctx.Done():
			t.Fatalf("%s: it hangs", file)
		}
		cancel()
	}
	for script, want := range map[string]string{
		"srun ./a.out": "a.out is binary",
		"source .env":  ".env is hidden", "bash huge.sh": "huge.sh has more than 65536 bytes",
		"\x7fELF\x00": "the script is binary",
	} {
		got := follow.Script(root, script, "")
		if len(got.Skipped) != 1 || got.Skipped[0].Name+" "+got.Skipped[0].Why != want ||
			len(got.Files) != 0 {
			t.Errorf("%q: %+v, want %s", script, got, want)
		}
	}
}

func TestFilesAreBoundedInNumberAndSize(t *testing.T) {
	root := folder(t)
	var script strings.Builder
	for i := range 12 {
		fmt.Fprintf(&script, "python p%02d.py\n", i)
	}
	if got := follow.Script(root, script.String(), ""); len(got.Files) != follow.MaxFiles ||
		len(got.Skipped) != 4 {
		t.Errorf("%+v", got)
	}
	dir := root.Name()
	script.Reset()
	for i := range 5 {
		name := fmt.Sprintf("full%d.py", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("y", follow.MaxFile)),
			0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&script, "python %s\n", name)
	}
	if got := follow.Script(root, script.String(), ""); len(got.Files) != 4 || len(got.Skipped) != 1 ||
		len(got.Text) > follow.MaxTotal+1000 {
		t.Errorf("%d files of %d bytes, skipped %v", len(got.Files), len(got.Text), got.Skipped)
	}
}

func FuzzScript(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte("x"), 0o600); err != nil {
		f.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, seed := range []string{
		"", "python train.py", "${", "$", "A=${A:-$B}$C\npython $A", "cd \\\n..",
		"\"", "python -m ..", "bash -c", ". .",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		for _, name := range follow.Script(root, script, "").Files {
			if name != "train.py" {
				t.Errorf("%q: read %q", script, name)
			}
		}
	})
}
