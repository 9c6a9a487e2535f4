package sql

import (
	"fmt"
	"slices"
	"strings"
)

// schemaTypes are the types whose objects belong to a schema. The first four support ALL_IN_SCHEMA.
var schemaTypes = []string{"table", "sequence", "function", "procedure", "type", "default_privs"}

// grantable are the known privileges.
var grantable = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "CREATE",
	"CONNECT", "TEMPORARY", "TEMP", "EXECUTE", "USAGE", "ALL"}

// defaultObjects are the object types of default privileges, in the order of ALL_DEFAULT, with the valid privileges
// of each.
var defaultObjects = []struct {
	kind  string
	privs []string
}{
	{"TABLES", []string{"ALL", "SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"}},
	{"SEQUENCES", []string{"ALL", "SELECT", "UPDATE", "USAGE"}},
	{"FUNCTIONS", []string{"ALL", "EXECUTE"}},
	{"TYPES", []string{"ALL", "USAGE"}},
	{"SCHEMAS", []string{"CREATE", "USAGE"}},
}

// checkPrivs reports privileges that do not exist, or not for these objects.
func (m *PostgresqlPrivs) checkPrivs() error {
	for _, p := range m.Privs {
		if !slices.Contains(grantable, p) {
			return fmt.Errorf("Invalid privileges specified: %s", p) //nolint:staticcheck // the text users know
		}
	}
	if m.Type != "default_privs" {
		return nil
	}
	if len(m.Objs) == 1 && m.Objs[0] == "ALL_DEFAULT" {
		m.Objs = []string{"TABLES", "SEQUENCES", "FUNCTIONS", "TYPES"}
	}
	for i, o := range m.Objs {
		m.Objs[i] = strings.ToUpper(o)
		at := slices.IndexFunc(defaultObjects, func(d struct {
			kind  string
			privs []string
		}) bool {
			return d.kind == m.Objs[i]
		})
		if at < 0 {
			return fmt.Errorf("Invalid Object set specified: %s", o) //nolint:staticcheck // the text users know
		}
		for _, p := range m.Privs {
			if !slices.Contains(defaultObjects[at].privs, p) {
				//nolint:staticcheck // the text users know
				return fmt.Errorf("Invalid priv specified: %s is no privilege on %s", p, m.Objs[i])
			}
		}
	}
	return nil
}

// statements returns the statements to send for the roles.
func (m *PostgresqlPrivs) statements(roles []string) []string {
	whom := "PUBLIC"
	if !m.public() {
		whom = pgNames(roles)
	}
	if m.Type == "default_privs" {
		return m.defaultStatements(whom)
	}
	what := m.what()
	if m.State == "absent" {
		return []string{fmt.Sprintf("REVOKE %s FROM %s;", what, whom)}
	}
	grant, option := fmt.Sprintf("GRANT %s TO %s", what, whom), "GRANT"
	if m.Type == "group" {
		option = "ADMIN"
	}
	switch {
	case m.GrantOption == nil:
		return []string{grant + ";"}
	case *m.GrantOption:
		return []string{fmt.Sprintf("%s WITH %s OPTION;", grant, option)}
	}
	return []string{grant + ";", fmt.Sprintf("REVOKE %s OPTION FOR %s FROM %s;", option, what, whom)}
}

// what returns the part between GRANT and TO.
func (m *PostgresqlPrivs) what() string {
	if m.Type == "group" {
		return pgNames(m.Objs)
	}
	on := strings.ReplaceAll(m.Type, "_", " ")
	if m.all() {
		return fmt.Sprintf("%s ON ALL %sS IN SCHEMA %s", strings.Join(m.Privs, ","), strings.ToUpper(on), pgName(m.schema()))
	}
	within := ""
	if m.schema() != "" {
		within = pgName(m.schema()) + "."
	}
	var objs []string
	for _, o := range m.Objs {
		if m.routines() {
			name, args, _ := strings.Cut(strings.ReplaceAll(o, ":", ","), "(")
			objs = append(objs, within+pgName(name)+"("+args)
		} else {
			objs = append(objs, within+pgName(o))
		}
	}
	return fmt.Sprintf("%s ON %s %s", strings.Join(m.Privs, ","), on, strings.Join(objs, ","))
}

// defaultStatements returns the statements for objects that are created later. They first revoke all default
// privileges of a role, so that it has exactly those of the task.
func (m *PostgresqlPrivs) defaultStatements(whom string) []string {
	alter := "ALTER DEFAULT PRIVILEGES"
	if len(m.TargetRoles) > 0 {
		alter += " FOR ROLE " + pgNames(m.TargetRoles)
	}
	if m.schema() != "" {
		alter += " IN SCHEMA " + pgName(m.schema())
	}
	revoked := m.Objs
	if m.State == "absent" {
		revoked = []string{"TABLES", "SEQUENCES", "TYPES"}
		for _, o := range m.Objs {
			if !slices.Contains(revoked, o) {
				revoked = append(revoked, o)
			}
		}
	}
	var out []string
	for _, o := range revoked {
		out = append(out, fmt.Sprintf("%s REVOKE ALL ON %s FROM %s;", alter, o, whom))
	}
	if m.State == "absent" {
		return out
	}
	option := ""
	if m.GrantOption != nil && *m.GrantOption {
		option = " WITH GRANT OPTION"
	}
	for _, o := range m.Objs {
		out = append(out, fmt.Sprintf("%s GRANT %s ON %s TO %s%s;", alter, strings.Join(m.Privs, ","), o, whom, option))
	}
	if m.TypesToo {
		out = append(out, fmt.Sprintf("%s GRANT USAGE ON TYPES TO %s%s;", alter, whom, option))
	}
	return out
}

// aclOf are the catalogs that contain the lists of privileges for each type: the list, the name, and the column of
// the schema.
var aclOf = map[string]struct{ catalog, acl, name, schema, only string }{
	"table":                {"pg_class", "relacl", "relname", "relnamespace", "relkind IN ('r', 'p', 'v', 'm', 'f')"},
	"sequence":             {"pg_class", "relacl", "relname", "relnamespace", "relkind = 'S'"},
	"function":             {"pg_proc", "proacl", "proname", "pronamespace", "prokind <> 'p'"},
	"procedure":            {"pg_proc", "proacl", "proname", "pronamespace", "prokind = 'p'"},
	"type":                 {"pg_type", "typacl", "typname", "typnamespace", "true"},
	"database":             {"pg_database", "datacl", "datname", "", "true"},
	"schema":               {"pg_namespace", "nspacl", "nspname", "", "true"},
	"language":             {"pg_language", "lanacl", "lanname", "", "true"},
	"tablespace":           {"pg_tablespace", "spcacl", "spcname", "", "true"},
	"foreign_data_wrapper": {"pg_foreign_data_wrapper", "fdwacl", "fdwname", "", "true"},
	"foreign_server":       {"pg_foreign_server", "srvacl", "srvname", "", "true"},
}

// acls returns a query for the lists of privileges that the statements affect. id is the object, acl the list.
func (m *PostgresqlPrivs) acls() string {
	const ofSchema = " IN (SELECT oid FROM pg_namespace WHERE nspname = %s)"
	switch m.Type {
	case "group":
		return "SELECT m.roleid::text AS id, array_agg(m.member || ' ' || m.grantor || ' ' || m.admin_option) AS acl " +
			"FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid WHERE r.rolname IN (" + pgTexts(m.Objs) +
			") GROUP BY m.roleid"
	case "default_privs":
		q := "SELECT defaclrole || ' ' || defaclnamespace || ' ' || defaclobjtype::text AS id, defaclacl AS acl FROM " +
			"pg_default_acl"
		if m.schema() != "" {
			q += " WHERE defaclnamespace" + fmt.Sprintf(ofSchema, pgText(m.schema()))
		}
		return q
	}
	of := aclOf[m.Type]
	q := fmt.Sprintf("SELECT oid::text AS id, %s AS acl FROM %s WHERE %s", of.acl, of.catalog, of.only)
	if m.schema() != "" {
		q += " AND " + of.schema + fmt.Sprintf(ofSchema, pgText(m.schema()))
	}
	if m.all() {
		return q
	}
	names := slices.Clone(m.Objs)
	for i := range names {
		if m.routines() {
			names[i], _, _ = strings.Cut(names[i], "(")
		}
	}
	return q + fmt.Sprintf(" AND %s IN (%s)", of.name, pgTexts(names))
}

// pgTexts and pgNames quote lists for statements.
func pgTexts(all []string) string { return joined(all, pgText) }

func pgNames(all []string) string { return joined(all, pgName) }

func joined(all []string, quote func(string) string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = quote(s)
	}
	return strings.Join(out, ",")
}
