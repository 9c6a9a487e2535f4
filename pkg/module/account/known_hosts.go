package account

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed known_hosts.sh
var knownHostsScript string

// KnownHosts is the module known_hosts.
type KnownHosts struct {
	Name  string `kk:"name,required,alias=host" doc:"host as ssh looks it up: a name, an address, or [NAME]:PORT"`
	Key   string `kk:"key" doc:"public keys of the host, one per line in the form of the file: NAME TYPE KEY. Needed with state: present"`
	Path  string `kk:"path,path" default:"~/.ssh/known_hosts" doc:"path of the file; ~ is the home folder of the user that the task runs as"`
	Hash  bool   `kk:"hash_host" default:"no" doc:"hash the name of the host"`
	State string `kk:"state" default:"present" choices:"absent,present" doc:"whether the keys should be in the file; absent without key removes all keys of the host"`
}

func knownHostsSpec() module.Spec {
	return module.Spec{
		Name:    "known_hosts",
		Summary: "Manages host keys in a known_hosts file.",
		Notes: []string{"An existing key of the same type is replaced. kk reads the file itself, including hashed " +
			"names: the host needs no ssh-keygen."},
		Examples: []string{
			"- name: Add the host key of the git server\n  known_hosts:\n    name: git.example.org\n" +
				"    key: git.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Hp5mVdSpIGg0mVYLdOxSoyLKf9VVRY9nP1oLPxSZk\n" +
				"    path: /etc/ssh/ssh_known_hosts",
		},
		Returns: []module.Return{{Key: "diff", Type: "dict", Doc: "the file before and after, even without --diff"},
			{Key: "name, key, path, hash_host, state", Type: "any", Doc: "the arguments"}},
		New: func() module.Runner { return new(KnownHosts) },
	}
}

// Rules implements schema.Ruled.
func (*KnownHosts) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		schema.Parses("the name of one host", oneHost, "name"),
		schema.Needs("key").If("state", "present").Says("No key specified when adding a host"),
	}
}

// Run implements module.Runner.
func (m *KnownHosts) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	desired, err := m.desired()
	if err != nil {
		return module.Result{}, err
	}
	a, err := c.Probe(ctx, hostscript.New(knownHostsScript, "known_hosts_read").Set("path", m.Path))
	if err != nil {
		return module.Result{}, err
	}
	before := strings.TrimSuffix(a.Get("text"), "x")
	after, err := m.edit(before, desired)
	if err != nil {
		return module.Result{}, err
	}
	r := module.Result{Changed: after != before, Data: value.NewDict(
		"name", m.Name, "key", m.Key, "path", a.Get("path"), "hash_host", m.Hash, "state", m.State)}
	if c.Show(&r, a.Get("path"), before, after); r.Diff == nil { // the result has it always
		r.Data.Set("diff", value.NewDict("before", before, "after", after, "before_header", a.Get("path"), "after_header",
			a.Get("path")))
	}
	return c.Act(ctx, r, hostscript.New(knownHostsScript, "known_hosts_write").Set("path", m.Path), after)
}

func oneHost(name string) error {
	if strings.Contains(name, ",") {
		//nolint:staticcheck // the text users know
		return errors.New("Comma separated list of names is not supported. Please pass a single name to lookup in the " +
			"known_hosts file.")
	}
	if strings.ContainsAny(name, " \t\r\n\x00") {
		return fmt.Errorf("%q is not the name of one host", name)
	}
	return nil
}

// desired reads the lines of key, which must be of the host.
func (m *KnownHosts) desired() ([]hostKey, error) {
	m.Name = strings.ToLower(m.Name)
	var keys []hostKey
	for _, line := range module.Lines(m.Key) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, ok := parseHostKey(line)
		if !ok {
			return nil, fmt.Errorf("%q is not a host's key: write NAME TYPE KEY", line)
		}
		if !k.of(m.Name) {
			//nolint:staticcheck // the text users know
			return nil, errors.New("Host parameter does not match hashed host field in supplied key")
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// edit adds or removes the keys. An existing key of the host with the same type and
// mark is removed unless it is identical.
func (m *KnownHosts) edit(text string, desired []hostKey) (string, error) {
	var out []string
	there := map[string]bool{}
	for _, line := range module.Lines(text) {
		k, ok := parseHostKey(line)
		if !ok || !k.of(m.Name) || !m.replaces(k, desired, there) {
			out = append(out, line)
		}
	}
	if m.State == "present" {
		for _, k := range desired {
			if there[k.kind+k.blob] {
				continue
			}
			there[k.kind+k.blob] = true
			if m.Hash {
				hashed, err := hashHost(m.Name)
				if err != nil {
					return "", err
				}
				k.hosts = hashed
			}
			out = append(out, k.String())
		}
	}
	if after := module.JoinLines(out); after != text+"\n" {
		return after, nil
	}
	return text, nil
}

// replaces reports whether an existing key of the host must be removed.
func (m *KnownHosts) replaces(k hostKey, desired []hostKey, there map[string]bool) bool {
	if m.State == "absent" && len(desired) == 0 {
		return true
	}
	sameType := false
	for _, w := range desired {
		if w.mark != k.mark || w.kind != k.kind {
			continue
		}
		sameType = true
		if w.blob == k.blob {
			again := there[k.kind+k.blob]
			there[k.kind+k.blob] = true
			return m.State == "absent" || again
		}
	}
	return sameType && m.State == "present"
}

// hostKey is a line of a known_hosts file (sshd(8)): a mark such as
// @cert-authority, hosts, type, the key in base64, comment.
type hostKey struct{ mark, hosts, kind, blob, comment string }

func parseHostKey(line string) (k hostKey, ok bool) {
	words := strings.Fields(line)
	if len(words) > 0 && strings.HasPrefix(words[0], "@") {
		k.mark, words = words[0], words[1:]
	}
	if len(words) < 3 || strings.HasPrefix(words[0], "#") {
		return hostKey{}, false
	}
	k.hosts, k.kind, k.blob = words[0], words[1], words[2]
	k.comment = strings.Join(words[3:], " ")
	return k, isKeyType(k.kind)
}

func (k hostKey) String() string {
	var words []string
	for _, w := range []string{k.mark, k.hosts, k.kind, k.blob, k.comment} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// of reports whether the line names the host, plain or hashed.
func (k hostKey) of(name string) bool {
	if rest, hashed := strings.CutPrefix(k.hosts, "|1|"); hashed {
		salt, sum, _ := strings.Cut(rest, "|")
		key, err := base64.StdEncoding.DecodeString(salt)
		return err == nil && hostHash(key, name) == sum
	}
	return slices.Contains(strings.Split(strings.ToLower(k.hosts), ","), name)
}

// hashHost is a name as ssh-keygen -H writes it: |1|SALT|HMAC-SHA1.
func hashHost(name string) (string, error) {
	salt := make([]byte, sha1.Size)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	return "|1|" + base64.StdEncoding.EncodeToString(salt) + "|" + hostHash(salt, name), nil
}

func hostHash(salt []byte, name string) string {
	h := hmac.New(sha1.New, salt)
	h.Write([]byte(name))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}
