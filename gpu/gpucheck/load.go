package gpucheck

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/epplan/epplan/gpu"
)

// loadSource is a program that keeps one GPU busy for as many seconds as its argument says, in CUDA and
// in HIP.
//
//go:embed load.cu
var loadSource []byte

// How long compiling may take, how long the program may run, and how long it gets to begin.
const (
	compileTime = 2 * time.Minute
	loadTime    = 2 * time.Minute
	beginTime   = 2 * time.Second
)

// CompilerLoad is work made by a compiler that this machine has: nvcc, hipcc. Without one it is nil, and says
// why. Programs are put into a folder that lasts as long as the check.
func CompilerLoad(folder string, compilers ...string) (
	load func(context.Context, gpu.Identity) (func(), error), why string,
) {
	for _, name := range compilers {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		return func(ctx context.Context, id gpu.Identity) (func(), error) {
			program := filepath.Join(folder, "load")
			if _, err := os.Stat(program); err != nil {
				if err := compile(ctx, path, folder, program); err != nil {
					return nil, err
				}
			}
			return startProgram(ctx, program, id)
		}, ""
	}
	return nil, fmt.Sprintf("no compiler for a small load is here, looked for %v", compilers)
}

// compile makes the program.
func compile(ctx context.Context, compiler, folder, program string) error {
	source := program + ".cu"
	if filepath.Base(compiler) == "hipcc" {
		source = program + ".hip"
	}
	if err := os.WriteFile(source, loadSource, 0o600); err != nil {
		return fmt.Errorf("the load: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, compiler, "-O2", "-o", program, source) //nolint:gosec // found by its name
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.200s", compiler, err, out)
	}
	return nil
}

// startProgram runs it on one GPU alone.
func startProgram(ctx context.Context, program string, id gpu.Identity) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	cmd := exec.CommandContext(ctx, program, "100")
	cmd.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES="+id.UUID, "ROCR_VISIBLE_DEVICES="+id.UUID)
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("the load: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		cancel()
		return nil, fmt.Errorf("the load ended by itself: %w", errors.Join(err, context.Cause(ctx)))
	case <-time.After(beginTime):
	}
	return func() {
		cancel()
		<-ended //nolint:errcheck // it was killed
	}, nil
}
