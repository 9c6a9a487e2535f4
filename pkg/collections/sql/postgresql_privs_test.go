package sql

import (
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// privServer simulates a server through psql: the existing roles, and lists of privileges that change if one of the
// statements is for "reader".
func privServer(t *testing.T) *moduletest.StandIns {
	return moduletest.NewStandIns(t, map[string]string{"psql": `
input=$(cat)
case $input in
*"'role'"*) printf '?column?,rolname\nrole,reader\nrole,same\n'
	case $input in *"'none'"*) exit 0 ;; *"'schema'"*) printf 'schema,public\nobject,1\n' ;; esac ;;
*'"reader"'*) printf 'status\na\nstatus\nb\n' ;;
*'"missing"'*) echo 'ERROR:  relation "missing" does not exist' >&2; exit 3 ;;
*) printf 'status\na\nstatus\na\n' ;;
esac`})
}

func TestPrivilegesOfPostgreSQL(t *testing.T) {
	for _, tt := range []struct {
		args    []any
		changed bool
		want    string // expected queries
	}{
		{[]any{"privs", "select, Insert", "objs", "books,a\"b", "roles", "reader"}, true,
			`GRANT SELECT,INSERT ON table "public"."books","public"."a""b" TO "reader";`},
		{[]any{"privs", "ALL", "objs", "books", "roles", "same,reader", "state", "absent", "schema", "s"}, true,
			`REVOKE ALL ON table "s"."books" FROM "same","reader";`},
		{[]any{"privs", "SELECT", "objs", "books", "roles", "same", "grant_option", true}, false,
			`GRANT SELECT ON table "public"."books" TO "same" WITH GRANT OPTION;`},
		{[]any{"privs", "SELECT", "objs", "books", "roles", "same", "grant_option", false}, false,
			"GRANT SELECT ON table \"public\".\"books\" TO \"same\";\nREVOKE GRANT OPTION FOR SELECT ON table \"public\".\"books\" FROM \"same\";"},
		{[]any{"privs", "SELECT", "objs", "ALL_IN_SCHEMA", "roles", "reader"}, true,
			`GRANT SELECT ON ALL TABLES IN SCHEMA "public" TO "reader";`},
		{[]any{"privs", "SELECT", "objs", "ALL_IN_SCHEMA", "roles", "reader,gone", "fail_on_role", false}, true,
			`GRANT SELECT ON ALL TABLES IN SCHEMA "public" TO "reader";`},
		{[]any{"privs", "EXECUTE", "type", "function", "objs", "add(int:int)", "roles", "same"}, false,
			`GRANT EXECUTE ON function "public"."add"(int,int) TO "same";`},
		{[]any{"privs", "CONNECT", "type", "database", "roles", "public"}, false,
			`GRANT CONNECT ON database "shop" TO PUBLIC;`},
		{[]any{"privs", "USAGE", "type", "foreign_server", "objs", "x", "roles", "same"}, false,
			`GRANT USAGE ON foreign server "x" TO "same";`},
		{[]any{"type", "group", "objs", "a,b", "roles", "same", "admin_option", true}, false,
			`GRANT "a","b" TO "same" WITH ADMIN OPTION;`},
		{[]any{"privs", "SELECT", "type", "default_privs", "objs", "tables", "roles", "reader", "target_roles", "a,b",
			"usage_on_types", false}, true,
			"ALTER DEFAULT PRIVILEGES FOR ROLE \"a\",\"b\" IN SCHEMA \"public\" REVOKE ALL ON TABLES FROM \"reader\";\n" +
				"ALTER DEFAULT PRIVILEGES FOR ROLE \"a\",\"b\" IN SCHEMA \"public\" GRANT SELECT ON TABLES TO \"reader\";"},
		{[]any{"privs", "usage", "type", "default_privs", "objs", "schemas", "roles", "same", "state", "absent"}, false,
			"ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM \"same\";\nALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM \"same\";\n" +
				"ALTER DEFAULT PRIVILEGES REVOKE ALL ON TYPES FROM \"same\";\nALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM \"same\";"},
	} {
		args := value.NewDict(append(tt.args, "db", "shop")...)
		r := moduletest.Run(t, spec(t, "postgresql_privs"), args, moduletest.Options{Conn: privServer(t)})
		if got := value.Repr(moduletest.Field(r, "queries")); r.Changed != tt.changed || got != value.Repr([]any{tt.want}) {
			t.Errorf("%v: changed %v, sent %s", tt.args, r.Changed, got)
		}
	}
}

// In check mode, missing objects may be ones that an earlier task would create.
func TestPrivilegesInCheckMode(t *testing.T) {
	for _, tt := range []struct {
		args    []any
		changed bool
		warning string
	}{
		{[]any{"roles", "gone", "objs", "x"}, true, "Role 'gone' does not exist (check mode"},
		{[]any{"roles", "same", "objs", "missing"}, true, "relation \"missing\" does not exist (check mode"},
		{[]any{"roles", "same", "objs", "missing", "state", "absent"}, false,
			"relation \"missing\" does not exist (check mode"},
		{[]any{"roles", "same", "objs", "ALL_IN_SCHEMA", "schema", "none"}, true,
			"Schema \"none\" does not exist. (check mode"},
		{[]any{"roles", "reader", "objs", "x"}, true, ""},
	} {
		args := value.NewDict(append(tt.args, "db", "shop", "privs", "ALL")...)
		h := privServer(t)
		r := moduletest.Run(t, spec(t, "postgresql_privs"), args, moduletest.Options{Conn: h, Check: true})
		if got := strings.Join(r.Warnings, "\n"); r.Changed != tt.changed || !strings.Contains(got, tt.warning) ||
			got == "" != (tt.warning == "") {
			t.Errorf("%v: changed %v, warnings %q", tt.args, r.Changed, got)
		}
	}
}

func TestPrivilegesThatCannotBe(t *testing.T) {
	for text, args := range map[string][]any{
		"Role 'gone' does not exist":          {"roles", "gone", "privs", "ALL", "objs", "x"},
		"relation \"missing\" does not exist": {"roles", "same", "privs", "ALL", "objs", "missing"},
		"Invalid privileges specified: READ":  {"roles", "same", "privs", "READ", "objs", "x"},
		"Invalid priv specified: INSERT is no privilege on TYPES": {"roles", "same", "privs", "INSERT", "objs", "types",
			"type", "default_privs"},
		"Invalid Object set specified: views": {"roles", "same", "privs", "ALL", "objs", "views", "type",
			"default_privs"},
		"\"schema\" is not allowed for type \"group\"": {"roles", "same", "objs", "x", "type", "group", "schema",
			"s"},
		"\"privs\" is not allowed for type \"group\"": {"roles", "same", "objs", "x", "type", "group", "privs",
			"ALL"},
		"\"privs\" is required": {"roles", "same", "objs", "x"},
		"\"objs\" is required":  {"roles", "same", "privs", "ALL"},
		"ALL_IN_SCHEMA can be used only": {"roles", "same", "privs", "ALL", "objs", "ALL_IN_SCHEMA",
			"type", "schema"},
		"Illegal function": {"roles", "same", "privs", "ALL", "objs", "f(int);x",
			"type", "function"},
		"potentially dangerous": {"roles", "a\"; DROP", "privs", "ALL", "objs", "x",
			"trust_input", false},
		"but not both": {"roles", "same", "privs", "ALL", "objs", "x", "password",
			"a", "login_password", "b"},
	} {
		moduletest.Fails(t, text, spec(t, "postgresql_privs"), value.NewDict(append(args, "db", "shop")...),
			moduletest.Options{Conn: privServer(t)})
	}
}
