#!/usr/bin/env bash
# Print the folder of Ansible's collections. Those of Debian's package are
# unpacked for the tests once, without being installed.
set -euo pipefail

version=$(apt-cache show --no-all-versions ansible | sed -n 's/^Version: //p')
wanted=()
for c in ansible/posix ansible/utils community/general community/crypto community/mysql community/postgresql kubernetes/core; do
  wanted+=("./usr/lib/python3/dist-packages/ansible_collections/$c")
done
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kk-peer/$version-${#wanted[@]}
if [ ! -d "$cache" ]; then
  mkdir -p "$(dirname "$cache")"
  temp=$(mktemp -d "$cache.XXXXXX")
  trap 'rm -rf "$temp"' EXIT
  (cd "$temp" && apt-get download -q ansible="$version" >&2)
  mkdir "$temp/tree"
  dpkg-deb --fsys-tarfile "$temp"/*.deb | tar -x -C "$temp/tree" "${wanted[@]}"
  mv "$temp/tree/usr/lib/python3/dist-packages" "$cache"
fi
echo "$cache"
