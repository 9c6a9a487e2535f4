# shellcheck shell=sh disable=SC2154
# A deb822 repository: $p_path is its file, $p_ring its key without an extension.
deb822_read() {
	for ring in "$p_ring.asc" "$p_ring.gpg"; do
		[ ! -f "$ring" ] || {
			say ring "$ring"
			say ring_key "$(base64 <"$ring" | tr -d '\n')"
			say ring_mode "$(stat -c %a "$ring")"
		}
	done
	[ -z "$p_url" ] || {
		scratch
		fetch "$p_url" "$tmp/key"
		say key "$(base64 <"$tmp/key" | tr -d '\n')"
	}
}
deb822_key() { # the key, as base64, is on standard input
	scratch
	base64 -d >"$tmp/key" || fail "decode the key"
	quiet mkdir -p -m 755 "$(dirname "$p_ring")" || fail "create the folder of $p_ring: $(output)"
	replace "$p_ring" 644 <"$tmp/key" || fail "write $p_ring"
	quiet chmod 644 "$p_ring" || fail "set the mode of $p_ring: $(output)"
}
deb822_remove() { # RING...
	quiet rm -f "$@" || fail "remove $*: $(output)"
}
