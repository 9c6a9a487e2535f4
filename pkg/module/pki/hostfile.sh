# shellcheck shell=sh disable=SC2154,SC2088,SC2015
# What the modules for files of the host read of them. The words are paths.
pki_look() {
	for f; do
		case $f in '~/'*) f=$HOME/${f#??} ;; esac
		say path "$f"
		[ ! -d "$f" ] || fail "$f is a folder: name a file in it"
		if [ ! -e "$f" ]; then
			say stat ''
			say text ''
			continue
		fi
		say stat "$(stat -L -c '%a %u %g %U %G' "$f" 2>/dev/null)"
		[ -f "$f" ] && [ -r "$f" ] || fail "$f cannot be read"
		say text "$({ base64 || openssl base64; } <"$f" 2>/dev/null)"
	done
}
pki_dress() {
	[ -z "$p_owner" ] || step "set the owner of $p_path" chown "$p_owner" "$p_path"
	[ -z "$p_group" ] || step "set the group of $p_path" chgrp "$p_group" "$p_path"
	[ -z "$p_mode" ] || step "set the mode of $p_path" chmod "$p_mode" "$p_path"
}
pki_remove() {
	if [ -n "$p_backup" ]; then
		copy=$p_path.${kk_id:-$$}.$(date +%Y-%m-%d@%H:%M:%S)~
		step "back up $p_path" cp -p "$p_path" "$copy"
		say backup "$copy"
	fi
	step "remove $p_path" rm -f "$p_path"
}
