#!/bin/sh
# rpms.sh FOLDER PACKAGE...: install a manager of rpm's packages, and make a repository with two versions of a small package, and a key.
set -eu
export DEBIAN_FRONTEND=noninteractive SOURCE_DATE_EPOCH=0
dir=$1
shift
apt-get -q -y install --no-install-recommends "$@" rpm createrepo-c >/tmp/rpms.log 2>&1 || { cat /tmp/rpms.log >&2; exit 1; }
mkdir -p "$dir/repo" /etc/yum.repos.d
cd "$dir"
for version in 1.0 2.0; do
	cat >peer-rpm.spec <<END
Name: peer-rpm
Version: $version
Release: 1
Summary: for tests
License: MIT
BuildArch: noarch
%description
for tests
%install
mkdir -p %{buildroot}/opt/peer-rpm
echo $version >%{buildroot}/opt/peer-rpm/version
%files
/opt/peer-rpm
END
	rpmbuild -bb --define "_topdir $dir/build" --define "_rpmdir $dir/repo" peer-rpm.spec >rpm.log 2>&1 || { cat rpm.log >&2; exit 1; }
done
createrepo_c -q repo
gpg -q --no-default-keyring --keyring /usr/share/keyrings/debian-archive-bookworm-stable.gpg --armor --export >key.asc
