# orders of the shop
orders() { echo "orders: $*"; }
