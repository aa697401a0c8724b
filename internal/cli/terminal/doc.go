// Package terminal runs programs of commands at a terminal: it takes command lines apart, reads and writes
// files, prints results, messages and reports, and ends with an exit status. Both programs, epplan and
// epplab, are made of it.
package terminal
