# shellcheck shell=sh disable=SC2154
# apk_main NAME...: Alpine packages, with the same calls as Ansible's module.
apk_ask() { # WORDS...
	sources=''
	for repository in $p_repository; do sources="$sources --repository $repository --repositories-file /dev/null"; done
	# shellcheck disable=SC2086 # several options
	LC_ALL=C apk ${p_no_cache:+--no-cache} $sources "$@" </dev/null
}
apk_do() { # FAILURE WORDS...
	failure=$1
	shift
	call=$1
	scratch
	apk_ask "$@" >"$tmp/stdout" 2>"$tmp/stderr" || apk_fail ''
}
apk_told() {
	say call "$call"
	say stdout "$(cat "$tmp/stdout")"
	say stderr "$(cat "$tmp/stderr")"
}
apk_fail() { # REASON
	apk_told
	fail "$failure: $1$(cat "$tmp/stderr" "$tmp/stdout")"
}
apk_done() { # MESSAGE
	apk_told
	say changed 1
	say msg "$1"
}
apk_asked() { # NAME: whether the world file has it, in any version
	for top in $world; do
		case $top in "$1" | "$1"[@=\<\>~]?*) return 0 ;; esac
	done
	return 1
}
apk_old() { # NAME: whether a newer version exists
	apk_ask version "$1" 2>/dev/null | while read -r full sign _; do
		case ${full#"$1"-} in "$full" | *-*-*) ;; *-*) [ "$sign" != '<' ] || echo older ;; esac
	done | grep -q older
}
apk_is_virtual() { # NAME
	apk_ask -v info --description "$1" 2>/dev/null | grep -qF "$1: virtual meta package"
}
apk_add() { # NAME...
	if [ -f "$p_world" ]; then
		world=$(cat "$p_world")
	elif [ "$p_world" = /etc/apk/world ]; then
		world='' # nothing was ever installed explicitly
	else
		fail "the world file $p_world does not exist on the host"
	fi
	older=''
	for word; do
		shift
		if apk_is_virtual "$word"; then
			for part in $(apk_ask -v info --depends "$word" 2>/dev/null); do
				! { [ "$p_state" = latest ] && apk_old "$part"; } || older="$older $part"
			done
		elif ! apk_asked "$word"; then
			set -- "$@" "$word"
		elif [ "$p_state" = latest ] && apk_old "$word"; then
			older="$older $word"
		fi
	done
	for word in $older; do set -- "$@" "$word"; done
	if [ $# -eq 0 ]; then
		say msg "package(s) already installed"
		return
	fi
	names=$*
	[ -z "$p_check" ] || set -- --simulate "$@"
	[ -z "$older" ] || set -- --upgrade "$@"
	apk_do "failed to install $names" add "$@"
	apk_done "installed $names package(s)"
}
apk_has() { apk_ask -v info --installed "$1" >/dev/null 2>&1; }
apk_del() { # NAME...
	for word; do
		shift
		! apk_has "$word" || set -- "$@" "$word"
	done
	if [ $# -eq 0 ]; then
		say msg "package(s) already removed"
		return
	fi
	names=$*
	[ -z "$p_check" ] || set -- --simulate "$@"
	apk_do "failed to remove $names package(s)" del --purge "$@"
	for word in $names; do
		# Packages that others need are kept, and apk exits with success.
		[ -n "$p_check" ] || ! apk_has "$word" || apk_fail "$word is still installed, since others need it: "
	done
	apk_done "removed $names package(s)"
}
apk_upgrade() {
	[ -z "$p_available" ] || set -- --available
	[ -z "$p_check" ] || set -- --simulate "$@"
	apk_do "failed to upgrade packages" upgrade "$@"
	if grep -q '^([0-9]*/[0-9]*) ' "$tmp/stdout"; then
		apk_done "upgraded packages"
	else
		apk_told
		say msg "packages already upgraded"
	fi
}
apk_main() {
	say apk ''
	has apk || fail "apk is not installed on the host"
	if [ -n "$p_update_cache" ]; then
		[ -n "$p_check" ] || apk_do "could not update package db" update
		if [ $# -eq 0 ] && [ -z "$p_upgrade" ]; then
			[ -n "$p_check" ] || apk_told
			say changed 1
			say msg "updated repository indexes"
			return
		fi
	fi
	case ${p_upgrade:+upgrade}$p_state in
	upgrade*) apk_upgrade ;;
	absent) apk_del "$@" ;;
	*) apk_add "$@" ;;
	esac
}
