# shellcheck shell=sh disable=SC2154
# A file of PKCS #12 and what goes into one come over the standard input,
# passphrases in the environment. -legacy is for files of old programs, which
# OpenSSL 3 reads only so, and OpenSSL 1 has no such option.
pkcs12_start() {
	need openssl
	scratch
	umask 077
	cat >"$tmp/in"
}
pkcs12_open() {
	pkcs12_start
	for legacy in '' -legacy; do
		# shellcheck disable=SC2086
		if text=$(openssl pkcs12 $legacy -nodes -passin env:KK_PKCS12 -in "$tmp/in" 2>/dev/null </dev/null); then
			say text "$text"
			return
		fi
	done
}
pkcs12_make() {
	pkcs12_start
	openssl pkcs12 -export -in "$tmp/in" -passin env:KK_PKCS12 -passout env:KK_PKCS12 -out "$tmp/out" "$@" >"$tmp/err" 2>&1 </dev/null ||
		fail "write PKCS #12: $(tail -n 3 "$tmp/err")"
	say text "$(base64 <"$tmp/out")"
}
