package module

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"kubekey/pkg/hostscript"
)

// Marks are attributes of a file in addition to owner and mode.
type Marks struct {
	Flags   *string `kk:"attributes,alias=attr" doc:"file attributes in the form of chattr: \"i\" sets exactly these, \"+i\" adds, \"-i\" removes. Fails if the file system does not support them; ignored if chattr is not installed"`
	SEUser  string  `kk:"seuser" doc:"user in the SELinux context, or _default; ignored on a host without SELinux, like the next three"`
	SERole  string  `kk:"serole" doc:"role in the SELinux context, or _default"`
	SEType  string  `kk:"setype" doc:"type in the SELinux context, or _default"`
	SELevel string  `kk:"selevel" doc:"level in the SELinux context, or _default"`
}

//go:embed marks.sh
var marksScript string

// MarkChange is a mark of a file that changed, or would change in check mode.
type MarkChange struct{ Name, Before, After string }

// Apply sets the marks of paths. A path that does not exist yet, which happens in check mode, gets all of them when
// it is created.
func (m *Marks) Apply(ctx context.Context, c *Call, paths ...string) ([]MarkChange, error) {
	if m.Flags == nil && m.SEUser+m.SERole+m.SEType+m.SELevel == "" {
		return nil, nil
	}
	s := hostscript.New(marksScript, `marks_set "$@"`).Args(m)
	if m.Flags != nil {
		flags := *m.Flags
		if !strings.HasPrefix(flags, "+") && !strings.HasPrefix(flags, "-") {
			flags = "=" + strings.TrimPrefix(flags, "=")
		}
		s.Set("flags", flags)
	}
	s.Words = paths
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return nil, err
	}
	var changes []MarkChange
	for _, said := range a["mark"] {
		words := strings.Split(said, " ")
		if len(words) != 3 {
			return nil, fmt.Errorf("the host answered %q about the attributes of a file", said)
		}
		changes = append(changes, MarkChange{words[0], words[1], words[2]})
	}
	return changes, nil
}
