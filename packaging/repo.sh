#!/usr/bin/env bash
# Makes an apt and a dnf repository of packages, for a web server or a shared folder:
#
#   packaging/repo.sh PACKAGES OUT [KEY]
#
# OUT/deb and OUT/rpm keep the packages of earlier calls, so that sites can go back. With KEY, an id of
# GnuPG's, their indexes are signed, and OUT/epplan.asc is the public key. KINDS="deb rpm" chooses which.
set -euo pipefail

[ $# -eq 2 ] || [ $# -eq 3 ] || { sed -n '4s/^# *//p' "$0" >&2; exit 2; }
packages=$1 out=$2 key=${3:-}

fail() {
	echo "repo.sh: $*" >&2
	exit 1
}

# need PROGRAM PACKAGES tells which package has a program that is missing.
need() { command -v "$1" >/dev/null || fail "$1 is missing: install $2, or leave the repository out by KINDS"; }

sign() { gpg --batch --yes --local-user "$key" --armor "$@"; }

[ -z "$key" ] || need gpg "gnupg (rpm: gnupg2)"
kinds=${KINDS:-deb rpm}
for kind in $kinds; do # before anything is made
	case $kind in
	deb) need apt-ftparchive "apt-utils (Debian, Ubuntu)" ;;
	rpm) need createrepo_c "createrepo_c (Debian, Ubuntu: createrepo-c)" ;;
	*) fail "there is no kind $kind: want deb or rpm" ;;
	esac
	compgen -G "$packages/*.$kind" >/dev/null || fail "$packages has no $kind packages: make packages"
done

for kind in $kinds; do
	mkdir -p "$out/$kind"
	cp -u "$packages"/*."$kind" "$out/$kind/"
done
for kind in $kinds; do
	case $kind in
	deb) (
		cd "$out/deb"
		rm -f InRelease Release Release.gpg
		apt-ftparchive packages . >Packages
		gzip -9nkf Packages
		apt-ftparchive -o APT::FTPArchive::Release::Origin=epplan -o APT::FTPArchive::Release::Label=epplan \
			release . >../Release.new
		mv ../Release.new Release
		[ -z "$key" ] || sign --clearsign --output InRelease Release
	) ;;
	rpm)
		createrepo_c --quiet --update "$out/rpm"
		rm -f "$out/rpm/repodata/repomd.xml.asc"
		[ -z "$key" ] || sign --detach-sign "$out/rpm/repodata/repomd.xml"
		;;
	esac
done
[ -z "$key" ] || gpg --armor --export "$key" >"$out/epplan.asc"
[ -n "$key" ] || echo "repo.sh: not signed: name a key by KEY=…" >&2
