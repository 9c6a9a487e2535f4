# shellcheck shell=sh disable=SC2154
# Lists the images of containerd, or imports an archive and pins images.
images() { "$p_ctr" -n k8s.io images "$@"; }
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
	if [ -n "$p_import" ]; then
		images import --platform "$p_platform" - >"$tmp/out" 2>"$tmp/err" || fail "import images: $(tail -n 3 "$tmp/err")"
	fi
	for ref; do
		images label "$ref" io.cri-containerd.pinned=pinned >"$tmp/out" 2>&1 || fail "pin $ref: $(cat "$tmp/out")"
	done
	;;
esac
