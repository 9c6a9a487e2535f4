package sql

import (
	"context"
	"fmt"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// MysqlDB is the module mysql_db.
type MysqlDB struct {
	Name      []string `kk:"name,required,alias=db" doc:"the databases"`
	State     string   `kk:"state" default:"present" choices:"present,absent" doc:"whether it should exist"`
	Encoding  string   `kk:"encoding" doc:"character set of a new database"`
	Collation string   `kk:"collation" doc:"collation of a new database"`
	mysqlLogin
}

func mysqlDBSpec() module.Spec {
	return module.Spec{
		Name: "mysql_db", Collection: mysqlCollection,
		Summary: "Creates and drops databases of MySQL and MariaDB, with the client on the host.",
		Notes: []string{"Encoding and collation of an existing database are not changed.", "Ansible's states dump " +
			"and import are not supported: use command with mysqldump or mysql."},
		Examples: []string{"- mysql_db:\n    name: shop\n    encoding: utf8mb4\n" +
			"    login_unix_socket: /run/mysqld/mysqld.sock"},
		Returns: []module.Return{
			{Key: "db", Type: "string", Doc: "the databases, with a blank between them"},
			{Key: "db_list", Type: "list", Doc: "the databases"},
			{Key: "executed_commands", Type: "list", Doc: "the statements that were sent; not in check mode"},
		},
		New: func() module.Runner { return new(MysqlDB) },
	}
}

// Rules implements schema.Ruled.
func (*MysqlDB) Rules() schema.Rules {
	return schema.Rules{
		schema.Entries("name", 1, schema.NoLimit).Says("name is empty"),
	}
}

// Run implements module.Runner.
func (m *MysqlDB) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	rows, err := m.ask(ctx, c, "", "SHOW DATABASES")
	if err != nil {
		return module.Result{}, err
	}
	there := map[string]bool{}
	for _, row := range rows.body() {
		there[row[0]] = true
	}
	var statements []string
	for _, name := range m.Name {
		switch {
		case m.State == "absent" && there[name]:
			statements = append(statements, "DROP DATABASE "+mysqlName(name))
		case m.State == "present" && !there[name]:
			statements = append(statements, m.create(name))
		}
	}
	r := module.Result{Changed: len(statements) > 0, Data: value.NewDict(
		"db", strings.Join(m.Name, " "), "db_list", value.Of(m.Name))}
	if c.Check {
		return r, nil
	}
	r.Data.Set("executed_commands", value.Of(statements))
	if r.Changed {
		_, err = m.tell(ctx, c, "", statements...)
	}
	return r, err
}

func (m *MysqlDB) create(name string) string {
	s := "CREATE DATABASE " + mysqlName(name)
	if m.Encoding != "" {
		s += fmt.Sprintf(" CHARACTER SET %s", mysqlText(m.Encoding))
	}
	if m.Collation != "" {
		s += fmt.Sprintf(" COLLATE %s", mysqlText(m.Collation))
	}
	return s
}
