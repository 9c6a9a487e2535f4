# shellcheck shell=sh disable=SC2154
rpm_key_read() {
	has rpm || fail "rpm is not installed on the host"
	has base64 || fail "base64 is not installed on the host"
	say installed "$(rpm -q gpg-pubkey --qf '%{VERSION}\n' 2>/dev/null)"
	scratch
	if [ -n "$p_url" ]; then
		fetch "$p_url" "$tmp/key"
		say key "$(base64 <"$tmp/key" | tr -d '\n')"
	elif [ -n "$p_file" ]; then
		[ -f "$p_file" ] || fail "file $p_file does not exist on the host"
		say key "$(base64 <"$p_file" | tr -d '\n')"
	fi
}
rpm_key_import() { # the key, armored, is on standard input
	scratch
	cat >"$tmp/key" || fail "write a temporary file"
	quiet rpm --import "$tmp/key" || fail "import the key: $(output)"
}
rpm_key_erase() { # VERSION...
	for version; do
		quiet rpm --erase --allmatches "gpg-pubkey-$version" || fail "remove the key gpg-pubkey-$version: $(output)"
	done
}
