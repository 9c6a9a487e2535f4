# shellcheck shell=sh disable=SC2154
getent_main() { # WORDS...: of the command line of getent
	has getent || fail "getent is not installed on the host"
	scratch
	getent "$@" >"$tmp/text" 2>"$tmp/errors" </dev/null
	say rc $?
	say text "$(cat "$tmp/text")"
	say errors "$(cat "$tmp/errors")"
}
