# shellcheck shell=sh disable=SC2154
# dnf in an empty root. It verifies what it fetches by the metadata of its sources; each package must have a
# signature, too.
dnf_conf() {
	set -- "$root/cache" "$root/log" "$root/persist"
	cat >"$root/dnf.conf" <<END || fail "write $root/dnf.conf"
[main]
cachedir=$1
logdir=$2
persistdir=$3
keepcache=0
END
	[ -n "$lines" ] || return 0
	number=0
	printf '%s\n' 'reposdir=/dev/null' "${kk_proxy:+proxy=$kk_proxy}" >>"$root/dnf.conf"
	while IFS= read -r url; do
		number=$((number + 1))
		printf '%s\n' "[kk$number]" "name=kk$number" "baseurl=$url" enabled=1 >>"$root/dnf.conf"
	done <<END
$lines
END
}
dnf_run() { # WORDS...: dnf in the empty root, with its output in $tmp/out and $tmp/err
	scratch
	dnf -q -y -c "$root/dnf.conf" --installroot="$root/root" --releasever="${p_distribution##*-}" --forcearch="$arch" \
		--disableplugin=local "$@" >"$tmp/out" 2>"$tmp/err" </dev/null && return
	fail "dnf $1: $(tail -n 20 "$tmp/err" "$tmp/out")"
}
dnf_keys() { # sets db, where the keys of the sources are
	db=''
	[ -n "$lines" ] || return 0
	[ -n "$keyring" ] || fail "artifact.repositories.$p_distribution.keyring: a file with the keys that sign the packages \
is needed"
	rm -rf "$root/rpmdb"
	mkdir "$root/rpmdb"
	rpmkeys --dbpath "$root/rpmdb" --import "$keyring" 2>"$tmp/err" || fail "read the keys of $keyring: $(cat "$tmp/err")"
	db=$root/rpmdb
}
dnf_resolve() { # NAME...
	for program in dnf rpm rpmkeys sha256sum; do
		has $program || fail "$program is not installed: install dnf, dnf-plugins-core and rpm, or resolve on a host that \
runs $p_distribution with --packages-on HOST"
	done
	case $p_arch in amd64) arch=x86_64 ;; *) arch=aarch64 ;; esac
	choose_sources
	empty_root
	dnf_conf
	mkdir -p "$root/root"
	dnf_run download --arch "$arch" --arch noarch --resolve --alldeps --urls -- "$@"
	sed -n 's:.*/\([^/]*\.rpm\)$:\1:p' "$tmp/out" | sort -u >"$root/resolved"
	[ -s "$root/resolved" ] || fail "dnf download: nothing was resolved: $(cat "$tmp/out" "$tmp/err")"
	for file in "$root"/fetched/*.rpm; do
		grep -qxF "${file##*/}" "$root/resolved" || rm -f "$file"
	done
	dnf_run download --arch "$arch" --arch noarch --resolve --alldeps --destdir "$root/fetched" -- "$@"
	cd "$root/fetched" || fail "open $root/fetched"
	dnf_keys
	rpmkeys ${db:+--dbpath "$db"} --define '_pkgverify_level signature' -K ./*.rpm >"$tmp/out" 2>&1 ||
		fail "packages without a signature of the keys: $(grep -v ': digests signatures OK$' "$tmp/out")"
	for file in *.rpm; do
		say file "$file"
		say nevra "$(rpm -qp --nosignature --qf '%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE} %{ARCH}' "./$file" 2>/dev/null)"
		say sha256 "$(sha256sum <"./$file")"
		say size "$(wc -c <"./$file")"
	done
}
# dnf_metadata: writes the metadata of p_repository to p_out
dnf_metadata() {
	has createrepo_c || fail "createrepo_c is not installed on the control node: install it (package createrepo-c or \
createrepo_c)"
	scratch
	createrepo_c -q --no-database --revision 0 --set-timestamp-to-revision --workers 1 --checksum sha256 \
		--general-compress-type gz -o "$p_out" "$p_repository" >"$tmp/out" 2>&1 || fail "createrepo_c: $(cat "$tmp/out")"
}
