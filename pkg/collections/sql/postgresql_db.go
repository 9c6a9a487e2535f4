package sql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// PostgresqlDB is the module postgresql_db.
type PostgresqlDB struct {
	Name        string `kk:"name,required,alias=db" doc:"the database"`
	State       string `kk:"state" default:"present" choices:"present,absent" doc:"whether it should exist"`
	Owner       string `kk:"owner" doc:"role that owns it"`
	Template    string `kk:"template" doc:"database that a new one is made like"`
	Encoding    string `kk:"encoding" doc:"encoding of a new database"`
	Collate     string `kk:"lc_collate" doc:"order of texts in a new database"`
	Ctype       string `kk:"lc_ctype" doc:"classes of characters in a new database"`
	ConnLimit   *int   `kk:"conn_limit" doc:"how many may connect at once; -1 is no limit"`
	Tablespace  string `kk:"tablespace" doc:"where it lies"`
	Force       bool   `kk:"force" default:"no" doc:"with state: absent, end the connections to it"`
	Maintenance string `kk:"maintenance_db" default:"postgres" doc:"database to connect to meanwhile"`
	postgresqlLogin
}

func postgresqlDBSpec() module.Spec {
	return module.Spec{
		Name: "postgresql_db", Collection: postgresqlCollection,
		Summary: "Creates, changes and drops databases of PostgreSQL, with psql on the host.",
		Notes: []string{"Encoding, lc_collate and lc_ctype of a database cannot be changed: other ones are an error.",
			"Ansible's states dump, restore and rename are not supported."},
		Examples: []string{"- postgresql_db:\n    name: shop\n    owner: shop\n    encoding: UTF-8\n  become: true\n" +
			"  become_user: postgres"},
		Returns: []module.Return{
			{Key: "db", Type: "string", Doc: "the database"},
			{Key: "executed_commands", Type: "list", Doc: "the statements that were sent; none in check mode"},
		},
		New: func() module.Runner { return new(PostgresqlDB) },
	}
}

// Run implements module.Runner.
func (m *PostgresqlDB) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	rows, err := m.ask(ctx, c, m.Maintenance, 6, fmt.Sprintf(
		"SELECT rolname, pg_encoding_to_char(encoding), datcollate, datctype, datconnlimit, spcname"+
			" FROM pg_database d JOIN pg_roles r ON r.oid = datdba JOIN pg_tablespace t ON t.oid = dattablespace WHERE "+
			"datname = %s", pgText(m.Name)))
	if err != nil {
		return module.Result{}, err
	}
	var statements []string
	there := len(rows.body()) > 0
	switch {
	case m.State == "absent" && there:
		drop := "DROP DATABASE " + pgName(m.Name)
		if m.Force {
			drop += " WITH (FORCE)"
		}
		statements = []string{drop}
	case m.State == "present" && !there:
		statements = []string{m.create()}
	case m.State == "present":
		if statements, err = m.alter(rows.body()[0]); err != nil {
			return module.Result{}, err
		}
	}
	r := module.Result{Changed: len(statements) > 0}
	if c.Check {
		statements = nil
	}
	r.Data = value.NewDict("db", m.Name, "executed_commands", value.List(statements))
	if len(statements) > 0 {
		err = m.tell(ctx, c, m.Maintenance, statements...)
	}
	return r, err
}

func (m *PostgresqlDB) create() string {
	s := "CREATE DATABASE " + pgName(m.Name)
	for _, o := range []struct{ word, text string }{
		{"OWNER", quoted(m.Owner, pgName)}, {"TEMPLATE", quoted(m.Template, pgName)},
		{"ENCODING", quoted(m.Encoding, pgText)},
		{"LC_COLLATE", quoted(m.Collate, pgText)}, {"LC_CTYPE", quoted(m.Ctype, pgText)},
		{"TABLESPACE", quoted(m.Tablespace, pgName)},
	} {
		if o.text != "" {
			s += " " + o.word + " " + o.text
		}
	}
	if m.ConnLimit != nil {
		s += " CONNECTION LIMIT " + strconv.Itoa(*m.ConnLimit)
	}
	return s
}

// quoted quotes a text for a statement. "" is returned unchanged.
func quoted(s string, quote func(string) string) string {
	if s == "" {
		return ""
	}
	return quote(s)
}

func (m *PostgresqlDB) alter(row []string) ([]string, error) {
	owner, encoding, collate, ctype, limit, space := row[0], row[1], row[2], row[3], row[4], row[5]
	switch {
	case m.Encoding != "" && plainEncoding(m.Encoding) != plainEncoding(encoding):
		return nil, errors.New("Changing database encoding is not supported. Current encoding: " + encoding)
	case m.Collate != "" && m.Collate != collate:
		return nil, errors.New("Changing LC_COLLATE is not supported. Current LC_COLLATE: " + collate)
	case m.Ctype != "" && m.Ctype != ctype:
		return nil, errors.New("Changing LC_CTYPE is not supported. Current LC_CTYPE: " + ctype)
	}
	var out []string
	name := "ALTER DATABASE " + pgName(m.Name)
	if m.Owner != "" && m.Owner != owner {
		out = append(out, name+" OWNER TO "+pgName(m.Owner))
	}
	if m.ConnLimit != nil && strconv.Itoa(*m.ConnLimit) != limit {
		out = append(out, fmt.Sprintf("%s CONNECTION LIMIT %d", name, *m.ConnLimit))
	}
	if m.Tablespace != "" && m.Tablespace != space {
		out = append(out, name+" SET TABLESPACE "+pgName(m.Tablespace))
	}
	return out, nil
}

// plainEncoding normalizes the spelling of an encoding, such as UTF8 and utf-8.
func plainEncoding(s string) string {
	s = strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
	if s == "unicode" {
		return "utf8"
	}
	return s
}
