package slurmconf_test

import (
	"fmt"
	"testing/fstest"

	"github.com/epplan/epplan/slurm/slurmconf"
)

// The first GPU of Slurm may be the driver's second: gres.conf says so by device files.
func ExampleReadGres() {
	files := fstest.MapFS{
		"slurm.conf": {Data: []byte("NodeName=n1 Gres=gpu:a100:2\n")},
		"gres.conf":  {Data: []byte("NodeName=n1 Name=gpu Type=a100 File=/dev/nvidia[0-1]\n")},
	}
	gpus, err := slurmconf.ReadGres(files, ".", "n1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(gpus.DriverIndexes([]slurmconf.DriverGPU{
		{Minor: 1, Model: "NVIDIA A100-SXM4-40GB"},
		{Minor: 0, Model: "NVIDIA A100-SXM4-40GB"},
	}))
	// Output:
	// [1 0] <nil>
}
