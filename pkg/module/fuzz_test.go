package module_test

import (
	"context"
	"testing"

	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// FuzzTextFile passes arbitrary answers of a host about a text file and its marks.
func FuzzTextFile(f *testing.F) {
	for _, out := range []string{
		"", "text=ax\x00owner=0 root\x00group=0 root\x00mode=644\x00", "text=\x00mode=9\x00",
		"mark=flags - i\x00changed=1\x00", "mark=\x00",
	} {
		f.Add(out, "u=rw,g+s", true)
		f.Add(out, "0600", false)
	}
	f.Fuzz(func(t *testing.T, out, mode string, exists bool) {
		host := &connectortest.Fake{Answer: func(context.Context, connectortest.Call) connectortest.Answer {
			return connectortest.Answer{Stdout: out}
		}}
		c := &module.Call{Conn: host, Diff: true}
		var args struct {
			module.FileAttrs
			module.Marks
		}
		if err := schema.Decode(&args, value.NewDict("mode", mode, "owner", "root", "attributes", "+i"),
			&redact.Set{}); err != nil {
			return
		}
		if _, err := args.Marks.Apply(t.Context(), c, "/x"); err != nil && err.Error() == "" {
			t.Errorf("%#v has no text", err)
		}
		text, err := module.ReadText(t.Context(), c, "/x")
		if err != nil {
			return
		}
		if !text.Exists() && text.Before != "" {
			t.Errorf("a file that does not exist has %q", text.Before)
		}
		text.After, text.Remove, text.Backup = text.Before+"x", exists, true
		var r module.Result
		if err := text.Save(t.Context(), c, args.FileAttrs, &r); err == nil && r.Changed != (text.Exists() || !text.Remove) {
			t.Errorf("%q: changed is %v", out, r.Changed)
		}
	})
}
