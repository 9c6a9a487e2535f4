# stock of the shop
stock() { echo "stock: $*"; }
