#!/usr/bin/env bash
# How large the product and the laboratory are: lines, tokens, packages, types, words, the
# largest rooms and types. Without arguments of the working tree; else of each commit that is named, all
# by the same rules. Needs Go and git.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

figures() {
	EPPLAN_HOUSE=$1 go test -count 1 -v -run '^TestPackagesAndTypesAreOfASizeToHoldInMind$' ./internal/archtest |
		sed -nE '/coupling_test.go:[0-9]+: product: /,/^---/ { s/^ *coupling_test.go:[0-9]+: //; /^---/!p }'
}

if [ $# -eq 0 ]; then
	figures ''
	exit
fi
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree/house"; rm -rf "$tree"' EXIT
git worktree add --quiet --detach "$tree/house"
for commit in "$@"; do
	git -C "$tree/house" checkout --quiet --force --detach "$commit"
	printf '%s: %s\n' "$commit" "$(figures "$tree/house")"
done
