#!/usr/bin/env bash
# Installs the Debian packages that the tests against a real Slurm need: Slurm
# itself, munge, Lua, and a database for Slurm's accounting; the solver of
# mixed-integer programs that exact answers are compared with; and the browser
# that pages are looked at with, for which it fetches axe-core. Needs root. None
# of them is started. With arguments it installs those packages alone.
set -euo pipefail

packages=(
	slurmctld slurmd slurm-client slurmdbd munge
	lua5.1 lua-socket procps
	mariadb-server-core mariadb-client-core
	glpk-utils sqlite3 prometheus
	rpm busybox-static mandoc man-db zsh fish systemd
	chromium fonts-dejavu-core
)
command -v npm >/dev/null || packages+=(npm)
axe=$(dirname "${BASH_SOURCE[0]}")/axe.sh
if [ $# -gt 0 ]; then
	packages=("$@")
	axe=true
fi

missing=()
for p in "${packages[@]}"; do
	dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exec "$axe"
printf 'test-packages: installing %s\n' "${missing[*]}"

# Packages must not start their services.
guard=/usr/sbin/policy-rc.d
if [ ! -e "$guard" ] && [ ! -d /run/systemd/system ]; then
	printf '#!/bin/sh\nexit 101\n' >"$guard"
	chmod 755 "$guard"
	trap 'rm -f "$guard"' EXIT
fi

export DEBIAN_FRONTEND=noninteractive
install=(apt-get -o DPkg::Lock::Timeout=300 -y -qq --no-install-recommends install "${missing[@]}")
"${install[@]}" </dev/null >/dev/null 2>&1 || {
	apt-get -o DPkg::Lock::Timeout=300 -qq update
	"${install[@]}" </dev/null >/dev/null
}
"$axe"
