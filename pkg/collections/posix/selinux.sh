# shellcheck shell=sh disable=SC2154
selinux_read() {
	now=disabled
	if has getenforce; then
		case $(getenforce 2>/dev/null) in Enforcing) now=enforcing ;; Permissive) now=permissive ;; esac
	elif [ -r /sys/fs/selinux/enforce ]; then
		[ "$(cat /sys/fs/selinux/enforce)" = 1 ] && now=enforcing || now=permissive
	fi
	say now "$now"
	[ -z "$p_policy" ] || [ ! -e "/etc/selinux/$p_policy/policy" ] || say policy 1
	[ -z "$p_update_kernel_param" ] || {
		has grubby || fail "there is no grubby on the host: update_kernel_param needs it"
		say kernel "$(grubby --info=ALL 2>/dev/null | grep '^args=')"
	}
}
selinux_act() { # $p_enforce: 0, 1 or nothing; $p_kernel: on, off or nothing
	if [ -n "$p_enforce" ]; then
		quiet setenforce "$p_enforce" || fail "set the state of SELinux: $(output)"
	fi
	case $p_kernel in
	on) quiet grubby --update-kernel=ALL --remove-args selinux=0 || fail "unable to remove selinux=0 from kernel config: $(output)" ;;
	off) quiet grubby --update-kernel=ALL --args selinux=0 || fail "unable to add selinux=0 to kernel config: $(output)" ;;
	esac
}
seboolean_main() {
	if ! has getsebool || ! has setsebool; then fail "there are no getsebool and setsebool on the host: install policycoreutils"; fi
	if ! has selinuxenabled || ! selinuxenabled; then
		[ -n "$p_ignore_selinux_state" ] || fail "SELinux is disabled on this host."
	else
		now=$(getsebool "$p_name" 2>/dev/null) || fail "SELinux boolean $p_name does not exist."
		# a value that waits to be committed is the one that counts
		case $now in
		*'pending: on' | *'--> on') now=on ;;
		*) now=off ;;
		esac
		kept=$now
		[ -z "$p_persistent" ] || ! has semanage || kept=$(semanage boolean -l -n 2>/dev/null | sed -n "s/^$p_name  *(\(on\|off\) *, *\(on\|off\)).*/\2/p")
		[ "$now" != "$p_state" ] || [ "${kept:-$now}" != "$p_state" ] || return 0
	fi
	step "Failed to set boolean $p_name to $p_state" setsebool ${p_persistent:+-P} "$p_name" "$p_state"
}
