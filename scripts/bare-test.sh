#!/usr/bin/env bash
# Runs `make test` on a fresh clone of HEAD as on a machine that has Go, make, git and
# a POSIX system, and nothing else: no C compiler, no bash, no Slurm, no ../shared.
# The user is nobody where this one is root, the home is empty, modules come from this
# machine's cache, and files that the tests make are closed to others (umask 077).
# Arguments go to make: scripts/bare-test.sh TESTFLAGS=-v
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What is in PATH: what the Makefile needs, the utilities of POSIX that a base system
# has installed, and three that every one has beside them.
needed=(go make git sh)
posix=(
	awk basename cat chgrp chmod chown cksum cmp comm cp cut date dd df diff dirname du echo env expand expr false
	find fold getconf grep head iconv id join kill link ln locale logname ls mkdir mkfifo mv nice nl nohup od paste
	pathchk pr printf ps pwd readlink rm rmdir sed sleep sort split stty tail tee test timeout touch tr true tsort
	tty uname unexpand uniq unlink wc xargs
)
beside=(gzip install mktemp)

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir "$dir"/{bin,home,tmp}
for name in "${needed[@]}" "${posix[@]}" "${beside[@]}"; do
	program=$(type -P "$name") || {
		printf 'bare-test: there is no %s\n' "$name" >&2
		exit 1
	}
	ln -s "$program" "$dir/bin/$name"
done

git clone --quiet --no-hardlinks . "$dir/epplan"
cache=$(go env GOMODCACHE)/cache/download
proxy=$(go env GOPROXY)
cd "$dir/epplan"
GOMODCACHE=$dir/modules GOPROXY="file://$cache,$proxy" go mod download -modcacherw

as=()
if [ "$(id -u)" -eq 0 ]; then
	user=$(id -u nobody) group=$(id -g nobody)
	chown -R "$user:$group" "$dir"
	as=(setpriv --reuid "$user" --regid "$group" --clear-groups)
fi
umask 077
"${as[@]}" env -i PATH="$dir/bin" HOME="$dir/home" TMPDIR="$dir/tmp" GOMODCACHE="$dir/modules" GOPROXY=off make test "$@"
