#!/bin/sh
# Print what the playbook of the shop has made, the same for the same.
set -u
things='/etc/shop /opt/shop /var/lib/shop /var/log/shop /usr/local/bin/shop /etc/cron.d/shop /etc/logrotate.d/shop
/etc/tmpfiles.d/shop.conf /etc/profile.d/shop.sh /etc/sudoers.d/shop /etc/security/limits.d/shop.conf /etc/hosts /etc/services'
# shellcheck disable=SC2086 # a list of words
set -- $things /etc/systemd/system/shop-* /etc/systemd/system/*.wants/shop-*
find "$@" -printf '%p %y %m %u %g %l\n' | sort
find "$@" -type f -exec sha256sum {} + | sort -k 2
getent passwd shop
getent group shop shop-view
systemctl is-active shop-web shop-worker shop-mail shop-clean.timer
systemctl is-enabled shop-web shop-worker shop-mail shop-clean.timer
