# shellcheck shell=sh disable=SC2154,SC2086
# apk_main NAME...: packages of Alpine.
apk_get() { # WORDS...
	scratch
	apk "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
	rc=$?
	say stdout "$(cat "$tmp/stdout")"
	say stderr "$(cat "$tmp/stderr")"
	say rc "$rc"
	[ "$rc" -eq 0 ] || fail "apk: $(cat "$tmp/stderr" "$tmp/stdout")"
}
apk_main() {
	has apk || fail "there is no apk on the host"
	dry='' acted=''
	[ -z "$p_check" ] || dry=--simulate
	if [ -n "$p_update_cache" ] && [ -z "$p_check" ]; then
		apk_get update
		[ $# -gt 0 ] || [ -n "$p_upgrade" ] || say changed 1
	fi
	if [ -n "$p_upgrade" ]; then
		apk_get upgrade $dry
	elif [ $# -gt 0 ]; then
		apk_names "$p_state" "$@"
	else
		return 0
	fi
	[ -n "$p_upgrade$acted" ] || return 0
	case $(cat "$tmp/stdout") in *Installing* | *Upgrading* | *Downgrading* | *Purging* | *Replacing*) say changed 1 ;; esac
}
apk_names() { # STATE NAME...
	state=$1
	shift
	for word; do
		shift
		if apk info -e "$word" >/dev/null 2>&1; then
			[ "$state" = present ] || set -- "$@" "$word"
		else
			[ "$state" = absent ] || set -- "$@" "$word"
		fi
	done
	[ $# -gt 0 ] || return 0
	acted=1
	case $state in
	absent) apk_get del $dry -- "$@" ;;
	latest) apk_get add --upgrade $dry -- "$@" ;;
	*) apk_get add $dry -- "$@" ;;
	esac
}
