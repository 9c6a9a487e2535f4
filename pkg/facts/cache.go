package facts

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"kubekey/pkg/value"
)

// Cache keeps facts for later runs: one JSON file per host, readable by its owner only, with
// the names that Ansible's cache uses (ansible_kernel; facts that set_fact made cacheable
// have no prefix). A nil Cache keeps nothing.
type Cache struct {
	Dir   string
	Limit time.Duration // older facts are ignored; 0 is no limit
}

// Load returns the facts of a host, nil if there are no fresh ones.
func (c *Cache) Load(host string) (*value.Dict, error) {
	if c == nil {
		return nil, nil
	}
	path := c.path(host)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && c.Limit > 0 && time.Since(info.ModTime()) > c.Limit {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the cached facts: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the cached facts: %w", err)
	}
	v, err := value.FromJSON(text)
	if d, ok := v.(*value.Dict); ok && err == nil {
		return d, nil
	}
	return nil, fmt.Errorf("the cached facts in %s are not a JSON object; they are gathered again", path)
}

// Save replaces the facts of a host.
func (c *Cache) Save(host string, facts *value.Dict) error {
	if c == nil {
		return nil
	}
	text, err := value.JSON(facts, value.JSONOptions{SortKeys: true, Indent: 4})
	if err != nil {
		return fmt.Errorf("cache the facts of %s: %w", host, err)
	}
	if err := c.write(c.path(host), text); err != nil {
		return fmt.Errorf("cache the facts of %s: %w", host, err)
	}
	return nil
}

// write replaces a file atomically: another run may be reading it.
func (c *Cache) write(path, text string) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.Dir, ".facts-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Remove removes the facts of a host.
func (c *Cache) Remove(host string) error {
	if c == nil {
		return nil
	}
	if err := os.Remove(c.path(host)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the cached facts of %s: %w", host, err)
	}
	return nil
}

// path returns the file of a host; no name escapes the folder.
func (c *Cache) path(host string) string {
	return filepath.Join(c.Dir, url.PathEscape(host)+".json")
}
