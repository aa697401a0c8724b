// Package record holds what epd remembers: jobs, decisions, outcomes and
// models of workloads, as values that travel between agent and controller, lie
// in the spool and go into the database. It knows nothing of SQLite.
//
// Times are kept to the microsecond, in UTC ([StoredTime]); what was not measured or
// not predicted is an unknown [live.Number], never a zero. A job's script is known
// by its hash alone: no record has a place for its text.
package record
