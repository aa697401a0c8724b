package install_test

import (
	"os"
	"syscall"
)

// owner returns a file's owner and group.
func owner(info os.FileInfo) [2]uint32 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return [2]uint32{}
	}
	return [2]uint32{st.Uid, st.Gid}
}
