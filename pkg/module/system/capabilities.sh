# shellcheck shell=sh disable=SC2154
capabilities_run() { # COMMAND...
	scratch
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null
}
capabilities_failed() { # WHAT
	say stdout "$(output)"
	say stderr "$(cat "$tmp/err")"
	fail "$1 $p_path: $(cat "$tmp/err")"
}
capabilities_look() {
	need getcap
	need setcap
	# getcap exits successfully if the file does not exist.
	if ! capabilities_run getcap -v "$p_path" || [ -s "$tmp/err" ]; then
		capabilities_failed "Unable to get capabilities of"
	fi
	say caps "$(output)"
}
capabilities_set() {
	capabilities_run setcap "$p_caps" "$p_path" || capabilities_failed "Unable to set capabilities of"
	say stdout "$(output)"
}
