# shellcheck shell=sh disable=SC2154
# zypper_main NAME...: SUSE packages, with the same calls as Ansible's module.
zypper_run() { # COMMAND ARGS...: prints XML
	command=$1
	shift
	gpg='' options=''
	case $command in refresh | patch | dist-upgrade) ;; *) options="--type $p_zypper_type" ;; esac
	[ -z "$p_check" ] || options="$options --dry-run"
	case $command in
	refresh) gpg=${p_disable_gpg_check:+--no-gpg-checks} ;;
	remove) options="$options ${p_clean_deps:+--clean-deps}" ;;
	*)
		gpg=${p_disable_gpg_check:+--no-gpg-checks}
		options="$options --auto-agree-with-licenses ${p_disable_recommends:+--no-recommends} ${p_zypper_force:+--force}"
		options="$options ${p_force_resolution:+--force-resolution} ${p_oldpackage:+--oldpackage} ${p_replacefiles:+--replacefiles}"
		;;
	esac
	[ "$command" != dist-upgrade ] || options="$options ${p_allow_vendor_change:+--allow-vendor-change}"
	set -f
	# shellcheck disable=SC2086 # each holds any number of options
	set -- "$(command -v zypper)" --quiet --non-interactive --xmlout $p_extra_args_precommand $gpg "$command" $options $p_extra_args "$@"
	set +f
	say cmd "$(printf '%s\n' "$@")"
	scratch
	zypper_once "$@"
	# zypper has updated itself, and must be called again.
	[ "$rc" -ne 103 ] || zypper_once "$@"
}
zypper_once() {
	LC_ALL=C "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
	rc=$?
	tool_said
}
zypper_has() { # NAME
	if [ "$p_zypper_type" = package ]; then
		rpm -q --quiet "$1" >/dev/null 2>&1
	else
		zypper --quiet --non-interactive --disable-repositories search --type "$p_zypper_type" --match-exact --installed-only "$1" >/dev/null 2>&1 </dev/null
	fi
}
zypper_pick() { # WORD...: keeps those that need a change, files and URLs first
	for word; do
		shift
		name=$word
		case $p_state in absent) sign=- ;; *) sign=+ ;; esac
		case $word in
		*://* | *.rpm)
			[ "$p_state" != absent ] || fail "Can not remove via URL."
			set -- "$word" "$@"
			continue
			;;
		[-~]*) sign=- name=${word#?} ;;
		+*)
			[ "$p_state" != absent ] || fail "Can not combine '+' prefix with state=remove/absent."
			name=${word#?}
			;;
		esac
		version=${name##*[!<>=0-9.-]}
		case $version in
		*[\<\>=]*) version=$(printf %s "$version" | sed 's/^[^<>=]*//') ;;
		*) version='' ;;
		esac
		plain=${name%"$version"}
		[ -z "$version" ] || [ "$p_state" = absent ] || p_oldpackage=1
		case $p_state in
		absent) ! zypper_has "$plain" || set -- "$@" "$plain$version" ;;
		present)
			if [ -n "$version" ]; then
				set -- "$@" "$sign$plain$version"
			elif zypper_has "$plain"; then
				[ "$sign" = + ] || set -- "$@" "-$plain"
			else
				[ "$sign" = - ] || set -- "$@" "+$plain"
			fi
			;;
		*) set -- "$@" "$sign$plain$version" ;;
		esac
	done
	[ $# -gt 0 ] || return 0
	case $p_state in
	absent) zypper_run remove "$@" ;;
	*) zypper_run install -- "$@" ;;
	esac
}
zypper_main() {
	say zypper ''
	has zypper || fail "zypper is not installed on the host"
	if [ -n "$p_update_cache" ] && [ -z "$p_check" ]; then
		zypper_run refresh
		[ "$rc" -eq 0 ] || fail "Zypper refresh run failed."
	fi
	case $p_state:$*:$p_zypper_type in
	latest:\*:patch) zypper_run patch ;;
	latest:\*:*) zypper_run update ;;
	dist-upgrade:\*:*) zypper_run dist-upgrade ;;
	dist-upgrade:*) fail "Can not dist-upgrade specific packages." ;;
	absent:*:patch) fail "Can not remove patches." ;;
	*) [ $# -eq 0 ] || zypper_pick "$@" ;;
	esac
}
