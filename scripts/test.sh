#!/bin/sh
# Runs go test with the flags and packages given and prints what go test prints. The
# end shows what failed, also where all was shown by -v, and says in one line how many
# tests were skipped and for want of what. It needs a POSIX system alone.
set -u

verbose=
for arg in "$@"; do
	case $arg in -v | -v=true | -test.v) verbose=1 ;; esac
done

# The status of go test takes descriptor 3 past awk. Tests that run side by side write
# in between each other: a line "=== NAME" says whose the next lines are. Of a test
# with more than 300 lines the last ones are shown, and its own messages; the first of
# these once more at the end.
exec 4>&1
status=$({ {
	"${GO:-go}" test -v "$@" 2>&1
	echo $? >&3
} | awk -v verbose="$verbose" '
	function want(said) {
		if (said ~ /C compiler|gcc|cc isn/) return "a C compiler"
		if (said ~ /shared data/) return "../shared/data"
		if (said ~ /test-packages|there is no |isn.t installed|another program/)
			return "scripts/test-packages.sh"
		if (said ~ /(only|by) root/) return "root"
		return "other things"
	}
	verbose { print; fflush() }
	$1 == "===" { name = $3; next }
	/^ *--- (PASS|FAIL|SKIP): / {
		if ($2 == "FAIL:") {
			said[$3, ++lines[$3]] = $0
			next
		}
		if ($2 == "SKIP:") {
			wanted[want(said[$3, lines[$3]])]++
			if (/^ /) cases++; else tests++
		}
		delete lines[$3]
		next
	}
	/^(ok|FAIL|\?)[ \t]/ {
		for (test in lines) {
			if (/^FAIL/) failed = failed test ":\n"
			own = 0
			for (i = 1; /^FAIL/ && i <= lines[test]; i++) {
				isOwn = said[test, i] ~ /^ *[a-z_0-9]+\.go:[0-9]+: /
				if (i > lines[test] - 300 || isOwn)
					failed = failed said[test, i] "\n"
				if (isOwn && ++own <= 4)
					short = short test ": " substr(said[test, i], 1, 300) "\n"
			}
			delete lines[test]
		}
		name = ""
	}
	/^(PASS|FAIL)$|\[no test files\]$/ { next }
	name != "" { said[name, ++lines[name]] = $0; next }
	!verbose { print; fflush() }
	END {
		if (failed) printf "\nWhat failed:\n%s\nIn short:\n%s", failed, short
		for (reason in wanted) list = list (list ? ", " : "") reason " (" wanted[reason] ")"
		if (list) {
			skipped = "Skipped: " tests + 0 " tests and " cases + 0 " cases of others, for want of "
			print skipped list (verbose ? "" : "; TESTFLAGS=-v names each")
		}
	}' >&4; } 3>&1)
exit "$status"
