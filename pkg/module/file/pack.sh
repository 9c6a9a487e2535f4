# shellcheck shell=sh disable=SC2154,SC2016,SC1007,SC2015
# What the module archive does on the host. kk_pick finds the members, the rest
# packs them; host.sh comes before it.
kk_nl='
'
kk_sources= kk_missing= kk_globbed=
kk_source() { # path
	[ -e "$1" ] || [ -h "$1" ] || {
		printf 'm%s\0' "$1"
		kk_missing=$kk_missing$1$kk_nl
		return
	}
	printf 'x%s\0' "$1"
	kk_sources=$kk_sources$1$kk_nl
}
kk_glob() { # pattern: the paths that it matches
	kk_globbed=1
	kk_ifs=$IFS IFS=
	# shellcheck disable=SC2086
	set -- $1
	IFS=$kk_ifs
	for kk_path; do
		[ ! -e "$kk_path" ] && [ ! -h "$kk_path" ] || kk_source "$kk_path"
	done
}
kk_without() { # path or pattern: leaves it out of the sources
	kk_kept=
	while IFS= read -r kk_path; do
		# shellcheck disable=SC2254
		case $kk_path in '' | $1) continue ;; esac
		kk_kept=$kk_kept$kk_path$kk_nl
	done <<END
$kk_sources
END
	kk_sources=$kk_kept
	printf 'e%s\0' "$1"
}
kk_above() { # sets kk_root: the folder that all sources, those that are missing too, are below, with a slash at its end
	kk_root=
	while IFS= read -r kk_path; do
		[ -n "$kk_path" ] || continue
		kk_dir=${kk_path%/*}/
		[ -n "$kk_root" ] || kk_root=$kk_dir
		while :; do
			case $kk_dir in "$kk_root"*) break ;; esac
			kk_root=${kk_root%/}
			kk_root=${kk_root%/*}/
		done
	done <<END
$kk_sources$kk_missing
END
	printf 'r%s\0' "$kk_root"
}
kk_below() { # what is to be packed of the sources, one on a line
	while IFS= read -r kk_path; do
		[ -n "$kk_path" ] || continue
		if [ -d "$kk_path" ] && [ ! -h "$kk_path" ]; then
			find "${kk_path%/}/" -mindepth 1 ! -type s
		else
			printf '%s\n' "$kk_path"
		fi
	done <<END | sort -u
$kk_sources
END
}
kk_excluded() { # member
	while IFS= read -r kk_pattern; do
		[ -n "$kk_pattern" ] || continue
		# shellcheck disable=SC2254
		case $1 in $kk_pattern) return 0 ;; esac
	done <<END
$kk_patterns
END
	return 1
}
kk_pick() { # destination: sets kk_members, and says what they are
	kk_above
	kk_members=
	while IFS= read -r kk_path; do
		[ -n "$kk_path" ] && [ "$kk_path" != "$1" ] || continue
		kk_name=${kk_path#"$kk_root"}
		[ -z "$kk_patterns" ] || ! kk_excluded "$kk_name" || continue
		kk_members=$kk_members$kk_name$kk_nl
		printf 'a%s\0' "$kk_path"
	done <<END
$(kk_below)
END
	kk_single=
	[ -n "$kk_force$kk_globbed" ] || [ -d "${kk_sources%"$kk_nl"}" ] || [ "$kk_asked" != 1 ] || kk_single=${kk_sources%"$kk_nl"}
}
kk_tar() {
	if [ -z "$kk_members" ]; then
		dd if=/dev/zero bs=512 count=20 2>/dev/null
	elif tar --version 2>/dev/null | grep -q GNU; then
		printf '%s' "$kk_members" | tar -C "$kk_root" --no-recursion --no-unquote --verbatim-files-from -cf - -T -
	else
		(
			cd "$kk_root" && set -f && IFS=$kk_nl || exit
			# shellcheck disable=SC2086
			exec tar -cf - --no-recursion -- $kk_members
		)
	fi
}
kk_zip() { # what links lead to is packed: zip writes links to no pipe, and many programs read none
	(cd "$kk_root" && printf '%s' "$kk_members" | zip -qX - -@)
}
kk_plain() { # what is compressed, before it is
	case $kk_format in
	zip) kk_zip ;;
	tar) kk_tar ;;
	*) if [ -n "$kk_single" ]; then cat <"$kk_single"; else kk_tar; fi ;;
	esac
}
kk_packer() {
	case $kk_format in
	gz) gzip -c ;;
	bz2) bzip2 -c ;;
	xz) xz -c ;;
	*) cat ;;
	esac
}
kk_unpacked() { # archive: what is in it, decompressed
	case $kk_format in
	gz) gzip -dc <"$1" ;;
	bz2) bzip2 -dc <"$1" ;;
	xz) xz -dc <"$1" ;;
	*) cat <"$1" ;;
	esac
}
kk_needs() {
	case $kk_format in gz) kk_tool=gzip ;; bz2) kk_tool=bzip2 ;; *) kk_tool=$kk_format ;; esac
	command -v "$kk_tool" >/dev/null 2>&1 || kk_fail "pack" "$kk_tool is not installed on the host"
}
kk_digest() {
	{ sha256sum || openssl dgst -sha256 -r; } 2>/dev/null
}
kk_packed() { # what kk_place puts in place. A failure on either side of the pipe is one
	exec 4>&1
	kk_bad=$({ { kk_plain || echo plain >&3; } | kk_packer >&4 || echo packer >&3; } 3>&1)
	[ -z "$kk_bad" ]
}
kk_look() { # destination: what is to be packed, and whether it is in the archive already
	kk_pick "$1"
	printf 's%s\0' "$kk_single"
	[ -n "$kk_sources" ] || return 0
	kk_needs
	[ -f "$1" ] || return 0
	kk_old=$(kk_unpacked "$1" 2>/dev/null | kk_digest)
	kk_new=$(kk_plain | kk_digest)
	[ "$kk_old" = "$kk_new" ] || return 0
	printf 'u\0'
}
kk_remove() { # removes what was packed
	while IFS= read -r kk_path; do
		[ -n "$kk_path" ] || continue
		kk_do "remove $kk_path" rm -rf "$kk_path"
	done <<END
$kk_sources
END
}
