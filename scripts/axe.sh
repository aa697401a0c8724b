#!/usr/bin/env bash
# Fetches axe-core, which tests of pages look for barriers with, to .cache/axe.
# Needs npm; does nothing when it is there already. It is part of no program
# and is never committed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=4.14.1
sha512=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
axe=.cache/axe

[ "$(cat "$axe/version" 2>/dev/null)" != "$version" ] || [ ! -s "$axe/axe.min.js" ] || exit 0
command -v npm >/dev/null || {
	echo 'axe: npm is not installed: scripts/test-packages.sh installs it' >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'axe: fetching axe-core %s\n' "$version"
npm pack --silent --ignore-scripts --cache "$work/cache" --pack-destination "$work" "axe-core@$version" >/dev/null
archive=$work/axe-core-$version.tgz
printf '%s  %s\n' "$sha512" "$archive" | sha512sum --check --quiet || {
	printf 'axe: axe-core %s is not what was expected: sha512 %s\n' "$version" "$sha512" >&2
	exit 1
}
tar -xzf "$archive" -C "$work" package/axe.min.js package/LICENSE
mkdir -p "$axe"
mv "$work/package/axe.min.js" "$work/package/LICENSE" "$axe/"
printf '%s\n' "$version" >"$axe/version"
