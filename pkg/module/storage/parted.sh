# shellcheck shell=sh disable=SC2154
# What the module parted does.
parted_look() {
	need parted
	[ -b "$p_device" ] || [ -f "$p_device" ] || fail "$p_device is neither a device nor a file"
	quiet parted -s -m -- "$p_device" unit "$p_unit" print || {
		case $(output) in
		*'unrecognised disk label'*) ;; # no table yet: the line of the disk is there all the same
		*) fail "Error while getting device information with parted: $(output)" ;;
		esac
	}
	say disk "$(output)"
}
parted_act() { # COMMAND...
	quiet parted -s -m "-a$p_align" -- "$p_device" "$@" || fail "Error while running parted: $(output)"
	! has udevadm || quiet udevadm settle || :
	parted_look
}
