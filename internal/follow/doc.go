// Package follow finds the source files that a batch script runs and reads them, as
// far as plain text and a little shell tell: python train.py, torchrun, srun and
// containers before it, python -m package.module, bash other.sh, variables that are
// assigned plain texts, cd.
//
// Nothing is run. Only regular files below one folder are read, by [os.Root]: no
// symbolic link leads out of it. Files that are too large or binary are named and
// skipped.
package follow
