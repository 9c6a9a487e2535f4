#!/bin/sh
# Prints what prevents the disks of this host from being used, a line each. Arguments, for each directory: its path,
# the file system, the volume group and the logical volume (both empty without LVM), and the devices, separated by
# spaces.
set -u
number() { lsblk -n -d -o MAJ:MIN "$1" 2>/dev/null | tr -d ' '; }

# What a device contains beside what it should.
device() { # DEVICE CONTENT GROUP PATH
	[ -b "$1" ] || {
		echo "the host has no block device $1"
		return
	}
	if [ "$(lsblk -n -d -o TYPE "$1")" != part ] &&
		{ [ -n "$(blkid -p -o value -s PTTYPE "$1")" ] || lsblk -n -r -o TYPE "$1" | grep -qx part; }; then
		echo "$1 has partitions: use one of them, or erase it: wipefs -a $1"
	fi
	content=$(blkid -p -o value -s TYPE "$1")
	[ -z "$content" ] || [ "$content" = "$2" ] ||
		echo "$1 contains $content, not $2: use another device, or erase it: wipefs -a $1"
	at=$(lsblk -n -d -o MOUNTPOINT "$1")
	[ -z "$at" ] || [ "$at" = "$4" ] || echo "$1 is mounted at $at"
	if [ -n "$3" ] && [ "$content" = LVM2_member ] && command -v pvs >/dev/null; then
		group=$(pvs --noheadings -o vg_name "$1" 2>/dev/null | tr -d ' ')
		[ -z "$group" ] || [ "$group" = "$3" ] || echo "$1 belongs to the volume group $group, not $3"
	fi
}

while [ $# -ge 5 ]; do
	path=$1 content=$2 group=$3 source=$5
	if [ -n "$3" ]; then
		content=LVM2_member source=/dev/$3/$4
	fi
	for d in $5; do
		device "$d" "$content" "$group" "$path"
	done
	mounted=$(findmnt -n -o MAJ:MIN -M "$path" | tail -n 1 | tr -d ' ')
	if [ -n "$mounted" ]; then
		[ "$mounted" = "$(number "$source")" ] ||
			echo "$path is a mount point of $(findmnt -n -o SOURCE -M "$path" | tail -n 1), not of $source"
	elif [ -n "$(find "$path" -mindepth 1 -maxdepth 1 ! -name lost+found 2>/dev/null | head -n 1)" ]; then
		echo "$path is not empty, and a disk would hide its files: move them"
	fi
	shift 5
done
