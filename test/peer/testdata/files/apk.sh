#!/bin/sh
# A stand-in for Alpine's apk, with what it prints of packages in /srv/apk: NAME.has and
# NAME.new with versions. "base" is needed by others, "bundle" is virtual.
cd /srv/apk || exit 1
said=$*
while :; do
	case $1 in
	--no-cache | -v) shift ;;
	--repository) [ "$2" = /no/such ] && new=none; shift 2 ;;
	--repositories-file) shift 2 ;;
	*) break ;;
	esac
done
command=$1
shift
do=1 up='' n=0
while :; do
	case $1 in
	--simulate) do='' ;;
	--upgrade) up=1 ;;
	--purge | --available) ;;
	*) break ;;
	esac
	shift
done
name() { printf %s "${1%%[=~@<>]*}"; }
step() { n=$((n + 1)); echo "($n/$total) $*"; }
set_version() { # NAME
	if [ ! -f "$1.has" ]; then
		step Installing "$1" "($(cat "$1.new"))"
	elif [ "$up" ] && ! cmp -s "$1.has" "$1.new"; then
		step Upgrading "$1" "($(cat "$1.has") -> $(cat "$1.new"))"
	fi
	[ -z "$do" ] || cp "$1.new" "$1.has"
}
case $command in
info)
	case $1 in
	--installed) [ -f "$2.has" ] && echo "$2-$(cat "$2.has")" ;;
	--description) if [ "$2" = bundle ]; then echo "bundle: virtual meta package"; else echo "$2-1.0-r0 description:"; echo something; fi ;;
	--depends) echo "$2-1.0-r0 depends on:"; echo one; echo base ;;
	esac
	exit
	;;
version)
	echo "Installed:                                Available:"
	[ ! -f "$1.has" ] || {
		sign='='
		cmp -s "$1.has" "$1.new" || sign='<'
		printf '%-42s%s %s \n' "$1-$(cat "$1.has")" "$sign" "$(cat "$1.new")"
	}
	exit
	;;
esac
echo "fetch $said"
total=$#
case $command in
update) [ "$new" = none ] && { echo "ERROR: /no/such: No such file or directory" >&2; exit 1; } ;;
upgrade)
	up=1 total=$(find . -name "*.has" | wc -l)
	for file in *.has; do set_version "${file%.has}"; done
	;;
add)
	for word; do
		[ -f "$(name "$word").new" ] || { printf 'ERROR: unable to select packages:\n  %s (no such package):\n    required by: world[%s]\n' "$word" "$word" >&2; exit 1; }
	done
	for word; do
		set_version "$(name "$word")"
		[ -z "$do" ] || { grep -vx "$word" /etc/apk/world >w; echo "$word" >>w; mv w /etc/apk/world; }
	done
	;;
del)
	for word; do
		[ -z "$do" ] || { grep -vx "$word" /etc/apk/world >w; mv w /etc/apk/world; }
		if [ "$word" = base ]; then echo "World updated, but the following packages are not removed due to:"; echo "  base: one"; continue; fi
		step Purging "$word" "($(cat "$word.has"))"
		[ -z "$do" ] || rm "$word.has"
	done
	;;
esac
echo "OK: 9 MiB in 20 packages"
