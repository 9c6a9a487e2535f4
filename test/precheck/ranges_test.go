package precheck_test

import (
	"testing"

	"kubekey/builtin"
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// The filters and tests of the role, as expressions with what they yield.
func TestRanges(t *testing.T) {
	plugins, ds := project.Plugins(source.Tree{Embedded: builtin.FS()},
		[]string{source.Builtin + "/playbooks/precheck.yaml"}, nil)
	env, more := expr.New(expr.Options{}, library.Standard()).With(plugins)
	if err := append(ds, more...).Err(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ expr, want string }{
		{"'10.233.64.0/18' | precheck_room(24, 64, 3, 110)", ""},
		{"'10.233.64.0/18' | precheck_room('24', 64, 64, '110')", ""},
		{"'10.233.64.0/18' | precheck_room(24, 64, 65, 110)", "10.233.64.0/18 has 64 parts of /24."},
		{"'10.233.64.0/25' | precheck_room(24, 64, 3, 110)", "the part of a node (/24) is larger than 10.233.64.0/25."},
		{"'10.233.64.0/18' | precheck_room(26, 64, 3, 110)", "the part of a node (/26) has room for 61 Pods."},
		{"'10.233.64.0/18' | precheck_room(25, 64, 3, 125)", ""},
		{"'10.233.64.0/18' | precheck_room(25, 64, 3, 126)", "the part of a node (/25) has room for 125 Pods."},
		{"'10.0.0.0/8' | precheck_room(24, 64, 65536, 110)", ""},
		{"'10.0.0.0/8' | precheck_room(25, 64, 3, 110)",
			"10.0.0.0/8 in parts of /25 is more than the 65536 parts that Kubernetes can count."},
		{"'fd85::/56' | precheck_room(24, 64, 256, 110)", ""},
		{"'fd85::/56' | precheck_room(24, 64, 257, 110)", "fd85::/56 has 256 parts of /64."},
		{"'fd85::/40' | precheck_room(24, 64, 3, 110)",
			"fd85::/40 in parts of /64 is more than the 65536 parts that Kubernetes can count."},
		{"'fd85::/8' | precheck_room(24, 64, 3, 110)",
			"fd85::/8 in parts of /64 is more than the 65536 parts that Kubernetes can count."},
		{"'fd85::/112' | precheck_room(24, 122, 3, 110)", "the part of a node (/122) has room for 61 Pods."},
		{"'10.0.0.0/8' is precheck_overlapping('10.1.0.0/16')", "True"},
		{"'10.1.0.0/16' is precheck_overlapping('10.0.0.0/8')", "True"},
		{"'10.0.0.0/16' is precheck_overlapping('10.1.0.0/16')", "False"},
		{"'fd85::/64' is precheck_overlapping('fd85::/112')", "True"},
		{"'10.0.0.0/8' is precheck_overlapping('fd85::/112')", "False"},
	} {
		t.Run(tt.expr, func(t *testing.T) {
			x, err := env.Compile(tt.expr, source.Pos{}, expr.Escaped)
			if err != nil {
				t.Fatal(err)
			}
			got, err := x.Eval(t.Context(), nobody{})
			if err != nil {
				t.Fatal(err)
			}
			if text := value.Str(got); text != tt.want {
				t.Errorf("%q, want %q", text, tt.want)
			}
		})
	}
}

// nobody is a scope without variables.
type nobody struct{}

func (nobody) Lookup(string) (any, bool, error) { return nil, false, nil }
