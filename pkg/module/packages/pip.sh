# shellcheck shell=sh disable=SC2154,SC2086
# pip itself predicts its changes (--dry-run) where the list of installed packages is
# not sufficient.
pip_find() {
	if [ -n "$p_virtualenv" ]; then
		set -- "$p_virtualenv/bin/pip3" "$p_virtualenv/bin/pip"
	elif [ -n "$p_executable" ]; then
		set -- "$p_executable"
	else
		set -- pip3 pip
	fi
	for pip; do
		! has "$pip" || return 0
	done
	pip=''
	[ -n "$p_virtualenv$p_executable" ] || ! has python3 || ! python3 -c 'import pip' 2>/dev/null || pip='python3 -m pip'
	[ -n "$pip" ]
}
pip_env() { # makes the virtualenv
	[ -n "$p_virtualenv" ] && [ ! -e "$p_virtualenv/bin/activate" ] || return 0
	say changed 1
	[ -z "$p_check" ] || return 0
	set -- $p_virtualenv_command
	has "$1" || fail "Failed to find required executable \"$1\" for virtualenv_command"
	[ -z "$p_virtualenv_site_packages" ] || set -- "$@" --system-site-packages
	[ -z "$p_virtualenv_python" ] || set -- "$@" -p "$p_virtualenv_python"
	quiet "$@" "$p_virtualenv" || fail "create the virtualenv: $(output)"
}
pip_flat() { printf '%s' "$1" | tr '[:upper:]_.' '[:lower:]--'; }
# pip_has NAME[==VERSION]: 0 yes, 1 no, 2 only pip knows
pip_has() {
	case $1 in
	*'://'* | */* | *[\<\>~!,\;@\ ]*) return 2 ;;
	esac
	name=${1%%==*}
	name=$(pip_flat "${name%%\[*}")
	while IFS= read -r have; do
		[ "$(pip_flat "${have%%==*}")" = "$name" ] || continue
		case $1 in *==*) [ "${have#*==}" = "${1#*==}" ] && return 0 || return 1 ;; esac
		return 0
	done <"$tmp/list"
	return 1
}
pip_run() { # WORDS...
	set -f
	for word in $pip "$@"; do say cmd "$word"; done
	[ -z "$p_break_system_packages" ] || {
		PIP_BREAK_SYSTEM_PACKAGES=1
		export PIP_BREAK_SYSTEM_PACKAGES
	}
	[ -z "$p_umask" ] || umask "$p_umask"
	$pip "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
	rc=$?
	say stdout "$(cat "$tmp/stdout")"
	say stderr "$(cat "$tmp/stderr")"
	[ "$rc" -eq 0 ] || fail "$pip exited with status $rc: $(cat "$tmp/stderr")"
}
pip_main() { # NAME...
	scratch
	cd "${p_chdir:-${TMPDIR:-/tmp}}" || fail "folder ${p_chdir:-${TMPDIR:-/tmp}} does not exist on the host"
	pip_env
	if ! pip_find; then
		not_yet "Unable to find any of pip3 to use. pip needs to be installed."
		say changed 1
		return
	fi
	PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
	export PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT
	$pip list --format=freeze >"$tmp/list" 2>"$tmp/errors" || fail "list installed packages: $(cat "$tmp/errors")"
	if [ "$p_state" = absent ]; then pip_remove "$@"; else pip_install "$@"; fi
}
pip_install() {
	missing='' unsure=$p_requirements$p_editable
	for word; do
		pip_has "$word"
		case $? in 1) missing=1 ;; 2) unsure=1 ;; esac
	done
	set -f
	case $p_state in
	present) [ -n "$missing$unsure" ] || return 0 ;;
	latest) unsure=1 ;;
	forcereinstall) missing=1 ;;
	esac
	if [ -n "$p_check" ] && [ -n "$missing" ]; then
		say changed 1
		return
	fi
	[ -z "$p_editable" ] || set -- -e "$@"
	[ -z "$p_requirements" ] || set -- -r "$p_requirements" "$@"
	how=''
	case $p_state in latest) how=-U ;; forcereinstall) how='-U --force-reinstall' ;; esac
	[ -z "$p_check" ] || how="$how --dry-run --no-cache-dir"
	pip_run install $how $p_extra_args "$@"
	case $(cat "$tmp/stdout") in *'Successfully installed'* | *'Would install'*) say changed 1 ;; esac
}
pip_remove() {
	for word; do
		shift
		! pip_has "$word" || set -- "$@" "$word"
	done
	[ $# -gt 0 ] || [ -n "$p_requirements" ] || return 0
	[ $# -eq 0 ] || say changed 1
	[ -z "$p_check" ] || return 0
	[ -z "$p_requirements" ] || set -- -r "$p_requirements" "$@"
	pip_run uninstall -y $p_extra_args "$@"
	case $(cat "$tmp/stdout") in *'Successfully uninstalled'*) say changed 1 ;; esac
}
