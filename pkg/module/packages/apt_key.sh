# shellcheck shell=sh disable=SC2154
# Keyrings are transferred as base64: they are binary.
encode() { base64 <"$1" | tr -d '\n'; }
apt_key_read() {
	has base64 || fail "base64 is not installed on the host"
	if [ -n "$p_keyring" ]; then
		set -- "$p_keyring"
	else
		set -- /etc/apt/trusted.gpg /etc/apt/trusted.gpg.d/*.gpg /etc/apt/trusted.gpg.d/*.asc
	fi
	for file; do
		[ -f "$file" ] || continue
		say file "$file"
		say ring "$(encode "$file")"
	done
	scratch
	if [ -n "$p_file" ]; then
		[ -f "$p_file" ] || fail "file not found: $p_file"
		say key "$(encode "$p_file")"
	elif [ -n "$p_url" ] && [ -n "$p_fetch" ]; then
		fetch "$p_url" "$tmp/key"
		say key "$(encode "$tmp/key")"
	fi
}
apt_key_fetch() {
	scratch
	fetch "$p_url" "$tmp/key"
	say key "$(encode "$tmp/key")"
}
apt_key_write() { # the file, as base64, is on standard input
	if [ -n "$p_remove" ]; then
		rm -f "$p_path" || fail "remove $p_path"
		return
	fi
	scratch
	base64 -d >"$tmp/ring" || fail "decode the keys"
	quiet mkdir -p "$(dirname "$p_path")" || fail "create the folder of $p_path: $(output)"
	replace "$p_path" 644 <"$tmp/ring" || fail "write $p_path"
}
