// Package trace reads measurements and job logs that others recorded: tables of
// measured time and power over clock settings ([ReadDVFS]).
package trace
