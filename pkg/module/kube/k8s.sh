# shellcheck shell=sh disable=SC2154
# Discovery is cached in the script's own folder: nothing of it stays on the
# host, and it is never older than the script.
kc() {
	IFS=$nl
	for group in $p_impersonate_groups; do set -- "$@" --as-group="$group"; done
	unset IFS
	"$p_kubectl" --cache-dir="$tmp/cache" ${p_kubeconfig:+--kubeconfig="$p_kubeconfig"} ${p_context:+--context="$p_context"} \
		${p_host:+--server="$p_host"} ${p_user:+--user="$p_user"} ${p_no_validate_certs:+--insecure-skip-tls-verify} ${p_ca_cert:+--certificate-authority="$p_ca_cert"} \
		${p_client_cert:+--client-certificate="$p_client_cert"} ${p_client_key:+--client-key="$p_client_key"} ${p_impersonate_user:+--as="$p_impersonate_user"} "$@"
}
# reach answers and ends without kubectl; a user of the task's own joins those of the kubeconfig.
reach() {
	missing "$p_kubectl"
	[ -n "$KK_CREDENTIALS" ] || return 0
	printf %s "$KK_CREDENTIALS" >"$tmp/credentials"
	KUBECONFIG=$tmp/credentials:${p_kubeconfig:-${KUBECONFIG:-$HOME/.kube/config}} p_kubeconfig='' p_user=kk-task
	export KUBECONFIG
}
# objects: standard input, one object a line, becomes the folder $tmp/o and the file $tmp/all.json.
objects() {
	cat >"$tmp/all.json"
	mkdir "$tmp/o" && split -l 1 -a 4 "$tmp/all.json" "$tmp/o/"
}
get_all() { # what the cluster has of the objects; kinds it does not know are not there
	kc get -f "$tmp/all.json" --ignore-not-found -o json --request-timeout=60s >"$tmp/live" 2>"$tmp/live.err"
	say live_rc $?
	tell live "$tmp/live"
	tell live_err "$tmp/live.err"
}
write() { # VERB ARGUMENT...: what the object became lies in $tmp/out, errors in $tmp/err
	kc "$@" --field-manager="$p_manager" ${p_check:+--dry-run=server} -o json --request-timeout=60s >"$tmp/out" 2>"$tmp/err"
}
apply() { write apply --server-side ${p_force:+--force-conflicts} -f "$1"; }
send() { # VERB FILE
	case $1 in
	apply) apply "$2" ;;
	patch)
		for type in $p_types; do
			write patch -f "$2" --patch-file="$2" --type="$type" && return
		done
		return 1
		;;
	*) write "$1" -f "$2" ;;
	esac
}
# singly sends each object, by the verb that p_verbs has for it: one that is
# refused does not hold up the others.
singly() {
	set -- "$tmp"/o/*
	for verb in $p_verbs; do
		send "$verb" "$1"
		say rc $?
		tell out "$tmp/out"
		tell err "$tmp/err"
		shift
	done
}
# apply_all sends all objects at once. If any is refused, each is sent alone, so
# that the error says whose it is.
apply_all() {
	if apply "$tmp/all.json"; then
		tell all "$tmp/out"
		tell warn "$tmp/err"
		return
	fi
	singly
}
delete_from() {
	kc delete -f "$1" --ignore-not-found --wait="$p_wait" --timeout="$p_timeout" ${p_cascade:+--cascade="$p_cascade"} ${p_grace:+--grace-period="$p_grace"} >"$tmp/out" 2>"$tmp/err"
	say rc $?
	tell err "$tmp/err"
}
k8s_apply() {
	reach
	objects
	get_all
	apply_all
}
k8s_send() {
	reach
	objects
	singly
}
k8s_get() {
	reach
	objects
	get_all
}
k8s_delete() {
	reach
	objects
	if [ -z "$p_singly" ]; then
		delete_from "$tmp/all.json"
		return
	fi
	for o in "$tmp"/o/*; do
		delete_from "$o"
	done
}
k8s_info() {
	reach
	set -- get "$p_kind"
	[ -z "$p_name" ] || set -- "$@" "$p_name"
	if [ -n "$p_namespace" ]; then
		set -- "$@" "--namespace=$p_namespace"
	elif [ -z "$p_name" ]; then
		set -- "$@" --all-namespaces
	fi
	[ -z "$p_labels" ] || set -- "$@" "--selector=$p_labels"
	[ -z "$p_fields" ] || set -- "$@" "--field-selector=$p_fields"
	kc "$@" --ignore-not-found -o json --request-timeout=60s >"$tmp/out" 2>"$tmp/err"
	say rc $?
	tell found "$tmp/out"
	tell err "$tmp/err"
}
