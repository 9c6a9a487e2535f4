package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kevinburke/ssh_config"

	"kubekey/pkg/source"
)

// readConfig reads the ssh configuration files, the user's first. A missing file is
// empty, unless it was requested by name.
func readConfig(file string) ([]*ssh_config.Config, error) {
	switch file {
	case "none":
		return nil, nil
	case "":
	default:
		c, err := readConfigFile(file)
		return []*ssh_config.Config{c}, err
	}
	files := []string{"/etc/ssh/ssh_config"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append([]string{filepath.Join(home, ".ssh", "config")}, files...)
	}
	var out []*ssh_config.Config
	for _, name := range files {
		c, err := readConfigFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func readConfigFile(name string) (*ssh_config.Config, error) {
	text, err := source.Tree{}.Raw().Read(name, source.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("read ssh configuration: %w", err)
	}
	c, err := ssh_config.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read ssh configuration %s: %w: name another file, or none to use no file", name, err)
	}
	return c, nil
}

// hostConfig is the configuration of one alias.
type hostConfig struct {
	files []*ssh_config.Config
	alias string
}

// get returns the first value of a key, as ssh does; "" if there is none.
func (c hostConfig) get(key string) string {
	for _, f := range c.files {
		// Errors are about values, which are checked where they are used.
		if v, _ := f.Get(c.alias, key); v != "" {
			return v
		}
	}
	return ""
}

func (c hostConfig) getAll(key string) []string {
	var all []string
	for _, f := range c.files {
		values, _ := f.GetAll(c.alias, key)
		all = append(all, values...)
	}
	return all
}
