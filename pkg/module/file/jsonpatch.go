package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// JSONPatch is the module json_patch.
type JSONPatch struct {
	Attributes
	Path       string         `kk:"path,required,path,alias=dest|src" doc:"JSON file on the host"`
	Operations []jsonOperator `kk:"operations" doc:"operations of a JSON patch (RFC 6902), applied in order, all or none"`
	Merge      *value.Dict    `kk:"merge" doc:"merge patch (RFC 7396): its keys replace those of the document, dicts are merged, and null removes a key"`
	Create     bool           `kk:"create" default:"no" doc:"start with an empty object if the file does not exist"`
	Indent     *int           `kk:"indent" doc:"indentation per level, in blanks; 0 writes a single line. Default: as in the file, 2 for a new one"`
	Backup     bool           `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
	Validate   string         `kk:"validate" doc:"command that must accept the new file before it is put in place; %s is its path"`
}

// jsonOperator is one operation of a JSON patch.
type jsonOperator struct {
	Op    string `kk:"op,required" choices:"add,copy,move,remove,replace,test" doc:"operation to apply"`
	Path  string `kk:"path,required" doc:"JSON pointer (RFC 6901) such as /a/b/0; - is the end of a list, ~1 a slash in a name"`
	From  string `kk:"from" doc:"JSON pointer to the source of copy and move"`
	Value any    `kk:"value" doc:"value to add, replace with, or test for. Default: null"`
}

func jsonPatchSpec() module.Spec {
	return module.Spec{
		Name: "json_patch", Collection: "kk",
		Summary: "Changes a JSON file with a JSON patch or a merge patch.",
		Notes: []string{
			"The order of keys is preserved. A file whose content does not change is not written.",
			"add at the end of a list adds in each run: put a test before it, or use merge. Removing a missing value is " +
				"not an error.",
			"If a test in operations fails, nothing is changed, and tested in the result is false.",
		},
		Examples: []string{
			"- name: Limit the logs of the daemon\n  json_patch:\n    path: /etc/docker/daemon.json\n    create: true\n" +
				"    mode: \"0644\"\n    merge:\n      log-opts: {max-size: 10m, max-file: \"3\"}\n      debug: null",
			"- name: Move a key\n  json_patch:\n    path: /etc/app/config.json\n    operations:\n" +
				"      - {op: test, path: /version, value: 1}\n      - {op: move, from: /listen, path: /server/listen}\n" +
				"      - {op: replace, path: /version, value: 2}",
		},
		Returns: append([]module.Return{
			{Key: "path", Type: "str", Doc: "the file"},
			{Key: "tested", Type: "bool", Doc: "whether all tests in operations passed; null without tests"},
			{Key: "backup_file", Type: "str", Doc: "path of the backup"},
		}, FileReturns()...),
		New: func() module.Runner { return new(JSONPatch) },
	}
}

// Rules implements schema.Ruled.
func (*JSONPatch) Rules() schema.Rules {
	return schema.Rules{
		schema.Entries("operations", 1, schema.NoLimit),
		schema.AtMostOne("operations", "merge"),
		schema.AtLeastOne("operations", "merge"),
		ValidateRule(),
	}
}

// Run implements module.Runner.
func (m *JSONPatch) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	e, err := OpenEdit(ctx, c, m.Path, &m.Attributes, m.Create)
	if err != nil {
		return module.Result{}, err
	}
	before := e.Text
	if !e.Exists {
		before = "{}"
	}
	if !json.Valid([]byte(before)) {
		return module.Result{}, fmt.Errorf("%s is not valid JSON", e.at.path)
	}
	after, tested, err := m.patch([]byte(before))
	if err != nil {
		return module.Result{}, fmt.Errorf("patch %s: %w", e.at.path, err)
	}
	text := e.Text
	if !e.Exists || !jsonpatch.Equal([]byte(before), after) {
		if text, err = m.format(e.Text, after); err != nil {
			return module.Result{}, err
		}
	}
	return e.Save(ctx, c, &m.Attributes, Edited{
		Text: text, Touched: true, Backup: m.Backup, Validate: m.Validate, Data: value.NewDict("tested", tested), Whole: true,
	})
}

// patch returns the patched document. tested is nil if the patch contains no test.
func (m *JSONPatch) patch(doc []byte) (after []byte, tested any, err error) {
	patch, err := m.operations(doc)
	if err != nil {
		return nil, nil, err
	}
	for _, op := range m.Operations {
		if op.Op == "test" {
			tested = true
		}
	}
	o := jsonpatch.NewApplyOptions()
	o.AllowMissingPathOnRemove, o.SupportNegativeIndices, o.EscapeHTML = true, false, false
	after, err = patch.ApplyWithOptions(doc, o)
	if errors.Is(err, jsonpatch.ErrTestFailed) {
		return doc, false, nil
	}
	return after, tested, err
}

// operations converts the operations of the task to the format of the library.
func (m *JSONPatch) operations(doc []byte) (jsonpatch.Patch, error) {
	all := []any{}
	for _, op := range m.Operations {
		d := value.NewDict("op", op.Op, "path", op.Path)
		switch op.Op {
		case "copy", "move":
			d.Set("from", op.From)
		case "add", "replace", "test":
			d.Set("value", op.Value)
		}
		all = append(all, d)
	}
	if m.Merge != nil {
		target, err := value.FromJSON(doc)
		if err != nil {
			return nil, err
		}
		dict, ok := target.(*value.Dict)
		if !ok {
			return nil, errors.New("merge needs a document that is an object")
		}
		all = mergeOperations(dict, m.Merge, "")
	}
	text, err := value.JSON(all, value.JSONOptions{})
	if err != nil {
		return nil, err
	}
	return jsonpatch.DecodePatch([]byte(text))
}

// mergeOperations converts a merge patch to operations. The library's own merge escapes <, > and &.
func mergeOperations(target, patch *value.Dict, at string) []any {
	all := []any{}
	for key, v := range patch.All() {
		path := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(value.Str(key))
		old, there := target.Get(key)
		more, isDict := v.(*value.Dict)
		switch {
		case v == nil && there:
			all = append(all, value.NewDict("op", "remove", "path", path))
		case v == nil:
		case isDict:
			below, ok := old.(*value.Dict)
			if !ok {
				below = value.NewDict()
				all = append(all, value.NewDict("op", "add", "path", path, "value", below))
			}
			all = append(all, mergeOperations(below, more, path)...)
		default:
			all = append(all, value.NewDict("op", "add", "path", path, "value", v))
		}
	}
	return all
}

var firstIndent = regexp.MustCompile(`[{\[]\r?\n([ \t]+)`)

// format formats a document with the indentation of the previous text.
func (m *JSONPatch) format(before string, doc []byte) (string, error) {
	indent := "  "
	switch found := firstIndent.FindStringSubmatch(before); {
	case m.Indent != nil:
		indent = strings.Repeat(" ", max(*m.Indent, 0))
	case found != nil:
		indent = found[1]
	case before != "":
		indent = ""
	}
	var out bytes.Buffer
	var err error
	if indent == "" {
		err = json.Compact(&out, doc)
	} else {
		err = json.Indent(&out, doc, "", indent)
	}
	if before == "" || strings.HasSuffix(before, "\n") {
		out.WriteByte('\n')
	}
	return out.String(), err
}
