package sql

import (
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// PostgresqlUser is the module postgresql_user.
type PostgresqlUser struct {
	Name      string         `kk:"name,required,alias=user" doc:"the role"`
	State     string         `kk:"state" default:"present" choices:"present,absent" doc:"whether it should exist"`
	Secret    *redact.Secret `kk:"password" doc:"its password, or what the server keeps of it (md5..., SCRAM-SHA-256$...); \"\" takes it away"`
	Encrypted bool           `kk:"encrypted" default:"yes" doc:"without effect: the server always stores hashed passwords"`
	Flags     string         `kk:"role_attr_flags" doc:"attributes, with commas between: [NO]SUPERUSER, CREATEROLE, CREATEDB, INHERIT, LOGIN, REPLICATION, BYPASSRLS. Default of a new role: LOGIN"`
	Keep      bool           `kk:"no_password_changes" default:"no" doc:"leave the password of a role that exists"`
	ConnLimit *int           `kk:"conn_limit" doc:"how many connections it may have at once; -1 is no limit"`
	Expires   string         `kk:"expires" doc:"until when the password is good, as the server writes times; infinity is for ever"`
	Comment   *string        `kk:"comment" doc:"comment on the role"`
	FailOn    bool           `kk:"fail_on_user,alias=fail_on_role" default:"yes" doc:"fail if a role cannot be dropped since something is its own"`
	DB        string         `kk:"db,alias=login_db" default:"postgres" doc:"database to connect to meanwhile"`
	postgresqlLogin
}

func postgresqlUserSpec() module.Spec {
	return module.Spec{
		Name: "postgresql_user", Collection: postgresqlCollection,
		Summary: "Creates, changes and drops roles of PostgreSQL, with psql on the host.",
		Notes: []string{
			"A password is compared with what the server keeps, for which one must be superuser; otherwise it is set each time.",
			"Privileges on databases and tables are managed by postgresql_privs.",
		},
		Examples: []string{"- postgresql_user:\n    name: shop\n    password: \"{{ shop_password }}\"\n" +
			"    role_attr_flags: CREATEDB,NOSUPERUSER\n  become: true\n  become_user: postgres"},
		Returns: []module.Return{
			{Key: "user", Type: "string", Doc: "the role"},
			{Key: "queries", Type: "list", Doc: "the statements that were sent, or in check mode would be, without the " +
				"password"},
			{Key: "user_removed", Type: "bool", Doc: "with state: absent, whether an existing role was removed"},
		},
		New: func() module.Runner { return new(PostgresqlUser) },
	}
}

// pgFlags are the attributes of roles, and their columns in pg_roles.
var pgFlags = []struct{ word, column string }{
	{"SUPERUSER", "rolsuper"}, {"CREATEROLE", "rolcreaterole"}, {"CREATEDB", "rolcreatedb"}, {"INHERIT", "rolinherit"},
	{"LOGIN", "rolcanlogin"}, {"REPLICATION", "rolreplication"}, {"BYPASSRLS", "rolbypassrls"},
}

// Run implements module.Runner.
func (m *PostgresqlUser) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	flags, err := m.flags()
	if err != nil {
		return module.Result{}, err
	}
	q := "SELECT rolconnlimit, coalesce(rolvaliduntil::text, ''), coalesce(shobj_description(oid, 'pg_authid'), '')"
	for _, f := range pgFlags {
		q += ", " + f.column
	}
	rows, err := m.ask(ctx, c, m.DB, 3+len(pgFlags), q+" FROM pg_roles WHERE rolname = "+pgText(m.Name))
	if err != nil {
		return module.Result{}, err
	}
	r := module.Result{Data: value.NewDict("user", m.Name)}
	there := len(rows.body()) > 0
	var options, more []string
	switch {
	case m.State == "absent":
		return m.drop(ctx, c, r, there)
	case there:
		options, more, err = m.differing(ctx, c, rows.body()[0], flags)
	default:
		options, more, err = m.initial(ctx, c, flags)
	}
	if err != nil {
		return r, err
	}
	var statements []string
	switch {
	case !there:
		statements = append(statements, strings.TrimSpace("CREATE ROLE "+pgName(m.Name)+" "+strings.Join(options, " ")))
	case len(options) > 0:
		statements = append(statements, "ALTER ROLE "+pgName(m.Name)+" "+strings.Join(options, " "))
	}
	statements = append(statements, more...)
	r.Data.Set("queries", value.List(m.displayed(statements)))
	if r.Changed = len(statements) > 0; !r.Changed || c.Check {
		return r, nil
	}
	return r, m.tell(ctx, c, m.DB, statements...)
}

func (m *PostgresqlUser) drop(ctx context.Context, c *module.Call, r module.Result, there bool) (module.Result, error) {
	r.Changed = there
	r.Data.Set("queries", []any{})
	if !there {
		return r, nil
	}
	r.Data.Set("user_removed", true)
	if c.Check {
		return r, nil
	}
	drop := "DROP ROLE " + pgName(m.Name)
	r.Data.Set("queries", []any{drop})
	err := m.tell(ctx, c, m.DB, drop)
	if err != nil && !m.FailOn {
		r.Changed, r.Msg = false, err.Error()
		r.Data.Set("user_removed", false)
		return r, nil
	}
	return r, err
}

// displayed returns the statements with the password masked.
func (m *PostgresqlUser) displayed(statements []string) []string {
	if m.Secret == nil {
		return statements
	}
	out := slices.Clone(statements)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], pgText(m.Secret.Reveal()), "%(password)s")
	}
	return out
}

// flags returns the desired attributes, on or off.
func (m *PostgresqlUser) flags() (map[string]bool, error) {
	out := map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.ToUpper(m.Flags), func(r rune) bool { return r == ',' || r == ' ' }) {
		name, off := strings.CutPrefix(word, "NO")
		if !slices.ContainsFunc(pgFlags, func(f struct{ word, column string }) bool { return f.word == name }) {
			return nil, fmt.Errorf("Invalid role_attr_flags specified: %s", word)
		}
		out[name] = !off
	}
	return out, nil
}

// initial returns the options of a new role, and the statements that follow its creation.
func (m *PostgresqlUser) initial(ctx context.Context, c *module.Call,
	flags map[string]bool) (options, more []string, err error) {
	if _, said := flags["LOGIN"]; !said {
		flags["LOGIN"] = true
	}
	for _, f := range pgFlags {
		if on, said := flags[f.word]; said {
			options = append(options, flagWord(f.word, on))
		}
	}
	if m.Secret != nil && m.Secret.Reveal() != "" {
		options = append(options, m.password())
	}
	if m.ConnLimit != nil {
		options = append(options, "CONNECTION LIMIT "+strconv.Itoa(*m.ConnLimit))
	}
	if m.Expires != "" {
		options = append(options, "VALID UNTIL "+pgText(m.Expires))
	}
	if m.Comment != nil && *m.Comment != "" {
		more = append(more, m.comment())
	}
	return options, more, nil
}

func flagWord(word string, on bool) string {
	if on {
		return word
	}
	return "NO" + word
}

// differing returns the options in which an existing role differs.
func (m *PostgresqlUser) differing(ctx context.Context, c *module.Call, row []string,
	flags map[string]bool) (options, more []string, err error) {
	for i, f := range pgFlags {
		if on, said := flags[f.word]; said && on != (row[3+i] == "t") {
			options = append(options, flagWord(f.word, on))
		}
	}
	if m.ConnLimit != nil && strconv.Itoa(*m.ConnLimit) != row[0] {
		options = append(options, "CONNECTION LIMIT "+strconv.Itoa(*m.ConnLimit))
	}
	if m.Expires != "" {
		same, err := m.ask(ctx, c, m.DB, 1, fmt.Sprintf(
			"SELECT 1 FROM pg_roles WHERE rolname = %s AND rolvaliduntil = %s::timestamptz", pgText(m.Name), pgText(m.Expires)))
		if err != nil {
			return nil, nil, err
		}
		if len(same.body()) == 0 {
			options = append(options, "VALID UNTIL "+pgText(m.Expires))
		}
	}
	if m.Comment != nil && *m.Comment != row[2] {
		more = append(more, m.comment())
	}
	if m.Secret == nil || m.Keep {
		return options, more, nil
	}
	kept, err := m.ask(ctx, c, m.DB, 1, "SELECT coalesce(rolpassword, '') FROM pg_authid WHERE rolname = "+pgText(m.Name))
	// Only superusers can read this.
	if err != nil || len(kept.body()) == 0 || !keptPassword(kept.body()[0][0], m.Name, m.Secret.Reveal()) {
		options = append(options, m.password())
	}
	return options, more, nil
}

func (m *PostgresqlUser) comment() string {
	return fmt.Sprintf("COMMENT ON ROLE %s IS %s", pgName(m.Name), pgText(*m.Comment))
}

func (m *PostgresqlUser) password() string {
	if m.Secret.Reveal() == "" {
		return "PASSWORD NULL"
	}
	return "ENCRYPTED PASSWORD " + pgText(m.Secret.Reveal())
}

// keptPassword reports whether the hash on the server matches the password.
func keptPassword(kept, user, password string) bool {
	if kept == password {
		return true
	}
	if strings.HasPrefix(kept, "md5") {
		sum := md5.Sum([]byte(password + user))
		return kept == "md5"+hex.EncodeToString(sum[:])
	}
	// SCRAM-SHA-256$ROUNDS:SALT$STORED:SERVER, the default since PostgreSQL 14. Without this check each run would
	// change the password.
	parts := strings.FieldsFunc(kept, func(r rune) bool { return r == '$' || r == ':' })
	if len(parts) != 5 || parts[0] != "SCRAM-SHA-256" {
		return false
	}
	rounds, err := strconv.Atoi(parts[1])
	salt, err2 := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || err2 != nil || rounds < 1 {
		return false
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, salted)
	mac.Write([]byte("Client Key"))
	stored := sha256.Sum256(mac.Sum(nil))
	return base64.StdEncoding.EncodeToString(stored[:]) == parts[3]
}
