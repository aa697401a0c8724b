#!/usr/bin/env bash
# How many words people wrote for each page of the documentation, and for the two books in all:
# without blocks of code, and without what programs write of data (usage and columns between
# comments, the API's operations, the table of boards). Without arguments of the working tree;
# else of each commit that is named.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck disable=SC2016 # awk's own variables
count='
/^ *```/ { code = !code; next }
/^<!-- (usage|columns) of/ || /^<!-- Written by .*gpureport/ { made = 1 }
/^<!-- end of/ { made = 0; next }
code || made || /^<!--/ { next }
{ words += NF }
END { print words + 0 }'

pages() { # name and words of each page of the tree in the current folder
	local page
	for page in README.md $(find docs lab/docs -name '*.md' | sort); do
		case $page in
		*/SUMMARY.md | docs/reference/api.md) continue ;;
		esac
		echo "$page $(awk "$count" "$page")"
	done
}

if [ $# -eq 0 ]; then
	pages | sort -k 2n
	pages | awk '{ sum[$1 ~ /^lab/ ? "laboratory" : "product"] += $2 } END { for (b in sum) print b, sum[b] }'
	exit
fi
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
for commit in "$@"; do
	rm -rf "${tree:?}"/*
	git archive "$commit" | tar -x -C "$tree"
	(cd "$tree" && pages) | awk -v of="$commit" '{ sum[$1 ~ /^lab/ ? "laboratory" : "product"] += $2 }
		END { print of ":", "product", sum["product"] + 0, "laboratory", sum["laboratory"] + 0 }'
done
