# shellcheck disable=SC2086,SC2034,SC2209,SC1007 # options are split on purpose; other scripts read these variables
# What the host says about paths. Every answer is a letter and a value, ended
# by NUL, so that names may hold any byte. Paths begin with / or a letter, never with a dash.
# Nothing but functions is here: a shell that stays reads them once for many scripts.
kk_begin() {
	LC_ALL=C
	export LC_ALL
	kk_inode='%f %u %g %s %h %i %d %.9X %.9Y %.9Z/%U/%G'
	kk_lf='
'
	kk_known= kk_check= kk_want= kk_printf=
}
kk_stat() { # [-L] path: numbers and names of one inode
	[ -e "$2" ] || [ -h "$2" ] || kk_hidden "$2" || return 1
	kk_out=$(stat $1 -c "$kk_inode" "$2" 2>&1) && { kk_form=stat; return; }
	case $kk_out in
	*': No such file or directory' | *': Not a directory' | *': Too many levels of symbolic links') return 1 ;;
	*'not found' | *'option'*'c'* | *BusyBox*) ;;
	*) kk_form=error; return 2 ;;
	esac
	kk_out=$(ls -lnid $1 "$2" 2>&1) || {
		case $kk_out in *': No such file or directory' | *': Not a directory') return 1 ;; esac
		kk_form=error; return 2
	}
	kk_out="$kk_out
$(ls -ld $1 "$2" 2>/dev/null)"
	kk_form=ls
}
kk_hidden() { # path: whether something may be there that cannot be seen
	case $1 in */*) kk_dir=${1%/*} ;; *) kk_dir=. ;; esac
	kk_dir=${kk_dir:-/}
	if [ -e "$kk_dir" ]; then
		[ ! -x "$kk_dir" ]
	else
		[ -h "$kk_dir" ] || kk_hidden "$kk_dir"
	fi
}
kk_put() { # letter: prints what kk_stat found
	case $kk_form in
	stat) printf '%s%s\0' "$1" "$kk_out" ;;
	ls) printf '%s@%s\0' "$1" "$kk_out" ;;
	*) printf 'E%s\0' "$kk_out" ;;
	esac
}
kk_sum() { # letter bits path
	printf '%s' "$1"
	{ "sha$2sum" <"$3" || openssl dgst "-sha$2" -r <"$3" || shasum -a "$2" <"$3"; } 2>/dev/null
	printf '\0'
}
kk_md5() {
	printf 5
	{ md5sum <"$1" || openssl dgst -md5 -r <"$1"; } 2>/dev/null
	printf '\0'
}
kk_resolve() { # path: it with every link followed, the last part may be missing
	readlink -f "$1" 2>/dev/null || {
		kk_dir=$(cd -P "$(dirname "$1")" 2>/dev/null && pwd -P) && printf '%s/%s\n' "${kk_dir%/}" "${1##*/}"
	}
}
kk_account() { # letter database name-or-number
	kk_line=$(getent "$2" "$3" 2>/dev/null) || {
		kk_line=
		while IFS=: read -r kk_a kk_b kk_c kk_d; do
			[ "$kk_a" = "$3" ] || [ "$kk_c" = "$3" ] || continue
			kk_line=$kk_a:x:$kk_c
			break
		done <"/etc/$2"
	} 2>/dev/null
	printf '%s%s\0' "$1" "$kk_line"
}
kk_self() { # who works here, once
	[ -z "$kk_known" ] || return 0
	kk_known=1
	printf I
	id
	printf 'umask=%s\0' "$(umask)"
}
# kk_probe flags path [content-limit]: n its name, p its folder and who works
# here when it is missing, i who works here, h sha256, 1 sha1, 5 md5, m access, c content.
kk_probe() {
	case $1 in *n*) printf 'N%s\0' "$2" ;; esac
	case $1 in *i*) kk_self ;; esac
	if kk_stat '' "$2"; then
		kk_put S
		if [ -h "$2" ]; then
			printf T
			readlink "$2"
			printf '\0R'
			kk_resolve "$2"
			printf '\0'
			kk_stat -L "$2" && kk_put L
		fi
	elif [ "$?" = 2 ]; then
		kk_put E
	else
		case $1 in *p*) kk_parent "$2" ;; esac
	fi
	case $1 in *m*) kk_access "$2" ;; esac
	if [ -f "$2" ]; then
		case $1 in *h*) kk_sum H 256 "$2" ;; esac
		case $1 in *1*) kk_sum 1 1 "$2" ;; esac
		case $1 in *5*) kk_md5 "$2" ;; esac
		case $1 in *c*) kk_content "$2" "$3" ;; esac
	fi
	printf '.\0'
}
kk_parent() {
	case $1 in
	*/*) kk_dir=${1%/*} ;;
	*) kk_dir=. ;;
	esac
	# Who owns /proc/self is who works here. One stat for both.
	if [ -z "$kk_known" ] && [ -e "${kk_dir:-/}" ] && kk_out=$(stat -L -c "$kk_inode" "${kk_dir:-/}" /proc/self/ 2>/dev/null); then
		kk_known=1
		printf 'P%s\0I%s\numask=%s\0' "${kk_out%%"$kk_lf"*}" "${kk_out#*"$kk_lf"}" "$(umask)"
		return
	fi
	kk_stat -L "${kk_dir:-/}" && kk_put P
	kk_self
}
kk_access() {
	printf A
	[ -r "$1" ] && printf r
	[ -w "$1" ] && printf w
	[ -x "$1" ] && printf x
	printf '\0'
}
kk_content() { # path limit: in base64, so that it ends where it ends. After kk_stat
	if [ "$kk_form" = stat ]; then
		kk_size=${kk_out#* * * } kk_size=${kk_size%% *}
	else
		kk_size=$(wc -c <"$1") || return
	fi
	[ "$((kk_size))" -le "$2" ] || return
	printf C
	base64 <"$1" 2>/dev/null || openssl base64 <"$1" 2>/dev/null
	printf '\0'
}
kk_do() { # what command...: says what could not be done
	kk_what=$1
	shift
	"$@" || {
		printf '\n\001%s' "$kk_what" >&2
		exit 97
	}
}
kk_fail() { # what why
	printf '%s\n\001%s' "$2" "$1" >&2
	exit 97
}
kk_free() { # path: a name for a backup of it
	printf '%s.%s.%s~' "$1" "${kk_id:-$$}" "$(date +%Y-%m-%d@%H:%M:%S)"
}
# kk_place path mode uid gid backup(0|1) command...: writes what the command
# prints beside the path, then renames it into place. Empty mode, uid, gid: as they come.
kk_place() {
	kk_dst=$1 kk_mode=$2 kk_uid=$3 kk_gid=$4 kk_bak=$5
	shift 5
	case $kk_dst in */*) kk_tmp=${kk_dst%/*}/.kk-${kk_id:-$$}-${kk_dst##*/} ;; *) kk_tmp=.kk-${kk_id:-$$}-$kk_dst ;; esac
	kk_tmp=$(printf '%.200s' "${kk_tmp##*/}")
	case $kk_dst in */*) kk_tmp=${kk_dst%/*}/$kk_tmp ;; esac
	trap 'rm -f "$kk_tmp"' EXIT
	trap 'exit 130' HUP INT TERM PIPE
	rm -f "$kk_tmp"
	(umask 077; set -C; "$@" >"$kk_tmp") || kk_fail "write $kk_dst" "the new file could not be written"
	[ -z "$kk_uid" ] || kk_do "set the owner of $kk_dst" chown "$kk_uid" "$kk_tmp"
	[ -z "$kk_gid" ] || kk_do "set the group of $kk_dst" chgrp "$kk_gid" "$kk_tmp"
	[ -z "$kk_mode" ] || kk_do "set the mode of $kk_dst" chmod "$kk_mode" "$kk_tmp"
	if [ -n "$kk_want" ]; then
		kk_out=$(kk_sum '' 256 "$kk_tmp" | tr -d '\0')
		[ "${kk_out%% *}" = "$kk_want" ] || kk_fail "write $kk_dst" "what arrived has the wrong sha256"
	fi
	[ -z "$kk_check" ] || kk_out=$(eval "$kk_check" 2>&1 </dev/null) || kk_fail "write $kk_dst" "failed to validate: rc:$? error:$kk_out"
	if [ "$kk_bak" = 1 ] && [ -e "$kk_dst" ]; then
		kk_copy=$(kk_free "$kk_dst")
		kk_do "back up $kk_dst" cp -p "$kk_dst" "$kk_copy"
		printf 'B%s\0' "$kk_copy"
	fi
	[ ! -d "$kk_dst" ] || [ -h "$kk_dst" ] || kk_fail "write $kk_dst" "it is a directory"
	[ ! -h "$kk_dst" ] || rm -f "$kk_dst" # mv into a link to a folder would go into the folder
	kk_do "put $kk_dst in place" mv -f "$kk_tmp" "$kk_dst"
	trap - EXIT
}
kk_decode() { base64 -d || openssl base64 -d; }
# kk_folders path mode uid gid: creates a folder and those above it that are
# missing, and gives what it created its attributes.
kk_folders() (
	[ ! -d "$1" ] || exit 0
	case $1 in */*) kk_up=${1%/*} ;; *) kk_up=. ;; esac
	[ -d "${kk_up:-/}" ] || kk_folders "$kk_up" "$2" "$3" "$4" || exit
	kk_do "create folder $1" mkdir "$1"
	case $3:$4 in
	:) ;;
	:*) kk_do "set the group of $1" chgrp "$4" "$1" ;;
	*) kk_do "set the owner of $1" chown "$3${4:+:$4}" "$1" ;;
	esac
	[ -z "$2" ] || kk_do "set the mode of $1" chmod "$2" "$1"
)
kk_details() { # path: what only the module stat asks for
	printf M
	file -b --mime "$1" 2>/dev/null
	printf '\0V'
	lsattr -vd "$1" 2>/dev/null
	printf '\0'
}
kk_new() { # file|directory path: makes it, for its owner alone
	umask 077
	case $1 in
	file) (set -C && : >"$2") ;;
	*) mkdir "$2" ;;
	esac
}
kk_many() { # paths: each on its own, with find where it can print
	if [ -z "$kk_printf" ]; then
		kk_printf=no
		find / -maxdepth 0 -printf '' 2>/dev/null && kk_printf=yes
	fi
	if [ "$kk_printf" = yes ]; then
		find "$@" -maxdepth 0 -printf 'N%p\0S#%y %m %U %G %s %n %i %D %A@ %T@ %C@/%u/%g\0T%l\0.\0' 2>/dev/null || :
	else
		for kk_file; do kk_probe n "$kk_file"; done
	fi
}
kk_list() { # packing archive: the members of an archive of the host
	case $1 in
	ZipArchive) unzip -l "$2" ;;
	TgzArchive) gzip -dc <"$2" | kk_listtar ;;
	TarBzipArchive) bzip2 -dc <"$2" | kk_listtar ;;
	TarXzArchive) xz -dc <"$2" | kk_listtar ;;
	TarZstdArchive) zstd -dc <"$2" | kk_listtar ;;
	*) kk_listtar <"$2" ;;
	esac
}
kk_listtar() {
	if tar --version 2>/dev/null | grep -q GNU; then
		TZ=UTC0 tar --full-time --numeric-owner --quoting-style=escape -tvf -
	else
		TZ=UTC0 tar -tvf -
	fi
}
kk_packing() { # archive: its kind, by its first bytes
	case $(od -An -tx1 -N6 "$1" | tr -d ' \n') in
	1f8b*) echo TgzArchive ;;
	425a68*) echo TarBzipArchive ;;
	fd377a585a00*) echo TarXzArchive ;;
	28b52ffd*) echo TarZstdArchive ;;
	504b*) echo ZipArchive ;;
	*) echo TarArchive ;;
	esac
}
