package spool

// Disk is the operating system's file system.
func Disk() FS { return disk{} }
