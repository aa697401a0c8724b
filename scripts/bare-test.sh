#!/usr/bin/env bash
# Runs `make test` on a fresh clone of HEAD as on a machine that has Go, make, git
# and a POSIX system and nothing else: no C compiler, no bash, no Lua, no Slurm, no
# ../shared. Root runs it as nobody. The home is empty, and the files that tests make
# are closed to others. Modules come from this machine's cache where they are in it.
# Arguments go to make: scripts/bare-test.sh TESTFLAGS=-v
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# All that is in PATH: what README.md asks for, utilities of POSIX, and what no system
# goes without although POSIX does.
programs=(
	go make git sh
	awk basename cat chmod cmp comm cp cut date dd df diff dirname du echo env expr false find fold getconf grep head
	iconv id join kill link ln locale logname ls mkdir mkfifo mv nice nl nohup od paste pathchk pr printf ps pwd rm
	rmdir sed sleep sort split stty tail tee test touch tr true tsort tty uname uniq unlink wc xargs
	gzip install mktemp
)

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir"/{bin,home,tmp}
for program in "${programs[@]}"; do
	path=$(type -P "$program") || {
		printf 'bare-test: %s is not installed\n' "$program" >&2
		exit 1
	}
	ln -s "$path" "$dir/bin/"
done

git clone --quiet --no-hardlinks . "$dir/epplan"
proxy=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
flags=$(go env GOFLAGS)
cd "$dir/epplan"
GOMODCACHE=$dir/modules GOPROXY=$proxy go mod download -modcacherw

as=()
if [ "$(id -u)" -eq 0 ]; then
	user=$(id -u nobody) group=$(id -g nobody)
	chown -R "$user:$group" "$dir"
	as=(setpriv --reuid "$user" --regid "$group" --clear-groups)
fi
umask 077
"${as[@]}" env -i PATH="$dir/bin" HOME="$dir/home" TMPDIR="$dir/tmp" \
	GOMODCACHE="$dir/modules" GOPROXY=off GOFLAGS="$flags" make test "$@"
