package general

import (
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestIniFile(t *testing.T) {
	text := "top = 1\n\n[a]\nx = 1\n# y = 2\n\n; end\n[b]\nx=1\nx=2\n"
	a, b := "[a]\nx = 1\n# y = 2\n\n; end\n", "[b]\nx=1\nx=2\n"
	top := "top = 1\n\n"
	moduletest.Edits(t, spec(t, "ini_file"), []editCase{
		{"the same", text, value.NewDict("section", "a", "option", "x", "value", "1"), text, "OK"},
		{"change", text, value.NewDict("section", "a", "option", "x", "value", 3), top + "[a]\nx = 3\n# y = 2\n\n; end\n" + b,
			"option changed"},
		{"add", text, value.NewDict("section", "a", "option", "z", "value", "3"), top +
			"[a]\nx = 1\nz = 3\n# y = 2\n\n; end\n" + b, "option added"},
		{"take the comment's place", text, value.NewDict("section", "a", "option", "y", "value", "3"), top +
			"[a]\nx = 1\ny = 3\n\n; end\n" + b, "option changed"},
		{"leave the comment", text, value.NewDict("section", "a", "option", "y", "value", "3", "modify_inactive_option",
			false), top + "[a]\nx = 1\ny = 3\n# y = 2\n\n; end\n" + b, "option added"},
		{"active before commented", "[a]\n#x = 1\nx = 1\n", value.NewDict("section", "a", "option", "x", "value", "1"),
			"[a]\n#x = 1\nx = 1\n", "OK"},
		{"before the sections", text, value.NewDict("option", "top", "value", "2"), "top = 2\n\n" + a + b, "option changed"},
		{"no sections", "", value.NewDict("option", "x", "value", "1"), "x = 1\n\n", "option added"},
		{"a byte order mark", "\ufeff[a]\nx = 1\n", value.NewDict("section", "a", "option", "x", "value", "2"),
			"[a]\nx = 2\n", "option changed"},
		{"a byte order mark, the same", "\ufeff[a]\nx = 1\n", value.NewDict("section", "a", "option", "x", "value", "1"),
			"\ufeff[a]\nx = 1\n", "OK"},
		{"new section", text, value.NewDict("section", "c", "option", "x", "value", "1", "no_extra_spaces", true), text +
			"[c]\nx=1\n", "section and option added"},
		{"new section alone", text, value.NewDict("section", "c"), text + "[c]\n", "only section added"},
		{"unfinished line", "[a]\nx = 1", value.NewDict("section", "a", "option", "y", "value", "2"), "[a]\nx = 1\ny = 2\n",
			"option added"},
		{"one of several", text, value.NewDict("section", "b", "option", "x", "value", "2", "no_extra_spaces", true), top +
			a + "[b]\nx=2\n", "option changed"},
		{"several", text, value.NewDict("section", "b", "option", "x", "values", []any{"2", "3"}, "no_extra_spaces", true),
			top + a + "[b]\nx=3\nx=2\n", "option changed"},
		{"not alone", text, value.NewDict("section", "b", "option", "x", "value", "3", "exclusive", false, "no_extra_spaces",
			true), text + "x=3\n", "option added"},
		{"blanks count", text, value.NewDict("section", "b", "option", "x", "values", []any{"1", "2"}), top + a +
			"[b]\nx = 1\nx = 2\n", "option changed"},
		{"blanks do not count", text, value.NewDict("section", "b", "option", "x", "values", []any{"1", "2"}, "ignore_spaces",
			true), text, "OK"},
		{"no value", text, value.NewDict("section", "a", "option", "skip", "allow_no_value", true), top +
			"[a]\nx = 1\nskip\n# y = 2\n\n; end\n" + b, "option added"},
		{"no value, the same", "[a]\nskip\n", value.NewDict("section", "a", "option", "skip", "allow_no_value", true),
			"[a]\nskip\n", "OK"},
		{"remove", text, value.NewDict("section", "b", "option", "x", "state", "absent"), top + a + "[b]\n",
			"option changed"},
		{"remove one value", text, value.NewDict("section", "b", "option", "x", "value", "1", "state", "absent", "exclusive",
			false), top + a + "[b]\nx=2\n", "option changed"},
		{"remove the section", text, value.NewDict("section", "a", "state", "absent"), top + b, "section removed"},
		{"remove nothing", text, value.NewDict("section", "c", "state", "absent"), text, "OK"},
		{"name with blanks", "[ a ]\nx = 1\n", value.NewDict("section", "a", "option", "x", "value", "2"), "[ a ]\nx = 2\n",
			"option changed"},
		{"name of signs", "[a.*]\nx = 1\n", value.NewDict("section", "a.*", "option", "x", "value", "$1"), "[a.*]\nx = $1\n",
			"option changed"},
		{"section by its values", "[p]\nk = 1\nv = 1\n[p]\nk = 2\nv = 1\n",
			value.NewDict("section", "p", "section_has_values", []any{value.NewDict("option", "k", "value", "2")}, "option", "v",
				"value", "9"),
			"[p]\nk = 1\nv = 1\n[p]\nk = 2\nv = 9\n", "option changed"},
		{"new section by its values", "[p]\nk = 1\n",
			value.NewDict("section", "p", "section_has_values", []any{value.NewDict("option", "k", "value", "2")}, "option", "v",
				"value", "9"),
			"[p]\nk = 1\n[p]\nk = 2\nv = 9\n", "section and option added"},
	})
}

func TestIniFileMakesFiles(t *testing.T) {
	dir := t.TempDir()
	r, _ := moduletest.RunTwice(t, spec(t, "ini_file"),
		value.NewDict("path", dir+"/new", "section", "a", "option", "x", "value", "1", "mode", "0600"),
		moduletest.Options{Diff: true})
	moduletest.Want(t, r, "mode", "0600", "path", dir+"/new")
	if read(t, dir+"/new") != "\n[a]\nx = 1\n" || len(r.Diff) != 1 {
		t.Errorf("the file holds %q, diff %+v", read(t, dir+"/new"), r.Diff)
	}
	r = moduletest.Run(t, spec(t, "ini_file"), value.NewDict("path", dir+"/none", "section", "a", "state", "absent"),
		moduletest.Options{})
	if r.Changed {
		t.Errorf("result is %+v", r)
	}
	moduletest.Fails(t, "does not exist !", spec(t, "ini_file"),
		value.NewDict("path", dir+"/none", "section", "a", "option", "x", "value", "1", "create", false),
		moduletest.Options{})
	moduletest.Fails(t, "Parameter 'value(s)' must be defined", spec(t, "ini_file"),
		value.NewDict("path", dir+"/none", "section", "a", "option", "x"), moduletest.Options{})
	moduletest.Fails(t, "must be one line", spec(t, "ini_file"),
		value.NewDict("path", dir+"/none", "option", "x", "value", "a\nb = 1"), moduletest.Options{})
	moduletest.Fails(t, "mutually exclusive", spec(t, "ini_file"),
		value.NewDict("path", dir+"/none", "option", "x", "value", "1", "values", "2"), moduletest.Options{})
}
