# shellcheck shell=sh disable=SC2154
sysctl_path() { # the file of a key: dots and slashes are swapped, as sysctl does
	case $p_name in
	*/*.* | */*) case $p_name in *.*/*) printf '%s' "$p_name" | tr './' '/.' ;; *) printf '%s' "$p_name" ;; esac ;;
	*) printf '%s' "$p_name" | tr . / ;;
	esac
}
sysctl_read() {
	if [ -e "$p_sysctl_file" ]; then
		say exists 1
		say text "$(cat "$p_sysctl_file" && printf x)"
	fi
	file=/proc/sys/$(sysctl_path)
	[ ! -r "$file" ] || say live "$(cat "$file" 2>/dev/null)"
}
sysctl_set() {
	if has sysctl; then
		quiet sysctl -w "$p_name=$p_value" && return
	else
		scratch
		printf '%s\n' "$p_value" 2>"$tmp/out" >"/proc/sys/$(sysctl_path)" && return
	fi
	[ -n "$p_ignoreerrors" ] || fail "setting $p_name failed: $(output)"
}
sysctl_act() { # a new file is on standard input
	# First the kernel: a value that it rejects is not written.
	[ -z "$p_set" ] || sysctl_set
	if [ -n "$p_write" ]; then
		replace "$p_sysctl_file" 644 || fail "write $p_sysctl_file"
	fi
	[ -n "$p_apply" ] || return 0
	if has sysctl; then
		set -- -p "$p_sysctl_file"
		[ -z "$p_system_wide" ] || set -- --system
		[ -z "$p_ignoreerrors" ] || set -- -e "$@"
		quiet sysctl "$@" || [ -n "$p_ignoreerrors" ] || fail "Failed to reload sysctl: $(output)"
	elif [ -n "$p_value" ] && [ -z "$p_set" ]; then
		sysctl_set
	fi
}
