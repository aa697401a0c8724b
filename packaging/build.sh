#!/usr/bin/env bash
# Builds the deb and rpm packages from the two programs, by nfpm:
#
#   NFPM=path packaging/build.sh VERSION EPPLAN EPD STAGE OUT
#
# STAGE and OUT are folders; STAGE is made anew. All files have the time of
# SOURCE_DATE_EPOCH, the last commit's where it isn't set, so that the same
# source gives the same packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ $# -eq 5 ] || { echo "usage: NFPM=path $0 VERSION EPPLAN EPD STAGE OUT" >&2; exit 2; }
version=$1 epplan=$2 epd=$3 stage=$4 out=$5

# v1.2.3 -> 1.2.3, v1.2.3-4-gabc -> 1.2.3+4.gabc; what begins with no number is before all versions.
PKGVERSION=${version#v}
case $PKGVERSION in
[0-9]*.[0-9]*) PKGVERSION=${PKGVERSION/-/+} PKGVERSION=${PKGVERSION//-/.} ;;
*) PKGVERSION=0~${PKGVERSION//-/.} ;;
esac
: "${SOURCE_DATE_EPOCH:=$(git -c safe.directory='*' log -1 --format=%ct 2>/dev/null || echo 0)}"
PKGARCH=${PKGARCH:-$("${GO:-go}" env GOARCH)}
export PKGVERSION PKGARCH SOURCE_DATE_EPOCH

rm -rf "$stage"
mkdir -p "$stage" "$out"

# put PACKAGE MODE PATH FILE... puts files into a package: at PATH, or below it where it ends in a slash.
put() {
	local package=$1 mode=$2 path=$3 file
	shift 3
	for file in "$@"; do
		[ -f "$file" ] || continue
		install -D -m "$mode" "$file" "$stage/$package$path$([[ $path != */ ]] || basename "$file")"
	done
}

# programs, manuals, completions
"$epplan" man "$stage/manual" 2>/dev/null
"$epd" man "$stage/manual" 2>/dev/null
find "$stage/manual" -type f -exec gzip -9n {} +
put epplan 755 /usr/bin/epplan "$epplan"
put epplan 644 /usr/share/man/man1/ "$stage"/manual/man1/*
put epplan-epd 755 /usr/bin/epd "$epd"
put epplan-epd 644 /usr/share/man/man8/ "$stage"/manual/man8/*
for shell in bash zsh fish; do
	"$epplan" completion $shell >"$stage/epplan.$shell"
	"$epd" completion $shell >"$stage/epd.$shell"
done
for pair in epplan:epplan epplan-epd:epd; do
	package=${pair%:*} program=${pair#*:}
	put "$package" 644 "/usr/share/bash-completion/completions/$program" "$stage/$program.bash"
	put "$package" 644 "/usr/share/zsh/vendor-completions/_$program" "$stage/$program.zsh"
	put "$package" 644 "/usr/share/zsh/site-functions/_$program" "$stage/$program.zsh"
	put "$package" 644 "/usr/share/fish/vendor_completions.d/$program.fish" "$stage/$program.fish"
done

# units, configuration
"$epplan" config init "$stage/config.toml"
put epplan-epd 644 /etc/epplan/config.toml "$stage/config.toml"
put epplan-epd 644 /usr/lib/tmpfiles.d/ packaging/tmpfiles.d/epplan.conf
put epplan-epd 644 /usr/lib/systemd/system/ packaging/systemd/epd.service
put epplan-epd 644 /etc/default/epd packaging/default/epd
put epplan-controller 644 /usr/lib/sysusers.d/ packaging/sysusers.d/epplan-controller.conf
for role in controller agent; do
	put epplan-$role 644 /usr/lib/systemd/system/ packaging/systemd/epd-$role*
	put epplan-$role 644 /etc/default/epd-$role packaging/default/epd-$role
done

# Slurm's hooks, dashboards and alert rules
"${GO:-go}" run ./packaging/hookfiles "$stage/slurm"
for hook in prolog epilog; do
	put epplan 755 /usr/share/epplan/slurm/epplan-$hook.d/ "$stage/slurm/epplan-$hook.d"/*
done
put epplan 644 /usr/share/epplan/slurm/ "$stage"/slurm/*.lua
put epplan-controller 644 /usr/share/epplan/grafana/ packaging/grafana/*.json
put epplan-controller 644 /usr/share/epplan/prometheus/ packaging/prometheus/*.rules.yml

# documentation
for package in epplan epplan-epd epplan-controller epplan-agent; do
	put $package 644 /usr/share/doc/$package/copyright LICENSE
done
put epplan 644 /usr/share/doc/epplan/ README.md CHANGELOG.md
{ find docs examples -type f ! -name '*.go' 2>/dev/null || true; } | while read -r file; do
	put epplan 644 "/usr/share/doc/epplan/$file" "$file"
done
put epplan 644 /usr/share/doc/epplan/examples/demo/ testdata/demo/*

# contents PACKAGE lists a package's files for nfpm.
contents() {
	local file path type only mode folder
	# Folders that are nobody else's go with the package.
	find "$stage/$1" -type d | sed "s|^$stage/$1||" | LC_ALL=C sort | while read -r folder; do
		[[ $folder/ != /usr/share/epplan/* && $folder/ != /usr/share/doc/$1/* && $folder/ != /etc/epplan/* ]] ||
			printf -- '- {dst: "%s", type: dir, file_info: {mode: 0755}}\n' "$folder"
	done
	find "$stage/$1" -type f | LC_ALL=C sort | while read -r file; do
		path=${file#"$stage/$1"} type=file only='' mode=0$(stat -c %a "$file")
		[[ $path != /etc/* ]] || type='config|noreplace'
		[[ $path != */vendor-completions/* ]] || only='packager: deb, '
		[[ $path != */site-functions/* ]] || only='packager: rpm, '
		printf -- '- {src: "%s", dst: "%s", type: "%s", %sfile_info: {mode: %s}}\n' "$file" "$path" "$type" "$only" "$mode"
	done
}

find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
for package in epplan epplan-epd epplan-controller epplan-agent; do
	{
		cat packaging/nfpm/$package.yaml packaging/nfpm/head.yaml
		echo contents:
		contents $package
	} >"$stage/$package.yaml"
	for packager in deb rpm; do
		"$NFPM" package -f "$stage/$package.yaml" -p $packager -t "$out" >/dev/null
	done
done
