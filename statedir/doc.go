// Package statedir keeps epd's files to epd. What lies in a state folder is
// believed, and acted on by root: clocks are given back, Slurm's queue is changed.
// So a folder is used only where nobody but root and the process's own user could
// have put anything, as sshd looks at keys: it belongs to one of these two, nobody
// else may write to it, and the same holds for each folder on the way, but that
// everybody may write to one with the sticky bit, such as /tmp. A symbolic link is
// followed if root or the process's own user made it. Access control lists aren't
// looked at.
//
// Once a folder has passed, nobody else can change what is in it. What somebody
// may have put there before is found file by file: [CheckOwnFile].
package statedir
