// Package livetest holds the tests of epplan and epd against a real Slurm: jobs
// are submitted with sbatch, slurmd calls the hooks, simulated GPUs are behind
// epd. They need root and the packages of scripts/test-packages.sh.
package livetest
