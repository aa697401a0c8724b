// Package spooltest has a file system for tests of what must survive crashes: in
// memory, crashing at a chosen operation, and losing then what a real one may lose.
package spooltest
