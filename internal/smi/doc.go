// Package smi describes GPU models by what nvidia-smi, rocm-smi and amd-smi print of the GPUs of a
// node: their clocks and power limits. What they don't print is estimated, and marked so.
package smi
