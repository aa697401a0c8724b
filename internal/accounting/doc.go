// Package accounting writes what jobs took to Slurm's own accounting: their measured energy, and what they saved
// where that was measured, after all their nodes told. From 25.11 on sacct shows the energy where it
// shows that of Slurm's own meters; before, and where these were there first, it is a word in the
// AdminComment, in which others' text stays as it is.
package accounting
