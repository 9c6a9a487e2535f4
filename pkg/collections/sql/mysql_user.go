package sql

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// MysqlUser is the module mysql_user.
type MysqlUser struct {
	Name           string         `kk:"name,required,alias=user" doc:"the user; \"\" is the anonymous one"`
	UserHost       string         `kk:"host" default:"localhost" doc:"host part of the user"`
	HostAll        bool           `kk:"host_all" default:"no" doc:"all users of the name that there are, whatever their host; without any it is an error, except with state: absent"`
	UserPassword   *redact.Secret `kk:"password" doc:"the password, for mysql_native_password"`
	Encrypted      bool           `kk:"encrypted" default:"no" doc:"password is the hash that the server keeps, * and 40 digits"`
	Plugin         string         `kk:"plugin" doc:"plugin that checks who logs in, instead of password"`
	PluginHash     string         `kk:"plugin_hash_string" doc:"what plugin keeps"`
	PluginAuth     *redact.Secret `kk:"plugin_auth_string" doc:"what plugin makes that of; it is set again each time, since nobody can tell whether it is the same"`
	UpdatePassword string         `kk:"update_password" default:"always" choices:"always,on_create" doc:"on_create leaves the password of a user that exists"`
	Priv           any            `kk:"priv" doc:"privileges, DATABASE.TABLE:PRIVILEGE,PRIVILEGE with / between several, or a mapping; GRANT is the grant option. Default: they stay"`
	Append         bool           `kk:"append_privs" default:"no" doc:"leave the privileges that priv does not name"`
	Subtract       bool           `kk:"subtract_privs" default:"no" doc:"take the privileges away that priv names"`
	State          string         `kk:"state" default:"present" choices:"present,absent" doc:"whether it should exist"`
	BinLog         bool           `kk:"sql_log_bin" default:"yes" doc:"write the changes into the binary log"`
	Implicit       bool           `kk:"check_implicit_admin" default:"no" doc:"try root without a password before login_user"`
	ColumnCase     *bool          `kk:"column_case_sensitive" doc:"columns in priv are taken as they are written, whatever this says"`
	mysqlLogin
}

func mysqlUserSpec() module.Spec {
	return module.Spec{
		Name: "mysql_user", Collection: mysqlCollection,
		Summary: "Creates, changes and drops users of MySQL and MariaDB, with the client on the host.",
		Notes: []string{
			"Passwords are compared by their hash, and reach the server hashed.",
			"In check mode ALL on a server that lists privileges one by one counts as a change.",
		},
		Examples: []string{
			"- mysql_user:\n    name: shop\n    host: 10.0.0.%\n    password: \"{{ shop_password }}\"\n" +
				"    priv: \"shop.*:ALL/stock.*:SELECT\"\n    login_unix_socket: /run/mysqld/mysqld.sock",
			"- name: Remove the anonymous users\n  mysql_user:\n    name: \"\"\n    host_all: true\n    state: absent",
		},
		Returns: []module.Return{
			{Key: "user", Type: "string", Doc: "the user"},
			{Key: "password_changed", Type: "bool", Doc: "whether the password is another"},
		},
		New: func() module.Runner { return new(MysqlUser) },
	}
}

// Rules implements schema.Ruled.
func (*MysqlUser) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("append_privs", "subtract_privs"),
		schema.Looks("* and 40 digits", mysqlHashed.MatchString, "password").If("encrypted", true).
			Says("encrypted was specified however it does not appear to be a valid hash expecting: *SHA1(SHA1(your_password))"),
		schema.Refuses("plugin").With("password").Unless("password", "").
			Says("password is for mysql_native_password: with plugin it is plugin_auth_string or plugin_hash_string"),
		schema.Looks("a name", mysqlPlugin.MatchString, "plugin"),
	}
}

// Run implements module.Runner.
func (m *MysqlUser) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	want, err := m.desired()
	if err != nil {
		return module.Result{}, err
	}
	users, err := m.users(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	r := module.Result{Data: value.NewDict("user", m.Name, "password_changed", false)}
	if m.State == "absent" {
		return m.drop(ctx, c, r, users)
	}
	if len(users.body()) == 0 {
		if m.HostAll {
			return module.Result{}, errors.New("host_all parameter cannot be used when adding a user")
		}
		return m.create(ctx, c, r, want)
	}
	r.Msg = "User unchanged"
	for _, row := range users.body() {
		if err := m.change(ctx, c, &r, users, row, want); err != nil {
			return r, err
		}
	}
	return r, nil
}

// desired validates the arguments and returns the privileges, or nil without priv.
func (m *MysqlUser) desired() (*mysqlPrivs, error) {
	if m.Priv == nil || value.Str(m.Priv) == "" {
		return nil, nil
	}
	return desiredPrivs(m.Priv)
}

var (
	mysqlHashed = regexp.MustCompile(`^\*[0-9A-Fa-f]{40}$`)
	mysqlPlugin = regexp.MustCompile(`^\w+$`)
)

// users returns the rows of mysql.user that the task refers to.
func (m *MysqlUser) users(ctx context.Context, c *module.Call) (mysqlRows, error) {
	q := "SELECT * FROM mysql.user WHERE User = " + mysqlText(m.Name)
	if !m.HostAll {
		q += " AND Host = " + mysqlText(m.UserHost)
	}
	if m.Implicit {
		given := m.mysqlLogin
		m.User, m.Password = "root", redact.Secret{}
		if rows, err := m.ask(ctx, c, "", plainBackslash, q); err == nil {
			return rows, nil
		}
		m.mysqlLogin = given
	}
	return m.ask(ctx, c, "", plainBackslash, q)
}

func (m *MysqlUser) account(host string) string { return mysqlText(m.Name) + "@" + mysqlText(host) }

// apply sends statements that modify users.
func (m *MysqlUser) apply(ctx context.Context, c *module.Call, statements []string) error {
	if c.Check || len(statements) == 0 {
		return nil
	}
	first := []string{plainBackslash}
	if !m.BinLog {
		first = append(first, "SET SESSION sql_log_bin = OFF")
	}
	_, err := m.tell(ctx, c, "", append(first, statements...)...)
	return err
}

func (m *MysqlUser) drop(ctx context.Context, c *module.Call, r module.Result, users mysqlRows) (module.Result, error) {
	var statements []string
	for _, row := range users.body() {
		statements = append(statements, "DROP USER "+m.account(users.column(row, "Host")))
	}
	if r.Changed = len(statements) > 0; r.Changed {
		r.Msg = "User deleted"
	} else {
		r.Msg = "User doesn't exist"
	}
	return r, m.apply(ctx, c, statements)
}

func (m *MysqlUser) create(ctx context.Context, c *module.Call, r module.Result,
	want *mysqlPrivs) (module.Result, error) {
	if m.Subtract {
		want = nil
	}
	user := m.account(m.UserHost)
	statements := []string{"CREATE USER " + user + m.identified()}
	if want != nil {
		for _, on := range want.on {
			statements = append(statements, grantStatement(want.privs[on], on, user))
		}
	}
	r.Changed, r.Msg = true, "User added"
	r.Data.Set("password_changed", true)
	return r, m.apply(ctx, c, statements)
}

// identified returns the clause that defines how the user logs in.
func (m *MysqlUser) identified() string {
	switch {
	case m.Plugin != "" && m.PluginHash != "":
		return " IDENTIFIED WITH " + m.Plugin + " AS " + mysqlText(m.PluginHash)
	case m.Plugin != "" && m.PluginAuth != nil && m.Plugin == "pam":
		return " IDENTIFIED WITH pam USING " + mysqlText(m.PluginAuth.Reveal())
	case m.Plugin != "" && m.PluginAuth != nil:
		return " IDENTIFIED WITH " + m.Plugin + " BY " + mysqlText(m.PluginAuth.Reveal())
	case m.Plugin != "":
		return " IDENTIFIED WITH " + m.Plugin
	case m.hash() != "":
		return " IDENTIFIED WITH mysql_native_password AS " + mysqlText(m.hash())
	}
	return ""
}

// hash returns the password hash as the server stores it, or "" without a password.
func (m *MysqlUser) hash() string {
	if m.UserPassword == nil || m.UserPassword.Reveal() == "" {
		return ""
	}
	if m.Encrypted {
		return strings.ToUpper(m.UserPassword.Reveal())
	}
	once := sha1.Sum([]byte(m.UserPassword.Reveal()))
	twice := sha1.Sum(once[:])
	return "*" + strings.ToUpper(hex.EncodeToString(twice[:]))
}

// change changes an existing user to the desired state.
func (m *MysqlUser) change(ctx context.Context, c *module.Call, r *module.Result, users mysqlRows, row []string,
	want *mysqlPrivs) error {
	user := m.account(users.column(row, "Host"))
	var statements []string
	if m.UpdatePassword == "always" && m.loginDiffers(users, row) {
		statements = append(statements, "ALTER USER "+user+m.identified())
		r.Changed, r.Msg = true, "Password updated"
		r.Data.Set("password_changed", true)
	}
	if want == nil {
		return m.apply(ctx, c, statements)
	}
	have, err := m.grants(ctx, c, user)
	if err != nil {
		return err
	}
	privs := m.privStatements(have, want, user)
	if err := m.apply(ctx, c, append(statements, privs...)); err != nil || len(privs) == 0 {
		return err
	}
	if !c.Check { // only the server knows how it expands ALL
		now, err := m.grants(ctx, c, user)
		if err != nil || now.equal(have) {
			return err
		}
	}
	r.Changed, r.Msg = true, "Privileges updated"
	return nil
}

func (m *MysqlUser) grants(ctx context.Context, c *module.Call, user string) (*mysqlPrivs, error) {
	rows, err := m.ask(ctx, c, "", plainBackslash, "SHOW GRANTS FOR "+user)
	if err != nil {
		return nil, err
	}
	return grantedPrivs(rows), nil
}

func (m *MysqlUser) loginDiffers(users mysqlRows, row []string) bool {
	plugin, kept := users.column(row, "plugin"), users.column(row, "authentication_string")
	if m.Plugin != "" {
		return plugin != m.Plugin || m.PluginHash != "" && kept != m.PluginHash || m.PluginAuth != nil &&
			kept != m.PluginAuth.Reveal()
	}
	if old := users.column(row, "Password"); old != "" {
		kept = old
	}
	return m.hash() != "" && !strings.EqualFold(kept, m.hash())
}

// privStatements returns the statements that change the existing privileges to the desired ones.
func (m *MysqlUser) privStatements(have, want *mysqlPrivs, user string) []string {
	var out []string
	if !m.Append && !m.Subtract && m.Name != "root" {
		for _, on := range have.on {
			if _, desired := want.privs[on]; !desired && !slices.Contains(have.privs[on], "PROXY") {
				out = append(out, revokeStatements(have.privs[on], on, user)...)
			}
		}
	}
	for _, on := range want.on {
		missing := difference(want.privs[on], have.privs[on])
		extra := difference(have.privs[on], want.privs[on])
		switch {
		case m.Subtract:
			extra, missing = difference(want.privs[on], missing), nil
		case m.Append:
			extra = nil
		case slices.Contains(missing, "ALL"): // ALL includes everything that would be revoked
			extra = slices.DeleteFunc(extra, func(p string) bool { return p != "GRANT" })
		}
		if slices.Equal(missing, []string{"USAGE"}) && len(have.privs[on]) > 0 {
			missing = nil // any existing privilege is sufficient
		}
		out = append(out, revokeStatements(extra, on, user)...)
		if len(missing) > 0 {
			out = append(out, grantStatement(missing, on, user))
		}
	}
	return out
}

// difference returns the elements of a that are not in b.
func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
