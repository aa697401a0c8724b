// Package dryrun is --dry-run of both programs: a flag, and lines that say what
// a command would do.
package dryrun
