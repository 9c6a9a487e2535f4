#!/bin/sh
# Before kk installs a container runtime for the first time: stops what else is one, if REPLACE is true, and moves
# files, directories and programs of the same names to NAME.before-kk. Prints what it did, which KEEP records.
set -eu
mkdir -p "$KEEP.new"

if [ "$REPLACE" = true ]; then
	for unit in docker.socket docker.service containerd.service crio.service; do
		file=$(systemctl show -p FragmentPath --value "$unit")
		if [ -z "$file" ] || grep -qs '^RuntimeDirectory=kk-' "$file"; then
			continue
		fi
		state="$(systemctl is-enabled "$unit" || true) $(systemctl is-active "$unit" || true)"
		echo "$unit $state" >>"$KEEP.new/units"
		systemctl disable --quiet --now "$unit" || systemctl stop "$unit"
		echo "stopped $unit"
	done
fi

# Programs that a runtime of kk has installed already are its own.
if grep -qs '^RuntimeDirectory=kk-\(containerd\|docker\)' /etc/systemd/system/*.service; then
	PROGRAMS=
fi
# An older kk recorded nothing.
if grep -qs "^RuntimeDirectory=kk-$NAME$" "/etc/systemd/system/$NAME.service"; then
	PATHS=
fi
printf '%s\n' "$PATHS" "$PROGRAMS" | while read -r path; do
	if [ ! -e "$path" ] || [ -e "$path.before-kk" ]; then
		continue
	fi
	if mountpoint -q "$path"; then
		[ -n "$(find "$path" -mindepth 1 -maxdepth 1 ! -name lost+found)" ] || continue
		echo "found: $path is a mount point, and has data of another container runtime" >&2
		echo "needed: an empty directory" >&2
		echo "fix: move the data away, or set another data_dir" >&2
		exit 1
	fi
	mv -T "$path" "$path.before-kk"
	echo "moved $path"
done
mv -T "$KEEP.new" "$KEEP"
systemctl daemon-reload
