#!/usr/bin/env bash
# Another Slurm than this machine's, from Debian packages, in a root of its own:
# nothing is installed or upgraded on the machine. Needs root, apt on Debian, and
# ../shared/slurm-lab/root.sh, which lays the packages out.
#
#   scripts/slurm.sh SUITE              lays it out, unless it's there, and says where
#   scripts/slurm.sh SUITE COMMAND...   runs a command in it, in this folder
#   go test -exec 'scripts/slurm.sh SUITE' …   runs tests in it
#
# SUITE is one of Debian's, or a release of Slurm that one of them has: bookworm or
# 22.05, trixie or 24.11, sid or 26.05. Inside, the checkout, ../shared, and the
# folder of the command are where they are outside; EPPLAN_* variables are handed on,
# and EPPLAN_SLURM_ROOT is the suite.
# There is neither Go nor a compiler there: build outside. `make test-live SLURM=SUITE`
# does. Roots are kept in .cache/slurm: remove one there to have it laid out anew.
# Exit status 3: the packages can't be had.
set -euo pipefail

fail() {
	printf 'slurm.sh: %s\n' "$*" >&2
	exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shared=$(cd "$here/../shared" 2>/dev/null && pwd) || fail "there is no ../shared beside the checkout"
roots=$here/.cache/slurm

[ $# -gt 0 ] || {
	sed -n '6,8s/^# *//p' "$0"
	exit 2
}
wanted=""
case $1 in
22.05) suite=bookworm wanted=$1 ;;
24.11) suite=trixie wanted=$1 ;;
26.05) suite=sid wanted=$1 ;;
[a-z]*) suite=$1 ;;
*) fail "$1 is neither a suite of Debian nor one of 22.05, 24.11, 26.05" ;;
esac
shift
root=$roots/$suite

# lay_out makes the root, all of it or nothing.
lay_out() {
	local new=$roots/$suite.new
	rm -rf "$new" "$new.apt"
	"$shared/slurm-lab/root.sh" "$suite" "$new" >"$roots/$suite.log" 2>&1 || {
		tail -n 20 "$roots/$suite.log" >&2
		printf "slurm.sh: the packages of %s can't be had\n" "$suite" >&2
		exit 3
	}
	rm -rf "$new.apt"
	# Nobody has configured PAM there, which runuser asks.
	local of
	for of in auth account password session; do
		printf '%s required pam_permit.so\n' "$of" >"$new/etc/pam.d/common-$of"
	done
	mv "$new" "$root"
}

[ "$(id -u)" = 0 ] || fail "a root of its own needs root"
mkdir -p "$roots"
(
	flock 9
	[ -d "$root" ] || lay_out
) 9>"$roots/$suite.lock"
version=$(chroot "$root" slurmctld -V)
case $version in
*" ${wanted:-}"*) ;;
*) fail "$suite has $version, not $wanted: name the suite to take what it has" ;;
esac
if [ $# -eq 0 ]; then
	printf '%s in %s\n' "$version" "$root"
	exit
fi

bind="$here:$here $shared:$shared"
case $1 in
/*) bind="$bind $(dirname "$1"):$(dirname "$1")" ;;
esac
handed=("EPPLAN_SLURM_ROOT=$suite")
while read -r line; do
	handed+=("$line")
done < <(env | grep '^EPPLAN_')
BIND=$bind exec "$shared/slurm-lab/root.sh" in "$root" "${handed[@]}" \
	/bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@"
