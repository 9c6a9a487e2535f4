# shellcheck shell=sh disable=SC2154
# What the module parted does.
parted_run() { # COMMAND...: what it came to is told when it failed
	scratch
	parted "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	rc=$?
}
parted_failed() { # WHAT
	say rc "$rc"
	say out "$(output)"
	say err "$(cat "$tmp/err")$nl"
	fail "$1: $(cat "$tmp/err")"
}
parted_look() {
	need parted
	parted_run -s -m -- "$p_device" unit "$p_unit" print
	case $rc$(cat "$tmp/err") in
	0* | *'unrecognised disk label'*) ;; # no table yet: the line of the disk is there all the same
	*) parted_failed "Error while getting device information with parted" ;;
	esac
	say disk "$(output)"
}
parted_act() { # COMMAND...
	parted_run -s -m "-a$p_align" -- "$p_device" "$@"
	[ "$rc" = 0 ] || parted_failed "Error while running parted"
	! has udevadm || quiet udevadm settle || :
	parted_look
}
