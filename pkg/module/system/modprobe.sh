# shellcheck shell=sh disable=SC2154
# $p_name may be spelled with - or _: the kernel reads both as _.
flat() { printf '%s' "$1" | tr - _; }
modprobe_loaded() {
	[ -r /proc/modules ] && grep -q "^$key " /proc/modules
}
modprobe_builtin() {
	list=/lib/modules/$(uname -r)/modules.builtin
	if [ -r "$list" ]; then
		while IFS= read -r line; do
			line=${line##*/}
			line=${line%.ko*}
			[ "$(flat "$line")" != "$key" ] || return 0
		done <<END
$(grep -i "/$(printf '%s' "$key" | tr _ .)\.ko" "$list")
END
	fi
	[ -d "/sys/module/$key" ] && [ ! -e "/sys/module/$key/initstate" ]
}
modprobe_load() {
	if [ ! -e /proc/modules ]; then
		say warn "the kernel has no loadable modules: nothing tells whether it has $p_name built in"
		return
	fi
	# shellcheck disable=SC2086
	step "load module $p_name" modprobe "$p_name" $p_params
}
# Files in a folder with a matching line: $1 folder, $2 pattern.
modprobe_files() { grep -ls "$2" "$1"/*.conf 2>/dev/null; }
modprobe_persist() {
	load=/etc/modules-load.d options=/etc/modprobe.d
	any=$(printf '%s' "$key" | sed 's/_/[-_]/g')
	if [ "$p_persistent" = present ]; then
		if [ -z "$(modprobe_files $load "^[[:space:]]*${any}[[:space:]]*\$")" ]; then
			modprobe_write $load "$p_name"
		fi
		if [ -n "$p_params" ] && ! grep -qsxF "options $p_name $p_params" $options/*.conf; then
			modprobe_comment $options "^[[:space:]]*options[[:space:]][[:space:]]*${any}[[:space:]]"
			modprobe_write $options "options $p_name $p_params"
		fi
		return
	fi
	modprobe_comment $load "^[[:space:]]*${any}[[:space:]]*\$"
	modprobe_comment $options "^[[:space:]]*options[[:space:]][[:space:]]*$any\([[:space:]]\|\$\)"
}
modprobe_write() { # FOLDER LINE
	say changed 1
	[ -z "$p_check" ] || return 0
	quiet mkdir -p "$1" || fail "create $1: $(output)"
	printf '%s\n' "$2" | replace "$1/$p_name.conf" 644 || fail "write $1/$p_name.conf"
}
modprobe_comment() { # FOLDER PATTERN: puts # before matching lines
	for file in $(modprobe_files "$1" "$2"); do
		say changed 1
		[ -n "$p_check" ] || sed "s/$2/#&/" "$file" | replace "$file" 644 || fail "write $file"
	done
}
modprobe_main() {
	key=$(flat "$p_name")
	loaded='' builtin=''
	if modprobe_loaded; then
		loaded=1
	elif modprobe_builtin; then
		builtin=1
	fi
	if [ "$p_state" = present ]; then
		[ -n "$loaded$builtin" ] || modprobe_load
	elif [ -n "$builtin" ]; then
		fail "module $p_name is built into the kernel: it cannot be unloaded"
	elif [ -n "$loaded" ]; then
		step "remove module $p_name" modprobe -r "$p_name"
	fi
	case $p_persistent in present | absent) modprobe_persist ;; esac
}
