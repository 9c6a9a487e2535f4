# shellcheck shell=sh disable=SC2088,SC2015
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
