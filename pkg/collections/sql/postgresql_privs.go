package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// PostgresqlPrivs is the module postgresql_privs.
type PostgresqlPrivs struct {
	DB          string        `kk:"login_db,required,alias=db|database" doc:"the database to connect to, whose objects they are"`
	State       string        `kk:"state" default:"present" choices:"present,absent" doc:"granted, or revoked"`
	Privs       []string      `kk:"privs,alias=priv" doc:"privileges, such as SELECT; ALL is all of them. Needed for each type but group"`
	Type        string        `kk:"type" default:"table" choices:"table,sequence,function,procedure,database,schema,language,tablespace,group,default_privs,foreign_data_wrapper,foreign_server,type" doc:"what the objects are; group makes roles members of the roles in objs, default_privs is about objects that are yet to be made"`
	Objs        []string      `kk:"objs,alias=obj" doc:"the objects; ALL_IN_SCHEMA is all tables, sequences, functions or procedures of the schema. Arguments of functions stand between colons: add(int:int). With default_privs TABLES, SEQUENCES, FUNCTIONS, TYPES, SCHEMAS, or ALL_DEFAULT for the first four. Default for databases: login_db"`
	Schema      string        `kk:"schema" doc:"schema of tables, sequences, functions, procedures, types and default privileges; not-specified is none. Default: public"`
	Roles       []string      `kk:"roles,required,alias=role" doc:"roles that get or lose them; PUBLIC is everybody"`
	FailOnRole  bool          `kk:"fail_on_role" default:"yes" doc:"fail if a role is not there; else it is omitted with a warning"`
	SessionRole string        `kk:"session_role" doc:"role to work as after the login"`
	TargetRoles []string      `kk:"target_roles" doc:"with default_privs: the roles whose new objects it is about. Default: who logs in"`
	GrantOption *bool         `kk:"grant_option,alias=admin_option" doc:"whether the roles may pass them on; no takes that away alone. Default: as it is"`
	OldPassword redact.Secret `kk:"password" doc:"older name of login_password"`
	TrustInput  bool          `kk:"trust_input" default:"yes" doc:"no rejects names that look like statements. Names are always quoted"`
	TypesToo    bool          `kk:"usage_on_types" default:"yes" doc:"with default_privs: grant USAGE on new types too"`
	postgresqlLogin
}

func postgresqlPrivsSpec() module.Spec {
	return module.Spec{
		Name: "postgresql_privs", Collection: postgresqlCollection,
		Summary: "Grants and revokes privileges and memberships of PostgreSQL, with psql on the host.",
		Notes: []string{
			"changed is computed from the privileges before and after, including those of PUBLIC.",
			"Check mode sends the statements too, in a transaction that it rolls back.",
			"With type: default_privs, state: absent takes all from the roles: on tables, sequences, types and what objs says.",
		},
		Examples: []string{
			"- name: Grant read access to all existing tables\n  postgresql_privs:\n    login_db: shop\n    privs: SELECT\n" +
				"    objs: ALL_IN_SCHEMA\n    roles: reader\n  become: true\n  become_user: postgres",
			"- name: Grant read access to future tables\n  postgresql_privs:\n    login_db: shop\n    type: default_privs\n" +
				"    objs: TABLES\n    privs: SELECT\n    roles: reader\n  become: true\n  become_user: postgres",
		},
		Returns: []module.Return{{Key: "queries", Type: "list", Doc: "the statements that were sent, also in check mode"}},
		New:     func() module.Runner { return new(PostgresqlPrivs) },
	}
}

// Rules implements schema.Ruled.
func (*PostgresqlPrivs) Rules() schema.Rules {
	return schema.Rules{
		schema.Entries("privs", 1, schema.NoLimit).Unless("type", "group"),
		schema.Entries("objs", 1, schema.NoLimit).Unless("type", "database"),
		schema.AtMostOne("password", "login_password").
			Says(`Use the "password" or "login_password" option but not both to pass a password to log in with.`),
		schema.Entries("roles", 1, schema.NoLimit).Says("roles names no role"),
		schema.Refuses("schema").Unless("type", value.List(schemaTypes)...).Says(`Argument "schema" is not allowed for type "{type}".`),
		schema.Needs("objs").Unless("type", "database").Says(`Argument "objs" is required for type "{type}".`),
		schema.Refuses("privs").If("type", "group").Says(`Argument "privs" is not allowed for type "{type}".`),
		schema.Needs("privs").Unless("type", "group").Says(`Argument "privs" is required for type "{type}".`),
	}
}

// Run implements module.Runner.
func (m *PostgresqlPrivs) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if err := m.check(); err != nil {
		return module.Result{}, err
	}
	r := module.Result{Data: value.NewDict("queries", []any{})}
	changed, err := m.change(ctx, c, &r)
	if err != nil && c.Check && strings.Contains(err.Error(), "does not exist") {
		r.Changed = m.State == "present"
		r.Warnings = append(r.Warnings, err.Error()+" (check mode: assuming that a task before makes it)")
		return r, nil
	}
	if err != nil {
		return module.Result{}, err
	}
	r.Changed = changed
	return r, nil
}

func (m *PostgresqlPrivs) change(ctx context.Context, c *module.Call, r *module.Result) (bool, error) {
	there, err := m.lookUp(ctx, c)
	if err != nil {
		return false, err
	}
	var roles []string
	for _, name := range m.Roles {
		switch {
		case m.public(), slices.Contains(there["role"], name):
			roles = append(roles, name)
		case m.FailOnRole:
			return false, fmt.Errorf("Role '%s' does not exist", name) //nolint:staticcheck // the text users know
		default:
			r.Warnings = append(r.Warnings, fmt.Sprintf("Role '%s' does not exist, pass it", name))
		}
	}
	if len(m.TargetRoles) > 0 && m.Type != "default_privs" {
		r.Warnings = append(r.Warnings, `"target_roles" will be ignored: they are for "type: default_privs"`)
	}
	if m.all() && len(there["schema"]) == 0 {
		return false, fmt.Errorf("Schema \"%s\" does not exist.", m.schema()) //nolint:staticcheck // the text users know
	}
	if len(roles) == 0 || m.all() && len(there["object"]) == 0 {
		return false, nil
	}
	statements := m.statements(roles)
	r.Data.Set("queries", []any{strings.Join(statements, "\n")})
	return m.compare(ctx, c, statements)
}

// lookUp queries which of the roles exist, and for ALL_IN_SCHEMA whether the schema exists and is not empty.
func (m *PostgresqlPrivs) lookUp(ctx context.Context, c *module.Call) (map[string][]string, error) {
	q := "SELECT 'role', rolname::text FROM pg_roles WHERE rolname IN (" + pgTexts(m.Roles) + ")"
	if m.all() {
		q += " UNION ALL SELECT 'schema', nspname::text FROM pg_namespace WHERE nspname = " + pgText(m.schema())
		q += " UNION ALL (SELECT 'object', o.id::text FROM (" + m.acls() + ") o LIMIT 1)"
	}
	rows, err := m.ask(ctx, c, m.DB, 2, q)
	if err != nil {
		return nil, err
	}
	there := map[string][]string{}
	for _, row := range rows.body() {
		there[row[0]] = append(there[row[0]], row[1])
	}
	return there, nil
}

// compare sends the statements, and reports whether they changed the lists of privileges. In check mode the
// statements are rolled back.
func (m *PostgresqlPrivs) compare(ctx context.Context, c *module.Call, statements []string) (bool, error) {
	// A list that was never modified is NULL, which differs from an empty one.
	status := "SELECT coalesce(string_agg(line, E'\\n' ORDER BY line), '') AS status FROM (SELECT o.id || ' ' || " +
		"coalesce(one::text, CASE WHEN o.acl IS NULL THEN 'never set' ELSE 'none' END) AS line FROM (" + m.acls() +
		") o LEFT JOIN LATERAL unnest(o.acl) one ON true) lines"
	all := []string{"BEGIN"}
	if m.SessionRole != "" {
		all = append(all, "SET ROLE "+pgName(m.SessionRole))
	}
	all = append(all, status)
	for _, s := range statements {
		all = append(all, strings.TrimSuffix(s, ";"))
	}
	end := "COMMIT"
	if c.Check {
		end = "ROLLBACK"
	}
	rows, notice, err := m.send(ctx, c, false, m.DB, append(all, status, end))
	if err != nil {
		return false, err
	}
	if len(rows) != 4 {
		return false, fmt.Errorf("psql answered %d rows where 4 were expected: %s", len(rows), notice)
	}
	return rows[1][0] != rows[3][0], nil
}

// check validates the arguments and sets defaults.
func (m *PostgresqlPrivs) check() error {
	if m.OldPassword.Reveal() != "" {
		m.Password = m.OldPassword
	}
	for _, list := range []*[]string{&m.Privs, &m.Objs, &m.Roles, &m.TargetRoles} {
		*list = trimmed(*list)
	}
	for i := range m.Privs {
		m.Privs[i] = strings.ToUpper(m.Privs[i])
	}
	if m.Type == "database" && len(m.Objs) == 0 {
		m.Objs = []string{m.DB}
	}
	switch {
	case len(m.Roles) == 0:
		return errors.New("roles names no role")
	case m.all() && !slices.Contains(schemaTypes[:4], m.Type):
		//nolint:staticcheck // the text users know
		return fmt.Errorf("Argument \"objs\": ALL_IN_SCHEMA can be used only for type: table, sequence, function or "+
			"procedure, %s was passed.", m.Type)
	case m.all() && m.schema() == "":
		return errors.New("ALL_IN_SCHEMA needs a schema")
	case len(m.Objs) == 0:
		//nolint:staticcheck // the text users know
		return fmt.Errorf("Argument \"objs\" is required for type \"%s\".", m.Type)
	case m.Type != "group" && len(m.Privs) == 0:
		//nolint:staticcheck // the text users know
		return fmt.Errorf("Argument \"privs\" is required for type \"%s\".", m.Type)
	}
	if err := m.checkPrivs(); err != nil {
		return err
	}
	return m.checkNames()
}

// checkNames rejects names that cannot be quoted, and with trust_input: no also names that look like more than a
// name.
func (m *PostgresqlPrivs) checkNames() error {
	for _, o := range m.Objs {
		if !m.all() && m.routines() && (!strings.Contains(o, "(") || strings.ContainsAny(o, `;\'`)) {
			return fmt.Errorf("Illegal function / procedure signature: \"%s\".", o) //nolint:staticcheck // the text users know
		}
	}
	if m.TrustInput {
		return nil
	}
	for _, n := range slices.Concat(m.Roles, m.TargetRoles, []string{m.SessionRole, m.Schema}) {
		if strings.ContainsAny(n, `"';`) || strings.Contains(n, "--") {
			return fmt.Errorf("Passed input '%s' is potentially dangerous", n) //nolint:staticcheck // the text users know
		}
	}
	return nil
}

func (m *PostgresqlPrivs) public() bool {
	return len(m.Roles) == 1 && strings.EqualFold(m.Roles[0], "PUBLIC")
}

func (m *PostgresqlPrivs) all() bool { return len(m.Objs) == 1 && m.Objs[0] == "ALL_IN_SCHEMA" }

func (m *PostgresqlPrivs) routines() bool { return m.Type == "function" || m.Type == "procedure" }

// schema returns the schema of the objects, or "" for none.
func (m *PostgresqlPrivs) schema() string {
	switch {
	case !slices.Contains(schemaTypes, m.Type), m.Schema == "not-specified":
		return ""
	case m.Type == "default_privs" && len(m.Objs) == 1 && strings.EqualFold(m.Objs[0], "schemas"):
		return "" // schemas are not inside a schema
	case m.Schema == "":
		return "public"
	}
	return m.Schema
}

// trimmed returns the elements of a list without surrounding blanks.
func trimmed(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
