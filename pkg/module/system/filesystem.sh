# shellcheck shell=sh disable=SC2154
# The script of the module filesystem. The arguments are the options of mkfs.
fs_type() { # the type of the file system on the device, empty if there is none
	kind=$(blkid -c /dev/null -o value -s TYPE "$p_dev" 2>/dev/null)
	case $kind in LVM2_member) kind=lvm ;; esac
	printf '%s' "$kind"
}
fs_make() { # OPTION...
	case $p_fstype in
	ext2 | ext3 | ext4) set -- "mkfs.$p_fstype" -F ${p_uuid:+-U "$p_uuid"} "$@" ;;
	xfs) set -- mkfs.xfs -f ${p_uuid:+-m "uuid=$p_uuid"} "$@" ;;
	btrfs) set -- mkfs.btrfs -f ${p_uuid:+-U "$p_uuid"} "$@" ;;
	f2fs) set -- mkfs.f2fs -f "$@" ;;
	vfat) set -- mkfs.vfat -I "$@" ;;
	swap) set -- mkswap -f ${p_uuid:+-U "$p_uuid"} "$@" ;;
	lvm) set -- pvcreate -f -y "$@" ;;
	esac
	[ -n "$p_check" ] || need "$1" # an earlier task would install it
	step "create a file system on $p_dev" "$@" "$p_dev"
}
fs_mounted() { # the mount point of the device
	[ ! -b "$p_dev" ] || awk -v dev="$(readlink -f "$p_dev")" '$1 == dev { print $2; exit }' /proc/mounts
}
fs_size() { # of the device, in bytes
	if [ -b "$p_dev" ]; then
		blockdev --getsize64 "$p_dev"
	else
		wc -c <"$p_dev"
	fi
}
fs_grow() {
	case $old in
	ext2 | ext3 | ext4)
		need resize2fs
		info=$(tune2fs -l "$p_dev" 2>&1) || fail "inspect the file system of $p_dev: $info"
		block=$(printf '%s\n' "$info" | sed -n 's/^Block size: *//p')
		count=$(printf '%s\n' "$info" | sed -n 's/^Block count: *//p')
		[ $((count * block + block)) -le "$(fs_size)" ] || return 0
		[ -n "$p_check" ] || [ -n "$(fs_mounted)" ] || quiet e2fsck -f -y "$p_dev" || [ $? -le 2 ] || fail "check $p_dev: $(output)"
		step "resize $p_dev" resize2fs "$p_dev"
		;;
	xfs)
		at=$(fs_mounted)
		[ -n "$at" ] || fail "$p_dev must be mounted to resize xfs"
		had=$(xfs_info "$at" | sed -n 's/^data .*bsize=\([0-9]*\) *blocks=\([0-9]*\),.*/\1 \2/p')
		[ -n "$had" ] || fail "cannot determine the size of $p_dev"
		[ $((${had% *} * ${had#* } + ${had% *})) -le "$(fs_size)" ] || return 0
		step "resize $p_dev" xfs_growfs "$at"
		;;
	btrfs)
		at=$(fs_mounted)
		[ -n "$at" ] || fail "$p_dev must be mounted to resize btrfs"
		had=$(btrfs filesystem show --raw "$at" | sed -n 's/.* size \([0-9]*\) used .*/\1/p' | head -n 1)
		[ -n "$had" ] && [ $((had + 65536)) -le "$(fs_size)" ] || return 0
		step "resize $p_dev" btrfs filesystem resize max "$at"
		;;
	lvm)
		had=$(pvs --noheadings --nosuffix --units b -o dev_size,pe_start,vg_extent_size,pv_size "$p_dev" 2>/dev/null)
		# shellcheck disable=SC2086
		set -- $had
		[ $# = 4 ] && [ "$3" -gt 0 ] && [ $(($4 + $2 + $3)) -le "$1" ] || return 0
		step "resize $p_dev" pvresize "$p_dev"
		;;
	*) fail "module does not support resizing $old filesystem yet" ;;
	esac
}
filesystem_main() {
	if [ ! -e "$p_dev" ]; then
		[ "$p_state" = present ] || {
			say msg "Device $p_dev not found."
			return
		}
		[ -z "$p_check" ] || {
			say changed 1
			return
		}
		fail "Device $p_dev not found."
	fi
	[ -b "$p_dev" ] || [ -f "$p_dev" ] || fail "$p_dev is neither a device nor a file"
	need blkid
	old=$(fs_type)
	say before "$old"
	if [ "$p_state" = absent ]; then
		[ -n "$old" ] || return 0
		need wipefs
		step "wipe $p_dev" wipefs --all "$p_dev"
		return
	fi
	if [ "$old" = "$p_fstype" ] && { [ -z "$p_force" ] || [ -n "$p_resizefs" ]; }; then
		[ -z "$p_resizefs" ] || fs_grow
		return
	fi
	[ -z "$old" ] || [ -n "$p_force" ] || fail "'$p_dev' is already used as $old, use force=true to overwrite"
	at=$(fs_mounted)
	[ -z "$at" ] || fail "$p_dev is mounted at $at: unmount it first"
	fs_make "$@"
}
