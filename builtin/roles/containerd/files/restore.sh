#!/bin/sh
# Reverts move_aside.sh once the runtime of kk is removed.
set -eu
printf '%s\n' "$PATHS" "$PROGRAMS" | while read -r path; do
	[ -e "$path.before-kk" ] || continue
	[ ! -d "$path" ] || rmdir "$path"
	if [ -e "$path" ]; then
		echo "found: $path exists, and so does $path.before-kk" >&2
		echo "needed: one of them" >&2
		echo "fix: remove the one that is not needed" >&2
		exit 1
	fi
	mv -T "$path.before-kk" "$path"
done
systemctl daemon-reload
for units in "$KEEP/units" "$KEEP.new/units"; do
	[ -e "$units" ] || continue
	while read -r unit enabled active; do
		[ "$enabled" != enabled ] || systemctl enable --quiet "$unit"
		[ "$active" != active ] || systemctl start "$unit"
	done <"$units"
done
rm -rf "$KEEP" "$KEEP.new"
rmdir "$(dirname "$KEEP")" 2>/dev/null || true
