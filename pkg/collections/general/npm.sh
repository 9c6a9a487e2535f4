# shellcheck shell=sh disable=SC2154,SC2086
npm_main() { # WORDS...
	scratch
	npm=${p_executable:-npm}
	if ! has "${npm%% *}"; then
		not_yet "Failed to find required executable \"${npm%% *}\" on the host: install its package first"
		return
	fi
	if [ -n "$p_path" ] && [ ! -d "$p_path" ]; then
		[ ! -e "$p_path" ] || fail "path $p_path is not a directory"
		[ -z "$p_ask$p_check" ] || return 0 # nothing is in it yet
		mkdir -p "$p_path" || fail "make $p_path"
	fi
	[ -z "$p_path" ] || cd "$p_path" || fail "enter $p_path"
	[ -n "$p_ask" ] || [ -z "$p_check" ] || return 0
	set -f
	$npm "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null || [ -n "$p_ask" ] || fail "$npm $*: $(cat "$tmp/stderr" "$tmp/stdout")"
	case $(cat "$tmp/stdout") in
	'') [ -z "$p_ask" ] || ! grep -q '[^[:space:]]' "$tmp/stderr" || fail "$npm $*: $(cat "$tmp/stderr")" ;;
	*) say stdout "$(cat "$tmp/stdout")" ;;
	esac
}
