package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ensureKeys makes the key that the hosts let in, and dev's password.
func (l *Lab) ensureKeys() error {
	if _, err := os.Stat(l.PasswordFile()); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(l.PasswordFile(), []byte(rand.Text()+"\n"), 0o600); err != nil {
			return err
		}
	}
	key := l.state.path("id_ed25519")
	if _, err := os.Stat(key); err == nil {
		return nil
	}
	return makeKey(context.Background(), key, "lab-"+l.Name)
}

func makeKey(ctx context.Context, path, comment string) error {
	return run(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path)
}

// writeInventory writes the inventory and the known_hosts file.
func (l *Lab) writeInventory() error {
	var inventory, known strings.Builder
	inventory.WriteString("all:\n  hosts:\n")
	for _, h := range l.Hosts {
		fmt.Fprintf(&inventory, "    %s:\n      ansible_host: %s\n      ansible_user: root\n      ansible_ssh_private_key_file: %s\n",
			h.Name, h.Address, h.Key)
		public, err := os.ReadFile(filepath.Join(h.root(), "etc/ssh/ssh_host_ed25519_key.pub"))
		if err != nil {
			return fmt.Errorf("read host key of %s: %w", h.Name, err)
		}
		fields := strings.Fields(string(public))
		fmt.Fprintf(&known, "%s %s %s\n", h.Address, fields[0], fields[1])
	}
	fmt.Fprintf(&inventory, "  vars:\n    ansible_ssh_common_args: -o UserKnownHostsFile=%s\n", l.KnownHosts())
	if err := os.WriteFile(l.Inventory(), []byte(inventory.String()), 0o600); err != nil {
		return err
	}
	return os.WriteFile(l.KnownHosts(), []byte(known.String()), 0o600)
}
