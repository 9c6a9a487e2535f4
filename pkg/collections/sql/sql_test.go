package sql

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func spec(t *testing.T, name string) module.Spec { return moduletest.Find(t, Modules(), name) }

// server is a host with a client that records its input.
func server(t *testing.T, client, answer string) *moduletest.StandIns {
	return moduletest.NewStandIns(t, map[string]string{client: `
case $1 in --defaults-file=*) cat "${1#*=}" >>"` + t.TempDir() + `/options";; esac
cat >/dev/null
printf '` + answer + `'`})
}

func TestNoPasswordInACommandLine(t *testing.T) {
	for name, client := range map[string]string{"mysql_user": "mysql", "postgresql_user": "psql"} {
		h := server(t, client, "")
		counted := moduletest.Count(h)
		args := value.NewDict("name", "shop", "password", "topsecret", "login_password", "mastersecret")
		r := moduletest.Run(t, spec(t, name), args, moduletest.Options{Conn: counted})
		if !r.Changed {
			t.Errorf("%s made no user: %+v", name, r)
		}
		for _, text := range append(counted.Lines(), h.Calls()) {
			if strings.Contains(text, "secret") {
				t.Errorf("%s: a password is in %s", name, text)
			}
		}
	}
}

func TestMysqlOptions(t *testing.T) {
	spec := spec(t, "mysql_db")
	m := spec.New().(*MysqlDB)
	m.mysqlLogin = mysqlLogin{User: `a"b`, Host: "db", Port: 3307, Timeout: 3, CA: `c:\ca`}
	want := "[client]\nuser=\"a\"b\"\nhost=\"db\"\nport=\"3307\"\nssl-ca=\"c:\\\\ca\"\n[mysql]\nconnect_timeout=3\n"
	if got := m.options(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMysqlPrivileges(t *testing.T) {
	want, err := desiredPrivs("my.db.*:select, Insert(b,a),GRANT/*.*:ALL PRIVILEGES/FUNCTION shop.f:EXECUTE/`shop`.dishes:SELECT")
	if err != nil {
		t.Fatal(err)
	}
	for on, privs := range map[string][]string{
		"`my.db`.*": {"GRANT", "INSERT (`a`, `b`)", "SELECT"}, "*.*": {"ALL"}, "FUNCTION `shop`.`f`": {"EXECUTE"},
		"`shop`.`dishes`": {"SELECT"},
	} {
		if !slices.Equal(want.privs[on], privs) {
			t.Errorf("%s: got %v, want %v", on, want.privs[on], privs)
		}
	}
	if only, _ := desiredPrivs(value.NewDict("shop.*", "SELECT")); !slices.Equal(only.privs["*.*"], []string{"USAGE"}) {
		t.Errorf("a user has at least USAGE: %v", only)
	}
	for _, bad := range []string{"shop", "shop:SELECT", "shop.:SELECT"} {
		if _, err := desiredPrivs(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	have := grantedPrivs(mysqlRows{{"Grants for x@y"},
		{"GRANT USAGE ON *.* TO `x`@`y` IDENTIFIED BY PASSWORD '*AB'"},
		{"GRANT ALL PRIVILEGES ON `a``b`.* TO `x`@`y` WITH GRANT OPTION"},
		{"GRANT SELECT (`b`, `a`), UPDATE ON `s`.`t` TO `x`@`y`"},
		{"GRANT PROXY ON ''@'%' TO 'root'@'localhost' WITH GRANT OPTION"},
		{"GRANT `boss`@`%` TO `x`@`y`"},
	})
	for on, privs := range map[string][]string{
		"*.*": {"USAGE"}, "`a``b`.*": {"ALL", "GRANT"}, "`s`.`t`": {"SELECT (`a`, `b`)", "UPDATE"},
		"''@'%'": {"GRANT", "PROXY"},
	} {
		if !slices.Equal(have.privs[on], privs) {
			t.Errorf("%s: got %v, want %v", on, have.privs[on], privs)
		}
	}
	if len(have.on) != 4 {
		t.Errorf("got %v", have.on)
	}
}

func TestMysqlPrivilegesAreChanged(t *testing.T) {
	have := grantedPrivs(mysqlRows{{""}, {"GRANT USAGE ON *.* TO x"},
		{"GRANT SELECT, UPDATE ON `a`.* TO x WITH GRANT OPTION"}, {"GRANT SELECT ON `b`.* TO x"}})
	for _, tt := range []struct {
		user MysqlUser
		priv string
		want []string
	}{
		{MysqlUser{}, "a.*:SELECT,UPDATE,GRANT/b.*:SELECT", nil},
		{MysqlUser{}, "a.*:SELECT,INSERT", []string{"REVOKE SELECT ON `b`.* FROM u", "REVOKE GRANT OPTION ON `a`.* FROM u",
			"REVOKE UPDATE ON `a`.* FROM u", "GRANT INSERT ON `a`.* TO u"}},
		{MysqlUser{}, "a.*:ALL,GRANT/b.*:SELECT", []string{"GRANT ALL ON `a`.* TO u"}},
		{MysqlUser{Append: true}, "b.*:GRANT", []string{"GRANT USAGE ON `b`.* TO u WITH GRANT OPTION"}},
		{MysqlUser{Append: true}, "*.*:RELOAD", []string{"GRANT RELOAD ON *.* TO u"}},
		{MysqlUser{Subtract: true}, "a.*:UPDATE,DELETE", []string{"REVOKE UPDATE ON `a`.* FROM u"}},
		{MysqlUser{Name: "root"}, "a.*:SELECT,UPDATE,GRANT", nil},
	} {
		want, err := desiredPrivs(tt.priv)
		if err != nil {
			t.Fatal(err)
		}
		if got := tt.user.privStatements(have, want, "u"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.priv, got, tt.want)
		}
	}
}

func TestKeptPasswords(t *testing.T) {
	const scram = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	for _, tt := range []struct {
		kept, password string
		want           bool
	}{
		{scram, "pencil", true}, {scram, "pen", false}, {scram, scram, true},
		{"md5" + "7f6e2c1f0f5cbb1d3a7c1b1a2d3e4f50", "x", false}, {"", "", true}, {"", "x", false},
		{"SCRAM-SHA-256$x:y$z:w", "x", false},
	} {
		if got := keptPassword(tt.kept, "shop", tt.password); got != tt.want {
			t.Errorf("%q of %q: %v", tt.kept, tt.password, got)
		}
	}
}

func TestRowsOfNothing(t *testing.T) {
	if got, want := emptyRows("a\n\n\"x\n\ny\"\n\n"), "a\n\"\"\n\"x\n\ny\"\n\"\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	h := moduletest.NewStandIns(t, map[string]string{
		"psql":  `m=$(sed -n 's/^.pset null //p'); printf "BEGIN\n$m\n$m\na\n\nb\n\n$m\nCOMMIT\n"`,
		"mysql": `m=$(sed -n "s/^SELECT '\(.*\)', ROW_COUNT.*/\1/p"); printf "a\n\nb\n\n$m\tROW_COUNT()\n$m\t-1\n"`,
	})
	for name, count := range map[string]any{"postgresql_query": 3, "mysql_query": []any{3}} {
		r := moduletest.Run(t, spec(t, name), value.NewDict("query", "SELECT a"), moduletest.Options{Conn: h})
		if got := moduletest.Field(r, "rowcount"); value.Repr(got) != value.Repr(count) {
			t.Errorf("%s counts %v rows", name, got)
		}
	}
}

func TestAnswersOfPostgreSQL(t *testing.T) {
	for _, tt := range []struct {
		statement, described, said string
		want                       string
	}{
		{"SELECT 1", "Column,Type\na,integer\nb,boolean\nc,\"numeric(3,1)\"\nd,text\ne,json\nf,timestamp(6) with time zone\ng,bigint\n",
			"a,b,c,d,e,f,g\n7,t,2.5,8,\"{\"\"x\"\": [1]}\",2030-01-02 03:04:05.5+02,NIL\n",
			"[{'a': 7, 'b': True, 'c': 2.5, 'd': '8', 'e': {'x': [1]}, 'f': '2030-01-02T03:04:05.500000+02:00', 'g': None}] SELECT 1 1 false"},
		{"UPDATE x SET a = 1", "", "UPDATE 0\n", "[] UPDATE 0 0 false"},
		{"INSERT INTO x VALUES (1) RETURNING a", "", "a\n1\nINSERT 0 1\n", "[{'a': '1'}] INSERT 0 1 1 true"},
		{"CREATE TABLE x ()", "", "CREATE TABLE\n", "[] CREATE TABLE 0 true"},
		{"WITH x AS (SELECT 1 AS a) SELECT a FROM x", "", "a\n1\n", "[{'a': '1'}] SELECT 1 1 false"},
	} {
		a, err := pgAnswerOf(tt.statement, tt.described, tt.said, "NIL")
		if got := fmt.Sprint(value.Repr(value.Of(a.rows)), " ", a.status, " ", a.count, " ", a.changed); err != nil ||
			got != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.statement, got, err, tt.want)
		}
	}
}

func TestWhatCannotBeUndoneIsNotSent(t *testing.T) {
	for _, q := range []string{"COMMIT", "INSERT INTO x VALUES (1); COMMIT", `\! reboot`, "COPY x TO PROGRAM 'reboot'",
		"VACUUM", "-- x"} {
		h := server(t, "psql", "")
		args := value.NewDict("query", []any{"SELECT 1", q})
		r := moduletest.Run(t, spec(t, "postgresql_query"), args, moduletest.Options{Conn: h, Check: true})
		if !r.Changed || h.Calls() != "" {
			t.Errorf("%s: %+v, and psql was run: %s", q, r, h.Calls())
		}
	}
}

func TestFillQuotes(t *testing.T) {
	got, err := fill("SELECT %s, %s, %s, '%%'", []any{`it's \`, 3, nil}, nil, literal(mysqlText))
	if want := `SELECT 'it''s \\', 3, NULL, '%'`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	got, err = fill("SELECT %(a)s, %(b)s", nil, value.NewDict("a", `it's \`, "b", true), literal(pgText))
	if want := `SELECT E'it''s \\', TRUE`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for _, positional := range [][]any{{1}, {1, 2, 3}} {
		if got, err := fill("SELECT %s, %s", positional, nil, literal(pgText)); err == nil {
			t.Errorf("%v for two places: %s", positional, got)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for _, tt := range []struct {
		text, name string
		args       []any
	}{
		{"mutually exclusive: append_privs|subtract_privs", "mysql_user",
			[]any{"name", "x", "append_privs", true, "subtract_privs", true}},
		{"valid hash", "mysql_user", []any{"name", "x", "password", "plain", "encrypted", true}},
		{"must be a name", "mysql_user", []any{"name", "x", "plugin", "a b"}},
		{"query is empty", "mysql_query", []any{"query", " ;"}},
		{"Invalid role_attr_flags specified: NOFUN", "postgresql_user", []any{"name", "x", "role_attr_flags", "login,nofun"}},
		{"Failed to find required executable", "postgresql_db", []any{"name", "x"}},
		{"Failed to find required executable", "mysql_db", []any{"name", "x"}},
	} {
		moduletest.Fails(t, tt.text, spec(t, tt.name), value.NewDict(tt.args...),
			moduletest.Options{Conn: moduletest.NewStandIns(t, nil)})
	}
}

func TestWhatTheServerRefuses(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{"mysql": "echo 'ERROR 1045: Access denied' >&2; exit 1",
		"psql": "echo 'FATAL: no such role' >&2; exit 2"})
	for name, text := range map[string]string{"mysql_db": "Access denied", "postgresql_db": "no such role"} {
		moduletest.Fails(t, text, spec(t, name), value.NewDict("name", "x"), moduletest.Options{Conn: h})
	}
}
