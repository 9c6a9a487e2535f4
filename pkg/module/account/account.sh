# shellcheck shell=sh disable=SC2034,SC2154
account() { # passwd|group NAME-OR-NUMBER: prints its line
	if [ -z "$p_local" ] && has getent; then
		getent "$1" "$2"
		return
	fi
	while IFS= read -r entry || [ -n "$entry" ]; do
		name_of=${entry%%:*}
		number_of=${entry#*:*:}
		number_of=${number_of%%:*}
		if [ "$name_of" = "$2" ] || [ "$number_of" = "$2" ]; then
			printf '%s\n' "$entry"
			return 0
		fi
	done <"/etc/$1"
	return 2
}
