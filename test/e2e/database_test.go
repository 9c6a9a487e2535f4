package e2e

import (
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestMariaDB(t *testing.T) {
	g := newTarget(t)
	g.needs("mariadb-server")
	password := `se'cr\et "1" #`
	g.twice("mysql_db", "name", []any{"shop", "odd`na-me"}, "encoding", "utf8mb4")
	g.twice("mysql_user", "name", "bob", "host", "localhost", "password", password, "priv",
		"shop.*:ALL,GRANT/odd`na-me.*:SELECT,insert/*.*:RELOAD")
	g.twice("mysql_user", "name", "ann", "host", "10.0.0.%", "password", "x", "priv",
		"shop.*:SELECT/mysql.user:SELECT(User, Host)")
	g.twice("mysql_user", "name", "ann", "host", "10.0.0.%", "priv", "shop.*:INSERT", "append_privs", true)
	if got := g.sh(`mysql -NBe "SHOW GRANTS FOR ann@'10.0.0.%'" | sort`); !strings.Contains(got,
		"GRANT SELECT, INSERT ON `shop`.*") || !strings.Contains(got, "(`User`, `Host`)") &&
		!strings.Contains(got, "(`Host`, `User`)") {
		t.Errorf("the privileges of ann: %s", got)
	}
	g.twice("mysql_user", "name", "ann", "host", "10.0.0.%", "priv", "*.*:USAGE")
	if got := g.sh(`mysql -NBe "SHOW GRANTS FOR ann@'10.0.0.%'"`); strings.Contains(got, "shop") {
		t.Errorf("privileges that were not asked for stay: %s", got)
	}
	g.same("mysql_user", "name", "bob", "password", "another", "update_password", "on_create")
	if r := g.run("mysql_query", "query", "SELECT name FROM (SELECT 'a\tb' AS name) AS t WHERE name = %s",
		"positional_args", []any{"a\tb"},
		"login_user", "bob", "login_password", password, "login_db", "shop"); moduletest.Field(r,
		"rowcount").([]any)[0] != 1 {
		t.Errorf("bob asks and gets %v", r.Data)
	}
	g.fails("Access denied", "mysql_query", "query", "SELECT 1", "login_user", "bob", "login_password", "wrong")
	g.run("mysql_query", "login_db", "shop", "query", "CREATE TABLE dishes (name VARCHAR(9))")
	g.twice("mysql_user", "name", "bob", "host_all", true, "state", "absent")
	g.twice("mysql_db", "name", []any{"shop", "odd`na-me"}, "state", "absent")
	runExamples(t, g, mariaDBExamples())
	g.sh(`mysql -e "DROP DATABASE shop; DROP USER shop@'10.0.0.%'"`)
}

func mariaDBExamples() []example {
	return []example{
		{module: "mysql_db"},
		{module: "mysql_user", vars: shopPassword},
		{module: "mysql_query", prepare: "mysql shop -e 'CREATE TABLE dishes (id INT, name VARCHAR(9))'"},
	}
}

const shopPassword = "    shop_password: a password\n"

func postgreSQLExamples() []example {
	return []example{
		{module: "postgresql_user", vars: shopPassword},
		{module: "postgresql_db"},
		{module: "postgresql_ext"},
		{module: "postgresql_privs", prepare: "cd /; su postgres -c 'createuser reader; psql -q shop -c \"CREATE TABLE goods ()\"'"},
		{module: "postgresql_query", prepare: "su postgres -c \"psql -q shop -c 'CREATE TABLE dishes (id INT, name TEXT)'\""},
	}
}

func TestPostgreSQL(t *testing.T) {
	g := newTarget(t)
	g.needs("postgresql")
	root := g.conn
	g.conn = connector.Become(root, connector.BecomeOptions{Method: "sudo", User: "postgres"})
	password := `p'w\1`
	g.twice("postgresql_user", "name", "shop", "password", password, "role_attr_flags", "CREATEDB,NOSUPERUSER", "comment",
		"it's")
	g.twice("postgresql_user", "name", "shop", "password", password, "role_attr_flags", "NOCREATEDB", "conn_limit", 5,
		"expires", "2031-01-01")
	g.twice("postgresql_db", "name", "shop", "owner", "shop", "encoding", "UTF-8", "template", "template0", "lc_collate",
		"C", "lc_ctype", "C")
	g.twice("postgresql_db", "name", "shop", "owner", "postgres", "conn_limit", 7)
	g.fails("LC_COLLATE is not supported", "postgresql_db", "name", "shop", "lc_collate", "de_DE.UTF-8")
	g.dry("postgresql_ext", "name", "plpgsql", "db", "none")
	g.same("postgresql_ext", "name", "plpgsql", "db", "shop")
	g.twice("postgresql_ext", "name", "plpgsql", "db", "shop", "state", "absent")
	privileges(g)
	r := g.run("postgresql_query", "query", "SELECT 'a,\"b' AS x, %(n)s::int AS n", "named_args", value.NewDict("n", 3),
		"login_user", "shop", "login_password", password, "login_host", "localhost", "login_db", "shop")
	if got := moduletest.Field(r, "query_result"); !strings.Contains(strings.ReplaceAll(mustJSON(t, got), " ", ""),
		`{"x":"a,\"b","n":3}`) {
		t.Errorf("shop asks and gets %s", mustJSON(t, got))
	}
	g.fails("password authentication failed", "postgresql_query", "query", "SELECT 1", "login_user", "shop",
		"login_password", "wrong", "login_host", "localhost")
	g.twice("postgresql_user", "name", "shop", "password", "")
	g.twice("postgresql_db", "name", "shop", "state", "absent", "force", true)
	g.twice("postgresql_user", "name", "shop", "state", "absent")
	g.conn = root
	runExamples(t, g, postgreSQLExamples())
	g.sh("su postgres -c 'dropdb shop; dropuser shop; dropuser reader'")
}

// privileges are granted in the database shop, and taken back.
func privileges(g target) {
	g.t.Helper()
	g.run("postgresql_query", "db", "shop", "query",
		[]any{"CREATE SCHEMA s", "CREATE TABLE s.\"a b\" ()", "CREATE TABLE s.c ()",
			"CREATE FUNCTION s.add(int, int) RETURNS int AS 'SELECT $1 + $2' LANGUAGE sql", "CREATE ROLE reader",
			"CREATE ROLE boss"})
	for _, args := range [][]any{
		{"privs", "SELECT,INSERT", "objs", "a b", "schema", "s"},
		{"privs", "SELECT", "objs", "ALL_IN_SCHEMA", "schema", "s", "grant_option", true},
		{"privs", "SELECT", "objs", "c", "schema", "s", "grant_option", false},
		{"privs", "EXECUTE", "type", "function", "objs", "add(int:int)", "schema", "s"},
		{"privs", "USAGE", "type", "schema", "objs", "s"},
		{"privs", "CREATE,TEMP", "type", "database"},
		{"privs", "USAGE", "type", "language", "objs", "sql"},
		{"privs", "SELECT", "type", "default_privs", "objs", "TABLES", "target_roles", "boss", "schema", "s"},
		{"privs", "ALL", "type", "default_privs", "objs", "ALL_DEFAULT", "grant_option", true},
		{"type", "group", "objs", "boss", "admin_option", true},
	} {
		g.twice("postgresql_privs", append(args, "db", "shop", "roles", "reader")...)
		if args[len(args)-2] == "grant_option" && args[len(args)-1] == false {
			continue // with state: absent it is no word of the task
		}
		g.twice("postgresql_privs", append(args, "db", "shop", "roles", "reader", "state", "absent")...)
	}
	g.twice("postgresql_privs", "privs", "CREATE", "type", "schema", "objs", "s", "roles", "PUBLIC", "db", "shop")
	g.fails(`Role 'nobody' does not exist`, "postgresql_privs", "privs", "ALL", "type", "database", "roles", "nobody",
		"db", "shop")
	g.dry("postgresql_privs", "privs", "ALL", "type", "database", "roles", "reader", "db", "none")
	g.run("postgresql_query", "db", "shop", "query",
		[]any{"DROP OWNED BY reader, boss", "DROP ROLE reader", "DROP ROLE boss"})
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := value.JSON(v, value.JSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
