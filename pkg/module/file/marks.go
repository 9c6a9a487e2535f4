package file

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/shell"
)

// Marks are what a file system keeps of a file beside owner and mode.
type Marks struct {
	Flags   *string `kk:"attributes,alias=attr" doc:"flags of the file system as chattr takes them: \"i\" sets these alone, \"+i\" adds, \"-i\" takes away. Fails where the file system keeps none; without the command chattr nothing is done"`
	SEUser  string  `kk:"seuser" doc:"user in the SELinux context, or _default; without SELinux on the host nothing is done, as for the three below"`
	SERole  string  `kk:"serole" doc:"role in the SELinux context, or _default"`
	SEType  string  `kk:"setype" doc:"type in the SELinux context, or _default"`
	SELevel string  `kk:"selevel" doc:"level in the SELinux context, or _default"`
}

//go:embed marks.sh
var marksCode string

func (m *Marks) asked() bool {
	return m.Flags != nil || m.SEUser+m.SERole+m.SEType+m.SELevel != ""
}

// apply gives paths their marks, which is noted in ch. A path that is not
// there yet, as happens in check mode, gets all of them.
func (m *Marks) apply(ctx context.Context, c *module.Call, ch *change, paths ...string) error {
	if !m.asked() {
		return nil
	}
	words := []string{"kk_marks", "do", "keep", m.SEUser, m.SERole, m.SEType, m.SELevel}
	if c.Check {
		words[1] = "dry"
	}
	if m.Flags != nil {
		words[2] = *m.Flags
		if !strings.HasPrefix(*m.Flags, "+") && !strings.HasPrefix(*m.Flags, "-") {
			words[2] = "=" + strings.TrimPrefix(*m.Flags, "=")
		}
	}
	s := script{probe: c.Check}
	s.line(marksCode)
	s.line(shell.Join(append(words, paths...)...))
	out, err := s.run(ctx, c)
	if err != nil {
		return err
	}
	for len(out) > 0 {
		field, rest, _ := bytes.Cut(out, []byte{0})
		out = rest
		name, values, _ := strings.Cut(string(field), " ")
		before, after, ok := strings.Cut(values, " ")
		if !ok {
			return fmt.Errorf("the host answered %q about the attributes of a file", field)
		}
		ch.note(name, before, after)
	}
	return nil
}
