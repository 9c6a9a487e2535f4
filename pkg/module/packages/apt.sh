# shellcheck shell=sh disable=SC2154
# apt_main NAME...: packages of Debian and its derivatives.
# apt-get itself predicts its changes (-s needs no lock and changes nothing).
apt_update_time() { # images are built with empty package lists, so the age of the folder alone means nothing
	updated=0
	set -- /var/lib/apt/lists/*Release
	[ -e "$1" ] || return 0
	for stamp in /var/lib/apt/periodic/update-success-stamp /var/lib/apt/lists; do
		[ -e "$stamp" ] || continue
		at=$(stat -c %Y "$stamp")
		[ "$at" -le "$updated" ] || updated=$at
	done
}
# apt_get ARGS...: runs apt-get, and retries while another process holds a lock.
apt_get() {
	scratch
	waited=0
	while :; do
		apt-get "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
		rc=$?
		[ "$rc" -ne 0 ] || break
		case $(cat "$tmp/stderr") in
		*'Could not get lock'* | *'Unable to acquire the dpkg frontend lock'* | *'Unable to lock'*) ;;
		*) break ;;
		esac
		[ "$waited" -lt "${p_lock_timeout:-60}" ] || break
		sleep 1
		waited=$((waited + 1))
	done
	return "$rc"
}
apt_said() {
	say stdout "$(cat "$tmp/stdout")"
	say stderr "$(cat "$tmp/stderr")"
	say rc "$rc"
}
apt_update() {
	apt_update_time
	before=$updated due=''
	[ -n "$p_update_cache" ] || return 0
	now=$(date +%s)
	[ "${p_cache_valid_time:-0}" -eq 0 ] || [ $((now - before)) -gt "$p_cache_valid_time" ] || return 0
	due=1
	if [ -n "$p_check" ]; then
		say cache_updated 1
		return
	fi
	tried=0 pause=1
	until apt_get update -q; do
		if [ "$tried" -ge "${p_update_cache_retries:-0}" ]; then
			apt_said
			fail "Failed to update apt cache: $(cat "$tmp/stderr")"
		fi
		tried=$((tried + 1))
		[ "$pause" -le "$p_update_cache_retry_max_delay" ] || pause=$p_update_cache_retry_max_delay
		sleep "$pause"
		pause=$((pause * 2))
	done
	case $(cat "$tmp/stderr") in *'Failed to fetch'*) say warn "apt-get update: $(cat "$tmp/stderr")" ;; esac
	apt_update_time
	[ "$updated" = "$before" ] || say cache_updated 1
}
# apt_version NAME: prints the installed version; fails if not installed
apt_version() {
	status=$(dpkg-query -W -f '${db:Status-Abbrev} ${Version}\n' -- "$1" 2>/dev/null) || return 1
	while IFS= read -r entry; do
		case $entry in
		[ih]i*)
			entry=${entry#* }
			printf '%s\n' "${entry# }"
			return 0
			;;
		esac
	done <<END
$status
END
	return 1
}
apt_leftover() { # NAME: is it installed, or (with purge) are its config files left?
	status=$(dpkg-query -W -f '${db:Status-Abbrev}\n' -- "$1" 2>/dev/null) || return 1
	case $nl$status in
	*"$nl"?[iHUFWt]*) return 0 ;;
	*"$nl"?c*) [ -n "$p_purge" ] ;;
	*) return 1 ;;
	esac
}
apt_has() { # NAME[=VERSION]: is it installed, in that version?
	case ${1%%=*} in *'*'* | *'/'*) return 1 ;; esac
	case $1 in
	*'>='*)
		have=$(apt_version "${1%%>=*}") && dpkg --compare-versions "$have" ge "${1#*>=}"
		return
		;;
	*=*)
		have=$(apt_version "${1%%=*}") || return 1
		# shellcheck disable=SC2254
		case $have in ${1#*=}) return 0 ;; esac
		return 1
		;;
	esac
	apt_version "$1" >/dev/null
}
apt_has_deb() { # FILE
	[ -f "$1" ] || fail "package file $1 does not exist on the host"
	package=$(dpkg-deb -f "$1" Package 2>&1) || fail "read $1: $package"
	arch=$(dpkg-deb -f "$1" Architecture)
	[ "$arch" = all ] || package=$package:$arch
	have=$(apt_version "$package") || return 1
	[ "$have" = "$(dpkg-deb -f "$1" Version)" ]
}
apt_count() { # does the output of apt-get contain a change?
	summary=$(grep -E '^[0-9]+ upgraded, ' "$tmp/stdout")
	case $summary in
	'') return 1 ;;
	'0 upgraded, 0 newly installed, 0 to remove'*) return 1 ;;
	esac
	return 0
}
apt_options() { # WHAT...: sets the arguments before WHAT
	set -- -q -y "$@"
	for option in $p_dpkg_options; do set -- -o "Dpkg::Options::=--$option" "$@"; done
	[ -z "$p_install_recommends" ] || set -- -o APT::Install-Recommends=yes "$@"
	[ -z "$p_no_install_recommends" ] || set -- -o APT::Install-Recommends=no "$@"
	[ -z "$p_default_release" ] || set -- -t "$p_default_release" "$@"
	[ -z "$p_allow_unauthenticated" ] || set -- --allow-unauthenticated "$@"
	[ -z "$p_allow_downgrade" ] || set -- --allow-downgrades "$@"
	[ -z "$p_allow_change_held_packages" ] || set -- --allow-change-held-packages "$@"
	[ -z "$p_force" ] || set -- --allow-downgrades --allow-remove-essential --allow-change-held-packages "$@"
	[ -z "$p_only_upgrade" ] || set -- --only-upgrade "$@"
	[ -z "$p_autoremove" ] || set -- --auto-remove "$@"
	[ -z "$p_fail_on_autoremove" ] || [ "$p_state" = absent ] || set -- --no-remove "$@"
	[ -z "$p_check" ] || set -- -s "$@"
	apt_get -o "DPkg::Lock::Timeout=${p_lock_timeout:-60}" "$@"
}
apt_policy() { # keeps services from being started or stopped while packages are configured
	[ -n "$p_policy_rc_d" ] && [ -z "$p_check" ] || return 0
	scratch
	policy=/usr/sbin/policy-rc.d
	[ ! -e "$policy" ] || cp -p "$policy" "$tmp/policy" || fail "keep $policy"
	# shellcheck disable=SC2317
	cleanup() {
		if [ -e "$tmp/policy" ]; then cp -p "$tmp/policy" "$policy"; else rm -f "$policy"; fi
		rm -rf "$tmp"
	}
	printf '#!/bin/sh\nexit %s\n' "$p_policy_rc_d" >"$policy" || fail "write $policy"
	chmod 755 "$policy" || fail "set the mode of $policy"
}
apt_reason() { # an unavailable package, in the words that playbooks search for
	sed -n -e "s/^E: Unable to locate package \(.*\)/No package matching '\1' is available/p" \
		-e "s/^E: Version '\(.*\)' for '\(.*\)' was not found/no available installation candidate for \2=\1/p" \
		-e "s/^E: Package '\(.*\)' has no installation candidate/no available installation candidate for \1/p" "$tmp/stderr" | head -n 1
}
apt_do() { # WHAT ARGS...: runs it and reports changes
	what=$1
	shift
	apt_policy
	apt_options "$@"
	apt_said
	if [ "$rc" -ne 0 ]; then
		reason=$(apt_reason)
		reason="${reason:-$what}: $(cat "$tmp/stderr")"
		[ -n "$due" ] || fail "$reason"
		not_yet "$reason" # the package lists that check mode did not update may have it
		say changed 1
		return
	fi
	! apt_count || say changed 1
}
apt_manual() { # NAME...: explicitly installed packages are not mere dependencies
	states=/var/lib/apt/extended_states
	[ -z "$p_check" ] && [ -e $states ] || return 0
	for word; do
		shift
		word=${word%%[>=]*}
		! grep -qxF "Package: ${word%%:*}" $states || set -- "$@" "$word"
	done
	[ $# -eq 0 ] || quiet apt-mark manual -- "$@" || fail "mark packages as manually installed: $(output)"
}
apt_at_least() { # NAME>=VERSION: sets $word to the form of apt-get
	candidate=$(apt-cache policy -- "${1%%>=*}" 2>/dev/null | sed -n 's/^ *Candidate: \([^(].*\)/\1/p')
	if [ -n "$candidate" ] && dpkg --compare-versions "$candidate" ge "${1#*>=}"; then
		word=${1%%>=*}=$candidate
		return
	fi
	[ -n "$due" ] || fail "no available installation candidate for $1"
	word=${1%%>=*}
}
apt_names() { # STATE NAME...
	state=$1
	shift
	[ "$state" = absent ] || apt_manual "$@"
	for word; do
		shift
		if [ "$state" = absent ]; then
			! apt_leftover "$word" || set -- "$@" "$word"
		elif [ "$state" = latest ] || ! apt_has "$word"; then
			case $word in *'>='*) apt_at_least "$word" ;; esac
			set -- "$@" "$word"
		fi
	done
	[ $# -gt 0 ] || return 0
	say acted 1
	case $state in
	absent) if [ -n "$p_purge" ]; then apt_do "remove packages" purge -- "$@"; else apt_do "remove packages" remove -- "$@"; fi ;;
	*) apt_do "install packages" install -- "$@" ;;
	esac
}
apt_clean() {
	if [ -n "$p_clean" ]; then
		say acted 1
		set -- /var/cache/apt/archives/*.deb
		[ ! -e "$1" ] || step "remove fetched packages" apt-get clean
	fi
	[ -n "$p_autoclean" ] || return 0
	say acted 1
	apt_get -q -y ${p_check:+-s} autoclean || fail "remove fetched packages: $(cat "$tmp/stderr")"
	! grep -q '^Del ' "$tmp/stdout" || say changed 1
}
apt_main() {
	has apt-get || fail "apt-get is not installed on the host"
	DEBIAN_FRONTEND=noninteractive DEBIAN_PRIORITY=critical APT_LISTCHANGES_FRONTEND=none
	export DEBIAN_FRONTEND DEBIAN_PRIORITY APT_LISTCHANGES_FRONTEND
	apt_update
	say cache_time "$updated"
	apt_clean
	if [ "$p_state $*" = 'latest *' ]; then # all packages, in the newest version
		p_upgrade=yes
		set --
	fi
	if [ -n "$p_upgrade" ]; then
		say acted 1
		say upgraded 1
		case $p_upgrade in
		dist | full) apt_do "upgrade" dist-upgrade ;;
		*) apt_do "upgrade" upgrade --with-new-pkgs ;;
		esac
	fi
	if [ -n "$p_deb" ]; then
		say acted 1
		case $p_deb in *://*)
			scratch
			fetch "$p_deb" "$tmp/fetched.deb"
			p_deb=$tmp/fetched.deb
			;;
		esac
		case $p_deb in /*) deb=$p_deb ;; *) deb=./$p_deb ;; esac
		apt_has_deb "$deb" || apt_do "install $p_deb" install -- "$deb"
	fi
	if [ "$p_state" = fixed ]; then
		say acted 1
		for word; do
			shift
			apt_has "$word" || set -- "$@" "$word"
		done
		apt_do "repair packages" install --fix-broken -- "$@"
	elif [ "$p_state" = build-dep ]; then
		[ $# -eq 0 ] || say acted 1
		[ $# -eq 0 ] || apt_do "install build dependencies" build-dep -- "$@"
	elif [ $# -gt 0 ]; then
		say named 1
		apt_names "$p_state" "$@"
	elif [ -n "$p_autoremove" ] && [ -z "$p_upgrade$p_deb" ]; then
		say acted 1
		apt_do "remove packages that nothing needs" ${p_purge:+--purge} autoremove
	fi
}
