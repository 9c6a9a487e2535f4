package sql

import (
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
)

// postgresqlLogin contains the connection arguments of the server.
type postgresqlLogin struct {
	User     string        `kk:"login_user,alias=login" default:"postgres" doc:"who logs in; over the socket mostly the user of the task (become_user: postgres)"`
	Password redact.Secret `kk:"login_password" doc:"password of the login user; it does not appear on a command line"`
	Host     string        `kk:"login_host,alias=host" doc:"server to connect to, as seen from the host. Default: the socket"`
	Socket   string        `kk:"login_unix_socket,alias=unix_socket" doc:"folder of the server's socket. Default: that of the client"`
	Port     int           `kk:"login_port,alias=port" default:"5432" doc:"its port"`
	SSLMode  string        `kk:"ssl_mode" default:"prefer" choices:"allow,disable,prefer,require,verify-ca,verify-full" doc:"whether the connection is encrypted, and the server's certificate checked"`
	CA       string        `kk:"ca_cert,alias=ssl_rootcert" doc:"CA certificate that must have signed the server certificate"`
}

// pgRows are the rows of a result. The first row contains the column names.
type pgRows [][]string

func (r pgRows) body() pgRows {
	if len(r) == 0 {
		return nil
	}
	return r[1:]
}

// ask sends a read-only query. Each row of the result has the query's columns.
func (l *postgresqlLogin) ask(
	ctx context.Context, c *module.Call, db string, columns int, query string,
) (pgRows, error) {
	rows, _, err := l.send(ctx, c, true, db, []string{query})
	for _, row := range rows {
		if len(row) != columns && err == nil {
			err = fmt.Errorf("psql answered a row of %d columns where %d were expected", len(row), columns)
		}
	}
	return rows, err
}

// tell sends statements that modify the server.
func (l *postgresqlLogin) tell(ctx context.Context, c *module.Call, db string, statements ...string) error {
	_, _, err := l.send(ctx, c, false, db, statements)
	return err
}

func (l *postgresqlLogin) send(ctx context.Context, c *module.Call, probe bool, db string,
	statements []string) (rows pgRows, notice string, err error) {
	s := hostscript.New(sqlScript, "sql_postgresql").Flag("quiet", true)
	s.Probe = probe
	a, err := l.answer(ctx, c, s, db, strings.Join(statements, ";\n")+";\n")
	if err != nil {
		return nil, "", err
	}
	rows, err = readRows(strings.TrimSuffix(a.Get("answer"), "."))
	return rows, strings.TrimSpace(a.Get("notice")), err
}

// answer runs psql with an input and returns its output.
func (l *postgresqlLogin) answer(ctx context.Context, c *module.Call, s *hostscript.Script, db,
	input string) (hostscript.Answer, error) {
	s.Env = map[string]string{"PGUSER": l.User, "PGDATABASE": db, "PGPORT": strconv.Itoa(l.Port),
		"PGSSLMODE": l.SSLMode, "PGCLIENTENCODING": "UTF8"}
	for name, text := range map[string]string{"PGPASSWORD": l.Password.Reveal(), "PGSSLROOTCERT": l.CA} {
		if text != "" {
			s.Env[name] = text
		}
	}
	if host := l.Host; host != "" && host != "localhost" || l.Password.Reveal() != "" && host != "" {
		s.Env["PGHOST"] = host
	} else if l.Socket != "" {
		s.Env["PGHOST"] = l.Socket
	}
	s.Stdin = strings.NewReader(input)
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err == nil {
		err = clientError(a)
	}
	return a, err
}

// readRows parses the CSV output of psql.
func readRows(text string) (pgRows, error) {
	read := csv.NewReader(strings.NewReader(emptyRows(text)))
	read.FieldsPerRecord = -1
	rows, err := read.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read psql's answer: %w", err)
	}
	return rows, nil
}

// emptyRows quotes the empty field of rows with only one field, because a CSV reader skips empty lines.
func emptyRows(s string) string {
	var b strings.Builder
	within, begin := false, true
	for i := range len(s) {
		switch {
		case s[i] == '"':
			within = !within
		case s[i] == '\n' && begin && !within:
			b.WriteString(`""`)
		}
		b.WriteByte(s[i])
		begin = s[i] == '\n'
	}
	return b.String()
}

// pgText quotes a text for a statement.
func pgText(s string) string {
	quoted := "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(s) + "'"
	if strings.Contains(s, `\`) {
		return "E" + quoted
	}
	return quoted
}

// pgName quotes a name for a statement.
func pgName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
