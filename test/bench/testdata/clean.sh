#!/bin/sh
# Take away what the playbook of the shop makes.
[ -e /root/hosts.orig ] || cp -p /etc/hosts /root/hosts.orig
[ -e /root/services.orig ] || cp -p /etc/services /root/services.orig
for unit in shop-web.service shop-worker.service shop-mail.service shop-clean.timer; do
  systemctl disable -q --now "$unit" 2>/dev/null
done
rm -rf /etc/shop /opt/shop /var/lib/shop /var/log/shop /usr/local/bin/shop /etc/systemd/system/shop-* \
  /etc/cron.d/shop /etc/logrotate.d/shop /etc/tmpfiles.d/shop.conf /etc/profile.d/shop.sh /etc/sudoers.d/shop /etc/security/limits.d/shop.conf
systemctl daemon-reload
userdel shop 2>/dev/null
groupdel shop 2>/dev/null
groupdel shop-view 2>/dev/null
cp -p /root/hosts.orig /etc/hosts
cp -p /root/services.orig /etc/services
