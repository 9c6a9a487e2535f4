#!/bin/sh
# packages.sh FOLDER: make a repository of apt with a few small packages, and use it.
set -eu
export SOURCE_DATE_EPOCH=0 # the same bytes on every host
mkdir -p "$1"
cd "$1"

package() { # NAME VERSION FIELDS
	rm -rf tree
	mkdir -p tree/DEBIAN "tree/usr/share/$1" tree/etc
	echo "$2" >"tree/usr/share/$1/version"
	echo "of $1" >"tree/etc/$1.conf"
	echo "/etc/$1.conf" >tree/DEBIAN/conffiles
	printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: Peer <peer@example.com>\n%sDescription: for tests\n' "$1" "$2" "$3" >tree/DEBIAN/control
	dpkg-deb --build --root-owner-group -Zgzip tree "$1_$2_all.deb" >/dev/null
}

package peer-lib 1.0 ''
package peer-extra 1.0 'Provides: peer-virtual
'
for version in 1.0 2.0; do
	package peer-tool $version 'Depends: peer-lib
Recommends: peer-extra
'
done
rm -rf tree
for file in *.deb; do
	dpkg-deb -f "$file"
	printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$file" "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -d ' ' -f 1)"
done >Packages
echo "deb [trusted=yes] file:$PWD ./" >/etc/apt/sources.list.d/peer-packages.list
