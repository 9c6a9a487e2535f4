# shellcheck shell=sh disable=SC2154,SC2015
# The flags and the SELinux context of files. Every change is answered with
# "name before after".
lacks() { # letters set: is one of the letters missing in the set?
	left=$1
	while [ -n "$left" ]; do
		case $2 in *"${left%"${left#?}"}"*) ;; *) return 0 ;; esac
		left=${left#?}
	done
	return 1
}
set_flags() { # path
	has chattr || return 0
	letters=${p_flags#?}
	now=$(lsattr -d "$1" 2>/dev/null) || now=
	now=$(printf '%s' "${now%% *}" | tr -d '-')
	case $p_flags in
	+*) lacks "$letters" "$now" || return 0 ;;
	-*)
		other=$(printf '%s' "$now" | tr -d "$letters ")
		[ -n "$letters" ] && [ "$other" != "$now" ] || return 0
		;;
	*) # those that the file system alone sets, such as e of ext4, do not count
		own=$(printf '%s' "$now" | tr -d eEhINVX)
		lacks "$letters" "$now" || lacks "$own" "$letters" || return 0
		;;
	esac
	step "chattr failed" chattr "$p_flags" "$1"
	say mark "attributes $now $p_flags"
}
pick() { # wanted now default
	case $1 in
	'') printf '%s' "$2" ;;
	_default) printf '%s' "${3:-$2}" ;;
	*) printf '%s' "$1" ;;
	esac
}
set_context() { # path
	now=$(stat -c %C "$1" 2>/dev/null) || return 0
	rule=$(matchpathcon -n "$1" 2>/dev/null) || rule=:::
	IFS=: read -r user role type level <<-END
		$now
	END
	IFS=: read -r rule_user rule_role rule_type rule_level <<-END
		$rule
	END
	new=$(pick "$p_seuser" "$user" "$rule_user"):$(pick "$p_serole" "$role" "$rule_role"):$(pick "$p_setype" "$type" "$rule_type"):$(pick "$p_selevel" "$level" "$rule_level")
	[ "${new%:}" != "$now" ] || return 0
	step "set the SELinux context of $1" chcon -h "${new%:}" "$1"
	say mark "secontext $now ${new%:}"
}
marks_set() { # path...
	for path; do
		[ -e "$path" ] || continue
		[ -z "$p_flags" ] || set_flags "$path"
		[ -n "$p_seuser$p_serole$p_setype$p_selevel" ] && [ -e /sys/fs/selinux/enforce ] || continue
		set_context "$path"
	done
}
