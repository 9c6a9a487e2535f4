package module

import (
	"fmt"
	"os"

	"kubekey/pkg/artifact"
)

// OfflineFiles opens offline files, once for all hosts of a run unless they change. Hosts can read them concurrently.
// They are closed when the run ends: callers do not close them.
func (c *Call) OfflineFiles(paths []string) (artifact.Set, error) {
	key := "offline files"
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			info, err = os.Stat(p + ".001") // in parts
		}
		key += fmt.Sprintf(" %q", p)
		if err == nil {
			key += fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
		}
	}
	set, err := c.Share.Do(key, func() (any, error) { return artifact.OpenSet(paths) })
	if err != nil {
		return nil, err
	}
	return set.(artifact.Set), nil
}
