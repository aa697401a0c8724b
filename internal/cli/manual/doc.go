// Package manual writes manual pages: one for a program, and one for each of its
// commands, from the definitions that also parse its command line. So a flag
// can't be there and not be in the manual.
package manual
