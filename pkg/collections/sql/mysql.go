package sql

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
)

//go:embed sql.sh
var sqlScript string

// mysqlLogin contains the connection arguments of the server.
type mysqlLogin struct {
	User       string        `kk:"login_user" doc:"login user. Default: from config_file, or the user of the task"`
	Password   redact.Secret `kk:"login_password" doc:"password of the login user; it does not appear on a command line"`
	Host       string        `kk:"login_host" default:"localhost" doc:"server to connect to, as seen from the host; localhost uses the socket"`
	Port       int           `kk:"login_port" default:"3306" doc:"its port"`
	Socket     string        `kk:"login_unix_socket" doc:"its socket. Default: that of the client"`
	ConfigFile string        `kk:"config_file" default:"~/.my.cnf" doc:"file of the host with the client's settings, if it exists"`
	Timeout    int           `kk:"connect_timeout" default:"30" doc:"seconds to wait for the server"`
	CA         string        `kk:"ca_cert,alias=ssl_ca" doc:"CA certificate that must have signed the server certificate"`
	Cert       string        `kk:"client_cert,alias=ssl_cert" doc:"file of the client's certificate"`
	Key        string        `kk:"client_key,alias=ssl_key" doc:"file of its key"`
}

// options returns the content of an option file for the client.
func (l *mysqlLogin) options() string {
	var b strings.Builder
	b.WriteString("[client]\n")
	set := func(key, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s=\"%s\"\n", key, strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(text))
		}
	}
	set("user", l.User)
	set("password", l.Password.Reveal())
	if l.Host != "localhost" {
		set("host", l.Host)
		set("port", strconv.Itoa(l.Port))
	}
	set("socket", l.Socket)
	set("ssl-ca", l.CA)
	set("ssl-cert", l.Cert)
	set("ssl-key", l.Key)
	fmt.Fprintf(&b, "[mysql]\nconnect_timeout=%d\n", l.Timeout)
	return b.String()
}

// mysqlRows are the rows of a result. The first row contains the column names.
type mysqlRows [][]string

// ask sends read-only statements.
func (l *mysqlLogin) ask(ctx context.Context, c *module.Call, db string, statements ...string) (mysqlRows, error) {
	return l.send(ctx, c, true, db, statements)
}

// tell sends statements that modify the server.
func (l *mysqlLogin) tell(ctx context.Context, c *module.Call, db string, statements ...string) (mysqlRows, error) {
	return l.send(ctx, c, false, db, statements)
}

func (l *mysqlLogin) send(ctx context.Context, c *module.Call, probe bool, db string,
	statements []string) (mysqlRows, error) {
	s := hostscript.New(sqlScript, "sql_mysql").Set("config", l.ConfigFile).Set("db", db)
	s.Large = true
	s.Probe = probe
	s.Env = map[string]string{"KK_CLIENT": l.options()}
	s.Stdin = strings.NewReader(strings.Join(statements, ";\n") + ";\n")
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return nil, err
	}
	if err := clientError(a); err != nil {
		return nil, err
	}
	var rows mysqlRows
	for _, line := range module.Lines(strings.TrimSuffix(a.Get("answer"), ".")) {
		var row []string
		for _, field := range strings.Split(line, "\t") {
			row = append(row, mysqlField.Replace(field))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// mysqlField decodes the escapes in fields that the client prints.
var mysqlField = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\0`, "\x00")

// body returns the rows without the column names.
func (r mysqlRows) body() mysqlRows {
	if len(r) == 0 {
		return nil
	}
	return r[1:]
}

// column returns the field of a row in the named column, or "" if there is no such column.
func (r mysqlRows) column(row []string, name string) string {
	for i, n := range r[0] {
		if strings.EqualFold(n, name) && i < len(row) && row[i] != "NULL" {
			return row[i]
		}
	}
	return ""
}

// mysqlText quotes a text for a statement.
func mysqlText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''", "\x00", `\0`).Replace(s) + "'"
}

// mysqlName quotes a name for a statement.
func mysqlName(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// plainBackslash makes the backslash an escape character in texts, regardless of the server's mode.
const plainBackslash = "SET SESSION sql_mode = REPLACE(@@SESSION.sql_mode, 'NO_BACKSLASH_ESCAPES', '')"
