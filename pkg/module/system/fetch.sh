# shellcheck shell=sh disable=SC2034,SC2154
# fetch URL FILE: with curl or wget, whichever the host has. p_insecure passes
# over certificates.
fetch() {
	if has curl; then
		quiet curl -fsSL ${p_insecure:+-k} -o "$2" "$1" && return
	elif has wget; then
		quiet wget ${p_insecure:+--no-check-certificate} -O "$2" "$1" && return
	else
		fail "there is neither curl nor wget on the host to fetch $1"
	fi
	fail "fetch $1: $(output | tail -n 3)"
}
