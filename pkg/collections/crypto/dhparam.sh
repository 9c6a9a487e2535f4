# shellcheck shell=sh disable=SC2154
# The parameters go to a file, since openssl shows its progress beside them.
dhparam_generate() {
	need openssl
	scratch
	openssl dhparam -out "$tmp/pem" "$p_size" >"$tmp/err" 2>&1 </dev/null ||
		fail "generate parameters of $p_size bits: $(tail -n 3 "$tmp/err")"
	say text "$(cat "$tmp/pem")"
}
