// Package ssh runs commands on a host over one SSH connection, which is opened on first use
// and serves all commands of a run.
package ssh

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/redact"
)

// HostKeyPolicy selects what happens to a host key that is not in known_hosts.
type HostKeyPolicy string

// The policies. Strict and AcceptNew reject a key that differs from the known one.
const (
	Strict    HostKeyPolicy = "strict"     // reject it
	AcceptNew HostKeyPolicy = "accept-new" // add it to known_hosts
	Insecure  HostKeyPolicy = "insecure"   // check nothing, ever
)

// Options describe how to reach a host. Every option has a default; options that are not set
// are read from the ssh configuration files.
type Options struct {
	Host    string // name in the inventory
	Address string // name, address, or alias of ssh_config to connect to; default: Host
	Port    int    // default: Port of ssh_config, else 22
	User    string // default: User of ssh_config, else the local user

	Password        redact.Secret // also answers keyboard-interactive questions
	PrivateKeyFiles []string      // default: IdentityFile, else ~/.ssh/id_{ed25519,ecdsa,rsa}
	PrivateKey      redact.Secret // a private key itself, in PEM
	Passphrase      redact.Secret // of encrypted private keys
	AgentSocket     string        // default: IdentityAgent, else $SSH_AUTH_SOCK; "none" is no agent

	HostKey    HostKeyPolicy // default: StrictHostKeyChecking if accept-new or no, else Strict
	KnownHosts []string      // default: UserKnownHostsFile, else ~/.ssh/known_hosts; and /etc/ssh/ssh_known_hosts

	// ConfigFile is read instead of ~/.ssh/config and /etc/ssh/ssh_config;
	// "none" reads no file.
	ConfigFile string
	// ProxyJump is a list [user@]host[:port],... to connect through, nearest
	// first; "none" connects directly. Default: ProxyJump of ssh_config.
	ProxyJump string

	ConnectTimeout time.Duration // for connecting and logging in; default: ConnectTimeout, else 10 s
	KeepAlive      time.Duration // between keepalive messages; default 15 s; negative disables them
}

const (
	defaultTimeout   = 10 * time.Second
	defaultKeepAlive = 15 * time.Second
)

// target is Options with every default filled in.
type target struct {
	Options
	alias          string // the host argument ssh would have; ssh_config is read for it
	identitiesOnly bool
	givenKeys      bool // the keys were named, so one that cannot be read is an error
	jumps          []*target
}

func (t *target) addr() string { return net.JoinHostPort(t.Address, strconv.Itoa(t.Port)) }

// name is what messages call the host: its label, and its address.
func (t *target) name() string {
	if t.Host == "" || t.Host == t.Address {
		return t.addr()
	}
	return t.Host + " (" + t.addr() + ")"
}

// maxJumps bounds a chain of jump hosts that refer to each other.
const maxJumps = 8

func (s *Shared) resolve(o Options, depth int) (*target, error) {
	if o.Host == "" {
		o.Host = o.Address
	}
	if o.Host == "" {
		return nil, errors.New("ssh: no host is given")
	}
	conf, err := s.config(o.ConfigFile)
	if err != nil {
		return nil, err
	}
	t := &target{Options: o, givenKeys: len(o.PrivateKeyFiles) > 0, alias: o.Address}
	def(&t.alias, o.Host)
	c := hostConfig{conf, t.alias}
	if err := t.fill(c); err != nil {
		return nil, fmt.Errorf("ssh options of %s: %w", o.Host, err)
	}
	t.fillKeys(c)
	return t, s.resolveJumps(t, depth)
}

func (t *target) fill(c hostConfig) error {
	if name := c.get("HostName"); name != "" {
		t.Address = strings.ReplaceAll(name, "%h", t.alias)
	}
	def(&t.Address, t.alias)
	def(&t.User, c.get("User"), localUser())
	def(&t.ProxyJump, c.get("ProxyJump"), "none")
	if err := t.fillPort(c.get("Port")); err != nil {
		return err
	}
	if t.ConnectTimeout == 0 {
		seconds, _ := strconv.Atoi(c.get("ConnectTimeout"))
		t.ConnectTimeout = time.Duration(seconds) * time.Second
	}
	if t.ConnectTimeout <= 0 {
		t.ConnectTimeout = defaultTimeout
	}
	if t.KeepAlive == 0 {
		t.KeepAlive = defaultKeepAlive
	}
	if t.HostKey == "" {
		t.HostKey = policyOf(c.get("StrictHostKeyChecking"))
	}
	switch t.HostKey {
	case Strict, AcceptNew, Insecure:
		return nil
	}
	return fmt.Errorf("host key policy %q is not supported: use strict, accept-new or insecure", t.HostKey)
}

func (t *target) fillPort(configured string) error {
	if t.Port == 0 && configured != "" {
		n, err := strconv.Atoi(configured)
		if err != nil {
			return fmt.Errorf("port %q in the ssh configuration is not a number", configured)
		}
		t.Port = n
	}
	if t.Port == 0 {
		t.Port = 22
	}
	if t.Port < 1 || t.Port > 65535 {
		return fmt.Errorf("port %d is not between 1 and 65535", t.Port)
	}
	return nil
}

func (t *target) fillKeys(c hostConfig) {
	t.identitiesOnly = strings.EqualFold(c.get("IdentitiesOnly"), "yes")
	if !t.givenKeys && t.PrivateKey.IsZero() {
		t.PrivateKeyFiles = c.getAll("IdentityFile")
		if len(t.PrivateKeyFiles) == 0 {
			t.PrivateKeyFiles = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}
		}
	}
	t.PrivateKeyFiles = t.expandAll(t.PrivateKeyFiles)
	def(&t.AgentSocket, t.expand(c.get("IdentityAgent")), os.Getenv("SSH_AUTH_SOCK"))
	if t.AgentSocket == "SSH_AUTH_SOCK" {
		t.AgentSocket = os.Getenv("SSH_AUTH_SOCK")
	}
	if len(t.KnownHosts) == 0 {
		t.KnownHosts = strings.Fields(c.get("UserKnownHostsFile"))
		if len(t.KnownHosts) == 0 {
			t.KnownHosts = []string{"~/.ssh/known_hosts"}
		}
		t.KnownHosts = append(t.KnownHosts, "/etc/ssh/ssh_known_hosts")
	}
	t.KnownHosts = t.expandAll(t.KnownHosts)
}

// policyOf maps StrictHostKeyChecking; "ask" becomes strict, as there is nobody to ask.
func policyOf(configured string) HostKeyPolicy {
	switch strings.ToLower(configured) {
	case "accept-new":
		return AcceptNew
	case "no", "off":
		return Insecure
	}
	return Strict
}

func (s *Shared) resolveJumps(t *target, depth int) error {
	if strings.EqualFold(t.ProxyJump, "none") {
		return nil
	}
	if depth >= maxJumps {
		return fmt.Errorf("ssh: more than %d jump hosts: does ProxyJump of %s refer back to itself?", maxJumps, t.Host)
	}
	for i, hop := range strings.Split(t.ProxyJump, ",") {
		o, err := t.jumpOptions(strings.TrimSpace(hop))
		if err != nil {
			return err
		}
		if o.Host == t.alias && (o.Port == 0 || o.Port == t.Port) {
			continue // "Host *" sets it for the jump host too
		}
		if i > 0 {
			o.ProxyJump = "none" // reached through the previous hop
		}
		jump, err := s.resolve(o, depth+1)
		if err != nil {
			return err
		}
		t.jumps = append(t.jumps, append(jump.jumps, jump)...)
	}
	return nil
}

// jumpOptions are the options for one [user@]host[:port], without those that are for t alone.
func (t *target) jumpOptions(hop string) (Options, error) {
	o := Options{
		Password: t.Password, PrivateKey: t.PrivateKey, Passphrase: t.Passphrase, AgentSocket: t.AgentSocket,
		HostKey: t.HostKey, KnownHosts: t.KnownHosts, ConfigFile: t.ConfigFile,
		ConnectTimeout: t.ConnectTimeout, KeepAlive: t.KeepAlive,
	}
	if t.givenKeys {
		o.PrivateKeyFiles = t.PrivateKeyFiles
	}
	hop = strings.TrimPrefix(hop, "ssh://")
	if i := strings.LastIndexByte(hop, '@'); i >= 0 {
		o.User, hop = hop[:i], hop[i+1:]
	}
	o.Host = hop
	if host, port, err := net.SplitHostPort(hop); err == nil {
		n, err := strconv.Atoi(port)
		if err != nil {
			return o, fmt.Errorf("ssh: jump host %q: port %q is not a number", hop, port)
		}
		o.Host, o.Port = host, n
	}
	o.Host = strings.Trim(o.Host, "[]")
	if o.Host == "" {
		return o, fmt.Errorf("ssh: ProxyJump %q has an empty host", t.ProxyJump)
	}
	return o, nil
}

func (t *target) expandAll(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = t.expand(p)
	}
	return out
}

// expand replaces ~ and the % tokens of ssh_config in a path.
func (t *target) expand(p string) string {
	p = strings.Trim(p, `"`)
	home, _ := os.UserHomeDir()
	if p == "~" || strings.HasPrefix(p, "~/") {
		p = filepath.Join(home, p[1:])
	}
	if !strings.Contains(p, "%") {
		return p
	}
	return strings.NewReplacer("%%", "%", "%d", home, "%h", t.Address, "%n", t.alias,
		"%r", t.User, "%u", localUser(), "%p", strconv.Itoa(t.Port)).Replace(p)
}

func localUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// def sets *s to the first value that is not empty, unless it has one.
func def(s *string, values ...string) {
	for _, v := range values {
		if *s == "" {
			*s = v
		}
	}
}
