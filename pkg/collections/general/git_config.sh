# shellcheck shell=sh disable=SC2154,SC2088
git_config() { # its file and its scope, then the words
	if [ "$p_scope" = file ]; then
		git config --includes -f "$p_file" "$@"
	else
		git config --includes ${p_scope:+"--$p_scope"} "$@"
	fi
}
git_config_main() {
	need git
	case $p_repo in '~/'*) p_repo=$HOME/${p_repo#??} ;; esac
	case $p_file in '~/'*) p_file=$HOME/${p_file#??} ;; esac
	cd "$p_repo" 2>/dev/null || fail "there is no folder $p_repo"
	if [ -n "$p_list_all" ]; then
		quiet git_config -l || case $(output) in
		*'unable to read config file'*) return 0 ;;
		*) fail "$(output)" ;;
		esac
		say all "$(output)"
		return
	fi
	scratch
	git_config --get-all "$p_name" >"$tmp/out" 2>"$tmp/errors" </dev/null
	code=$?
	[ $code -lt 2 ] || fail "$(cat "$tmp/errors")" # with 1 it is not set yet
	now=$(output)
	say all "$now"
	if [ "$p_state" = absent ]; then
		if [ -z "$now" ]; then
			say msg 'no setting to unset'
			return
		fi
		say msg 'setting changed'
		step "unset $p_name" git_config --unset-all "$p_name"
		return
	fi
	[ -n "$p_value" ] || return 0
	if [ "$now" = "$p_value" ] || [ "$p_add_mode" = add ] && output | grep -qxF -e "$p_value"; then
		return 0
	fi
	say msg 'setting changed'
	step "set $p_name" git_config "--$p_add_mode" "$p_name" "$p_value"
}
