// Package completion answers a shell that asks what may come next on a command
// line: commands, flags, and the values of those flags that have a few. The
// scripts for bash, zsh and fish know nothing themselves: they hand over the
// words so far, and offer files where there is no answer.
package completion
