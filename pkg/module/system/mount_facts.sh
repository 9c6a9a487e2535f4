# shellcheck shell=sh disable=SC2154
mount_facts_main() { # FILE...: tables to read, in order
	for file; do
		[ -r "$file" ] || continue
		say file "$file"
		say table "$(cat "$file" 2>/dev/null)"
	done
	has lsblk && say uuids "$(lsblk -n -r -o NAME,UUID,PATH 2>/dev/null | while read -r _ uuid path; do [ -z "$path" ] || echo "$path $uuid"; done)"
	return 0
}
# stat hangs on a file system whose server is gone: use timeout if it is installed.
mount_facts_sizes() { # FOLDER...
	limit=''
	! has timeout || limit="timeout ${p_timeout:-5}"
	for folder; do
		# shellcheck disable=SC2086
		size=$($limit stat -f -c '%S %s %b %a %f %c %d' -- "$folder" 2>/dev/null) || {
			say late "$folder"
			continue
		}
		say folder "$folder"
		say size "$size"
	done
}
