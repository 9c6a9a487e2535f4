package simulated

import (
	"crypto/sha1"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"sync"

	"kubekey/pkg/value"
)

// host is what tasks left on a host.
type host struct {
	mu    sync.Mutex
	files map[string]*node
}

// node is a file or a folder.
type node struct {
	dir     bool
	link    string
	mode    string
	sum     string
	content string
}

// found are files that every host has.
var found = []string{"/sys/fs/cgroup/cgroup.controllers", "/etc/hosts", "/etc/fstab",
	"/usr/share/zoneinfo/Europe/Berlin"}

func newHost() *host {
	h := &host{files: map[string]*node{}}
	for _, name := range found {
		h.put(name, "", "0644", false)
	}
	return h
}

// put writes a file; what it holds is kept when it may be asked for.
func (h *host) put(name, content, mode string, keep bool) (changed bool) {
	sum := sha1.Sum([]byte(content))
	n := &node{mode: mode, sum: hex.EncodeToString(sum[:])}
	if keep || len(content) < 512 {
		n.content = content
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.files[name]
	h.files[name] = n
	return old == nil || old.sum != n.sum || old.mode != n.mode
}

func (h *host) set(name string, n *node) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.files[name]
	h.files[name] = n
	return old == nil || *old != *n
}

func (h *host) get(name string) *node {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.files[path.Clean(name)]
}

// remove takes a path and what is below it away.
func (h *host) remove(name string) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at := range h.files {
		if at == name || strings.HasPrefix(at, name+"/") {
			delete(h.files, at)
			changed = true
		}
	}
	return changed
}

// below lists the files below a folder, sorted.
func (h *host) below(folder string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for at, n := range h.files {
		if strings.HasPrefix(at, folder+"/") && !n.dir {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return out
}

// stat is what the module stat says of a path.
func (h *host) stat(name string) *value.Dict {
	n := h.get(name)
	if n == nil {
		return value.NewDict("exists", false)
	}
	d := value.NewDict("exists", true, "path", name, "isdir", n.dir, "isreg", !n.dir && n.link == "", "islnk",
		n.link != "",
		"mode", n.mode, "uid", 0, "gid", 0, "pw_name", "root", "gr_name", "root", "size", len(n.content))
	if n.link != "" {
		d.Set("lnk_source", n.link)
	}
	if !n.dir {
		d.Set("checksum", n.sum)
	}
	return d
}
