package sql

import (
	"context"
	"fmt"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// PostgresqlExt is the module postgresql_ext.
type PostgresqlExt struct {
	Name    string `kk:"name,required,alias=ext" doc:"the extension"`
	DB      string `kk:"login_db,required,alias=db" doc:"the database"`
	State   string `kk:"state" default:"present" choices:"present,absent" doc:"whether it should exist"`
	Schema  string `kk:"schema" doc:"schema that a new extension's objects are in"`
	Version string `kk:"version" doc:"its version; latest is the newest that the server has. Default: any"`
	Cascade bool   `kk:"cascade" default:"no" doc:"with what it needs, or with what needs it"`
	postgresqlLogin
}

func postgresqlExtSpec() module.Spec {
	return module.Spec{
		Name: "postgresql_ext", Collection: postgresqlCollection,
		Summary: "Manages extensions of PostgreSQL databases, with psql on the host.",
		Examples: []string{"- postgresql_ext:\n    name: pg_trgm\n    login_db: shop\n  become: true\n" +
			"  become_user: postgres"},
		Returns: []module.Return{
			{Key: "db", Type: "string", Doc: "the database"},
			{Key: "ext", Type: "string", Doc: "the extension"},
			{Key: "queries", Type: "list", Doc: "the statements that were sent; none in check mode"},
		},
		New: func() module.Runner { return new(PostgresqlExt) },
	}
}

// Run implements module.Runner.
func (m *PostgresqlExt) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	rows, err := m.ask(ctx, c, m.DB, 2,
		"SELECT coalesce(installed_version, ''), default_version FROM pg_available_extensions WHERE name = "+pgText(m.Name))
	if err != nil && c.Check && strings.Contains(err.Error(), "does not exist") {
		return module.Result{Changed: m.State == "present", Data: m.displayed(nil),
			Warnings: []string{err.Error() + " (check mode: assuming that a task before makes it)"}}, nil
	}
	if err != nil {
		return module.Result{}, err
	}
	installed, version := "", m.Version
	if len(rows.body()) > 0 {
		installed = rows.body()[0][0]
		if version == "latest" {
			version = rows.body()[0][1]
		}
	} else if m.State == "present" {
		return module.Result{}, fmt.Errorf("the server has no extension %s: install its package first", m.Name)
	}
	var statements []string
	switch {
	case m.State == "absent" && installed != "":
		statements = []string{"DROP EXTENSION " + pgName(m.Name) + m.cascade()}
	case m.State == "present" && installed == "":
		create := "CREATE EXTENSION " + pgName(m.Name)
		if m.Schema != "" {
			create += " WITH SCHEMA " + pgName(m.Schema)
		}
		if version != "" {
			create += " VERSION " + pgText(version)
		}
		statements = []string{create + m.cascade()}
	case m.State == "present" && version != "" && version != installed:
		statements = []string{fmt.Sprintf("ALTER EXTENSION %s UPDATE TO %s", pgName(m.Name), pgText(version))}
	}
	r := module.Result{Changed: len(statements) > 0}
	if c.Check {
		statements = nil
	}
	r.Data = m.displayed(statements)
	if len(statements) > 0 {
		err = m.tell(ctx, c, m.DB, statements...)
	}
	return r, err
}

func (m *PostgresqlExt) displayed(statements []string) *value.Dict {
	return value.NewDict("db", m.DB, "ext", m.Name, "queries", value.List(statements))
}

func (m *PostgresqlExt) cascade() string {
	if m.Cascade {
		return " CASCADE"
	}
	return ""
}
