// Package sweep has work that is made of many independent parts done by a job array
// of Slurm, or on one machine: it keeps what the parts come to in a folder that the
// machines share, has those done again that were lost, and gathers all of them in
// their order, whoever did them and when.
//
// The folder is the truth, and Slurm is only asked whether to go on waiting. A part is
// a file that is put in place as a whole, with a checksum: whoever finds none does the
// part, and who does it again writes the same. So tasks, and those who wait for them,
// may be killed at any time.
package sweep
