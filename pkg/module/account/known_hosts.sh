# shellcheck shell=sh disable=SC2088,SC2154
known_hosts_path() {
	case $p_path in
	'~/'*) path=$HOME/${p_path#*/} ;;
	*) path=$p_path ;;
	esac
}
known_hosts_read() {
	known_hosts_path
	say path "$path"
	[ -e "$path" ] || return 0
	text=$(cat "$path" && printf x) || fail "read $path"
	say text "$text"
}
known_hosts_write() { # the new text is on standard input
	known_hosts_path
	folder=$(dirname "$path")
	[ -d "$folder" ] || (umask 077 && quiet mkdir -p "$folder") || fail "create $folder"
	replace "$path" 644 || fail "write $path"
}
