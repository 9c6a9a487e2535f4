# shellcheck shell=sh disable=SC2154
# The script of the module git. The address of the remote, its user and password
# are in the environment: KK_REPO, KK_USER, KK_PASSWORD.
git_() { # git, with the user and the password if there are any
	if [ -z "$KK_PASSWORD" ]; then
		git "$@"
	else
		git -c credential.helper= -c "credential.helper=$helper" "$@"
	fi
}
inside() { git_ -C "$p_dest" "$@"; }
git_heads() { # sets heads: the refs of the remote
	heads=$(git_ ls-remote -- "$KK_REPO" 2>"$tmp/out" </dev/null) || fail "Failed to download remote objects and refs:  $(output)"
}
ref() { # REF: its commit on the remote
	printf '%s\n' "$heads" | while read -r sha name; do
		[ "$name" != "$1" ] || printf '%s\n' "$sha"
	done
}
# git_resolve sets kind and want: p_version as the remote has it.
git_resolve() {
	kind=commit want=''
	if [ "$p_version" = HEAD ]; then
		branch=''
		[ -z "$there" ] || branch=$(inside symbolic-ref -q --short HEAD 2>/dev/null)
		[ -z "$branch" ] || want=$(ref "refs/heads/$branch")
		if [ -n "$want" ]; then
			kind=branch
			return
		fi
		branch='' want=$(ref HEAD)
		for name in $(printf '%s\n' "$heads" | sed -n "s/^${want}[[:space:]]*//p"); do
			case $name in
			refs/heads/main | refs/heads/master)
				branch=${name#refs/heads/} kind=branch
				break
				;;
			refs/heads/*) [ -n "$branch" ] || branch=${name#refs/heads/} kind=branch ;;
			esac
		done
		return
	fi
	branch=${p_version#refs/heads/}
	want=$(ref "refs/heads/$branch")
	if [ -n "$want" ]; then
		kind=branch
		return
	fi
	tag=${p_version#refs/tags/}
	want=$(ref "refs/tags/$tag^{}")
	[ -n "$want" ] || want=$(ref "refs/tags/$tag")
	if [ -n "$want" ]; then
		kind=tag
		return
	fi
	want=$(ref "$p_version")
	if [ -n "$want" ]; then
		kind=ref
		return
	fi
	case $p_version in *[!0-9a-f]*) ;; ????????????????????????????????????????*) want=$p_version ;; esac
}
git_run() { # WHAT COMMAND...
	what=$1
	shift
	quiet "$@" || fail "$what: $(output)"
}
git_clone() {
	set -- clone --origin "$p_remote"
	if [ -n "$p_bare" ]; then
		set -- "$@" --bare
	else
		set -- "$@" --no-checkout
	fi
	[ -z "$p_reference" ] || set -- "$@" --reference "$p_reference"
	[ -z "$p_single_branch" ] || set -- "$@" --single-branch
	if [ -n "$p_depth" ]; then
		set -- "$@" --depth "$p_depth"
		[ "$kind" != commit ] || set -- "$@" --no-single-branch
	fi
	case $kind in
	branch) [ -z "$branch" ] || set -- "$@" --branch "$branch" ;;
	tag) set -- "$@" --branch "$tag" ;;
	esac
	[ -z "$p_separate_git_dir" ] || set -- "$@" --separate-git-dir="$p_separate_git_dir"
	git_run "Failed to clone" git_ "$@" -- "$KK_REPO" "$p_dest"
}
git_fetch() {
	into="refs/remotes/$p_remote/"
	[ -z "$p_bare" ] || into=refs/heads/
	set -- fetch --force
	[ -n "$p_refspec" ] || [ -n "$p_depth" ] || set -- "$@" --tags
	[ -z "$p_depth" ] || set -- "$@" --depth "$p_depth"
	[ -z "$p_bare" ] || set -- "$@" --update-head-ok
	set -- "$@" "$p_remote"
	case ${p_depth:+1}$kind in
	1branch) set -- "$@" "+refs/heads/$branch:$into$branch" ;;
	1tag) set -- "$@" "+refs/tags/$tag:refs/tags/$tag" ;;
	*) set -- "$@" "+refs/heads/*:$into*" ;;
	esac
	[ "$kind" != ref ] || set -- "$@" "$p_version"
	[ -z "$p_refspec" ] || set -- "$@" "$p_refspec"
	git_run "Failed to download remote objects and refs" inside "$@"
	if [ "$kind" = commit ] && ! inside cat-file -e "$p_version^{commit}" 2>/dev/null; then
		# A server may serve a commit by its hash, at any depth; otherwise everything is fetched.
		quiet inside fetch ${p_depth:+--depth "$p_depth"} "$p_remote" "$p_version" ||
			{ [ -e "$(inside rev-parse --git-dir)/shallow" ] && quiet inside fetch --unshallow "$p_remote"; } || :
	fi
}
git_checkout() {
	case $kind in
	branch)
		[ "$(inside symbolic-ref -q --short HEAD 2>/dev/null)" = "$branch" ] && [ "$(inside rev-parse -q --verify HEAD)" = "$want" ] && [ -z "$fresh" ] && return
		git_run "Failed to checkout branch $branch" inside checkout --force -B "$branch" "$p_remote/$branch"
		git_run "Failed to checkout branch $branch" inside reset --hard "$p_remote/$branch" --
		;;
	*)
		target=$p_version
		[ "$kind" != tag ] || target=refs/tags/$tag
		[ "$kind" != ref ] || target=$want
		[ "$p_version" != HEAD ] || target=$want
		target=$(inside rev-parse -q --verify "$target^{commit}" 2>/dev/null) || fail "Failed to checkout $p_version: neither a branch, a tag nor a commit of the remote has that name"
		[ "$(inside rev-parse -q --verify HEAD)" = "$target" ] && [ -z "$fresh" ] && ! inside symbolic-ref -q HEAD >/dev/null && return
		git_run "Failed to checkout $p_version" inside checkout --force --detach "$target"
		;;
	esac
}
git_submodules() {
	[ -n "$p_recursive" ] && [ -z "$p_bare" ] && [ -f "$p_dest/.gitmodules" ] || return 0
	was=$(inside submodule status --recursive 2>&1)
	git_run "Failed to init/update submodules" inside submodule sync --recursive
	git_run "Failed to init/update submodules" inside submodule update --init --recursive --force ${p_track_submodules:+--remote}
	[ "$was" = "$(inside submodule status --recursive 2>&1)" ] || say changed 1
}
git_unclean() { # the files that have local changes
	[ -z "$p_bare" ] || return 0
	inside status --porcelain --untracked-files=no
}
git_update() {
	before=$(inside rev-parse -q --verify HEAD) || before=''
	say before "$before"
	if [ -z "$p_update" ]; then
		say after "$before"
		return
	fi
	dirty=$(git_unclean)
	if [ -n "$dirty" ]; then
		[ -n "$p_force" ] || fail "Local modifications exist in the destination: $p_dest (force=no)."
		say msg 'Local modifications exist.'
		step "Failed to discard local changes" inside reset --hard HEAD --
		step "Failed to discard local changes" inside clean -f
	fi
	url=$(inside config --get "remote.$p_remote.url") || url=''
	if [ "$url" != "$KK_REPO" ]; then
		say url_changed 1
		say changed 1
		if [ -z "$p_check" ]; then
			verb=set-url
			[ -n "$url" ] || verb=add
			git_run "Failed to set the address of $p_remote" inside remote "$verb" "$p_remote" "$KK_REPO"
		fi
	fi
	git_heads
	git_resolve
	if [ -z "$want" ] && [ "$p_version" != HEAD ]; then
		want=$(inside rev-parse -q --verify "$p_version^{commit}" 2>/dev/null) || want=''
	fi
	if [ -n "$p_check" ]; then
		say after "$want"
		[ "$want" = "$before" ] || say changed 1
		return
	fi
	if [ "$want" != "$before" ] || [ -n "$p_refspec" ]; then
		git_fetch
	elif [ "$kind" = branch ] && [ -z "$p_bare" ] && ! inside rev-parse -q --verify "refs/remotes/$p_remote/$branch" >/dev/null; then
		git_fetch
	fi
	[ -n "$p_bare" ] || [ -z "$heads" ] || git_checkout
	git_finish
	[ "$after" = "$before" ] || say changed 1
}
git_finish() {
	after=$(inside rev-parse -q --verify HEAD) || after=''
	[ -z "$p_verify_commit" ] || git_run "Failed to verify GPG signature of commit/tag \"$p_version\"" inside verify-commit HEAD
	git_submodules
	say after "$after"
}
git_separate() { # moves the repository to separate_git_dir
	[ -n "$p_separate_git_dir" ] && [ -z "$p_bare" ] || return 0
	now=$(inside rev-parse --git-dir 2>/dev/null) || return 0
	case $now in /*) ;; *) now=$p_dest/$now ;; esac
	[ "$(readlink -f "$now")" != "$(readlink -f "$p_separate_git_dir")" ] || return 0
	[ ! -e "$p_separate_git_dir" ] || fail "Separate-git-dir path $p_separate_git_dir already exists."
	say changed 1
	[ -z "$p_check" ] || return 0
	# git itself moves the repository, and records its new path.
	git_run "Failed to move the repository to $p_separate_git_dir" git init --separate-git-dir="$p_separate_git_dir" "$p_dest"
}
git_archive() {
	case $p_archive in
	*.zip) set -- zip ;;
	*.gz | *.tgz) set -- tar.gz ;;
	*.tar) set -- tar ;;
	*) set -- tar ;;
	esac
	if [ -n "$p_check" ]; then
		[ -e "$p_archive" ] || say changed 1
		return 0
	fi
	scratch
	set -- archive --format="$1" --output="$tmp/archive"
	[ -z "$p_archive_prefix" ] || set -- "$@" --prefix="$p_archive_prefix"
	git_run "Failed to perform archive operation" inside "$@" HEAD
	! cmp -s "$tmp/archive" "$p_archive" || return 0
	say changed 1
	replace "$p_archive" 644 <"$tmp/archive" || fail "Failed to move $tmp/archive to $p_archive"
}
git_main() {
	case $p_archive in
	'' | *.zip | *.gz | *.tgz | *.tar) ;;
	*) fail "archive must end in .zip, .tar, .gz or .tgz: $p_archive" ;;
	esac
	git_work
	[ -z "$p_archive" ] || [ -z "$p_clone" ] || git_archive
}
git_work() {
	if [ -n "$p_executable" ]; then
		need "$p_executable"
	else
		need git
	fi
	[ -z "$p_umask" ] || umask "$p_umask" || fail "umask must be octal digits, got $p_umask"
	GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true SSH_ASKPASS=true
	export GIT_TERMINAL_PROMPT GIT_ASKPASS SSH_ASKPASS
	[ -z "$p_ssh" ] || export GIT_SSH_COMMAND="$p_ssh"
	scratch
	# shellcheck disable=SC2016
	helper='!f() { printf "username=%s\npassword=%s\n" "$KK_USER" "$KK_PASSWORD"; }; f'
	there='' fresh=''
	if [ -n "$p_dest" ]; then
		if [ -n "$p_bare" ]; then
			[ ! -f "$p_dest/HEAD" ] || [ ! -d "$p_dest/objects" ] || there=1
		elif [ -e "$p_dest/.git" ]; then
			there=1
		fi
	fi
	if [ -n "$there" ]; then
		git_separate
		git_update
		return
	fi
	git_heads
	git_resolve
	say before ''
	say changed 1
	if [ -n "$p_check" ] || [ -z "$p_clone" ]; then
		say after "$want"
		return
	fi
	fresh=1
	git_clone
	if [ -n "$p_refspec" ] || [ "$kind" = commit ] || [ "$kind" = ref ]; then
		git_fetch
	fi
	[ -n "$p_bare" ] || [ -z "$heads" ] || git_checkout
	git_finish
}
