# shellcheck disable=SC2154 # kk_do is in host.sh
# The flags and the SELinux context of files. Every change is answered with
# "name before after", ended by NUL.

kk_lacks() { # letters set: is one of the letters missing in the set?
	kk_left=$1
	while [ -n "$kk_left" ]; do
		case $2 in *"${kk_left%"${kk_left#?}"}"*) ;; *) return 0 ;; esac
		kk_left=${kk_left#?}
	done
	return 1
}
kk_flags() { # do|dry [=+-]letters path
	command -v chattr >/dev/null 2>&1 || return 0
	kk_letters=${2#?}
	kk_now=$(lsattr -d "$3" 2>/dev/null) || kk_now=
	kk_now=$(printf '%s' "${kk_now%% *}" | tr -d '-')
	case $2 in
	+*) kk_lacks "$kk_letters" "$kk_now" || return 0 ;;
	-*)
		kk_other=$(printf '%s' "$kk_now" | tr -d "$kk_letters ")
		[ -n "$kk_letters" ] && [ "$kk_other" != "$kk_now" ] || return 0
		;;
	*) # those that the file system alone sets, such as e of ext4, do not count
		kk_own=$(printf '%s' "$kk_now" | tr -d eEhINVX)
		kk_lacks "$kk_letters" "$kk_now" || kk_lacks "$kk_own" "$kk_letters" || return 0
		;;
	esac
	[ "$1" = dry ] || kk_do "chattr failed" chattr "$2" "$3"
	printf 'attributes %s %s\0' "$kk_now" "$2"
}
kk_pick() { # wanted now default
	case $1 in
	'') printf '%s' "$2" ;;
	_default) printf '%s' "${3:-$2}" ;;
	*) printf '%s' "$1" ;;
	esac
}
kk_context() { # do|dry user role type level path
	kk_now=$(stat -c %C "$6" 2>/dev/null) || return 0
	kk_rule=$(matchpathcon -n "$6" 2>/dev/null) || kk_rule=:::
	IFS=: read -r kk_u kk_r kk_t kk_l <<-END
		$kk_now
	END
	IFS=: read -r kk_du kk_dr kk_dt kk_dl <<-END
		$kk_rule
	END
	kk_new=$(kk_pick "$2" "$kk_u" "$kk_du"):$(kk_pick "$3" "$kk_r" "$kk_dr"):$(kk_pick "$4" "$kk_t" "$kk_dt"):$(kk_pick "$5" "$kk_l" "$kk_dl")
	[ "${kk_new%:}" != "$kk_now" ] || return 0
	[ "$1" = dry ] || kk_do "set the SELinux context of $6" chcon -h "${kk_new%:}" "$6"
	printf 'secontext %s %s\0' "$kk_now" "${kk_new%:}"
}
kk_marks() { # do|dry flags|keep user role type level path...
	kk_mode=$1 kk_want=$2 kk_su=$3 kk_sr=$4 kk_st=$5 kk_sl=$6
	shift 6
	for kk_path; do
		[ -e "$kk_path" ] || continue
		[ "$kk_want" = keep ] || kk_flags "$kk_mode" "$kk_want" "$kk_path"
		[ -n "$kk_su$kk_sr$kk_st$kk_sl" ] || continue
		[ -e /sys/fs/selinux/enforce ] || continue
		kk_context "$kk_mode" "$kk_su" "$kk_sr" "$kk_st" "$kk_sl" "$kk_path"
	done
}
