# shellcheck shell=sh disable=SC2154
# Lists the images of containerd, or imports an archive and pins images.
images() { "$p_ctr" -n k8s.io images "$@"; }
pin=io.cri-containerd.pinned=pinned
# Imports an archive with what this version can do. Without containerd's transfer service, which newer versions use by
# default, it takes two thirds of the time.
import() {
	options=$(images import --help </dev/null 2>&1) || :
	set -- --platform "$p_platform" -
	case $options in *--label*) set -- --label "$pin" "$@" ;; esac
	case $options in *--local*) set -- --local "$@" ;; esac
	images import "$@"
}
need "$p_ctr"
scratch
case $p_do in
list)
	images check >"$tmp/check" 2>"$tmp/err" || fail "list the images of containerd: $(cat "$tmp/err")"
	images ls >"$tmp/ls" 2>"$tmp/err" || fail "list the images of containerd: $(cat "$tmp/err")"
	say check "$(cat "$tmp/check")"
	say ls "$(cat "$tmp/ls")"
	;;
load)
	if [ -n "$p_import" ] && [ -n "$p_blobs" ]; then
		# The blobs are on the host: the archive is put together here, and streamed.
		mkdir -p "$tmp/archive/blobs"
		ln -s "$p_blobs" "$tmp/archive/blobs/sha256"
		tar -xf - -C "$tmp/archive" 2>"$tmp/err" || fail "unpack the list of images: $(cat "$tmp/err")"
		{ tar -chf - -C "$tmp/archive" -T "$tmp/archive/names" 2>"$tmp/tar" || : >"$tmp/short"; } |
			import >"$tmp/out" 2>"$tmp/err" ||
			fail "import images: $(tail -n 3 "$tmp/tar" "$tmp/err")"
		[ ! -e "$tmp/short" ] || fail "read images in $p_blobs: $(tail -n 3 "$tmp/tar")"
	elif [ -n "$p_import" ]; then
		import >"$tmp/out" 2>"$tmp/err" ||
			fail "import images: $(tail -n 3 "$tmp/err")"
	fi
	images ls >"$tmp/ls" 2>"$tmp/err" || fail "list the images of containerd: $(cat "$tmp/err")"
	pinned=' '
	while read -r name rest; do
		case $rest in *"$pin"*) pinned="$pinned$name " ;; esac
	done <"$tmp/ls"
	for ref; do
		case $pinned in *" $ref "*) continue ;; esac
		images label "$ref" "$pin" >"$tmp/out" 2>&1 || fail "pin $ref: $(cat "$tmp/out")"
	done
	;;
esac
