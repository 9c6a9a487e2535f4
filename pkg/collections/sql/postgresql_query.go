package sql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// PostgresqlQuery is the module postgresql_query.
type PostgresqlQuery struct {
	Query      any         `kk:"query,required" doc:"a statement, or a list of them"`
	Positional []any       `kk:"positional_args" doc:"values for %s, quoted"`
	Named      *value.Dict `kk:"named_args" doc:"values for %(NAME)s, quoted"`
	DB         string      `kk:"login_db,alias=db" default:"postgres" doc:"the database"`
	Autocommit bool        `kk:"autocommit" default:"no" doc:"each statement for itself, instead of all of them in one transaction; for those that no transaction takes, such as VACUUM, and not in check mode"`
	postgresqlLogin
}

func postgresqlQuerySpec() module.Spec {
	return module.Spec{
		Name: "postgresql_query", Collection: postgresqlCollection,
		Summary: "Runs SQL statements on PostgreSQL, with psql on the host.",
		Notes: []string{"What is no query counts as a change; INSERT, UPDATE, DELETE and MERGE do if they are about " +
			"any row. In check mode the statements are sent, too, and undone, if nothing about them is beyond a " +
			"transaction; otherwise none is sent, and a change is assumed.", "Numbers, booleans and JSON keep their types " +
			"in the rows of a SELECT, and times are as in 2030-01-02T03:04:05; other values, and those of RETURNING, come " +
			"as texts."},
		Examples: []string{"- postgresql_query:\n    login_db: shop\n    query: SELECT id FROM dishes WHERE name = %s\n" +
			"    positional_args: [soup]\n  become: true\n  become_user: postgres"},
		Returns: []module.Return{
			{Key: "query", Type: "string", Doc: "the last statement as it was sent"},
			{Key: "query_list", Type: "list", Doc: "the statements as they were given"},
			{Key: "query_result", Type: "list", Doc: "the rows of the last statement, as dictionaries; an empty dictionary " +
				"if it gives none"},
			{Key: "query_all_results", Type: "list", Doc: "the rows of each"},
			{Key: "rowcount", Type: "int", Doc: "how many rows all gave or changed"},
			{Key: "statusmessage", Type: "string", Doc: "what the server says to the last"},
		},
		New: func() module.Runner { return new(PostgresqlQuery) },
	}
}

// Run implements module.Runner.
func (m *PostgresqlQuery) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	given, err := queries(m.Query)
	if err != nil {
		return module.Result{}, err
	}
	if m.Autocommit && c.Check {
		return module.Result{}, errors.New("Using autocommit is mutually exclusive with check_mode")
	}
	filled := slices.Clone(given)
	for i, q := range given {
		if filled[i], err = fill(q, m.Positional, m.Named, literal(pgText)); err != nil {
			return module.Result{}, err
		}
	}
	if c.Check && slices.ContainsFunc(filled, func(q string) bool { return !undoable(q) }) {
		return module.Result{Changed: true,
			Data: value.NewDict("query", filled[len(filled)-1], "query_list", value.Of(given))}, nil
	}
	answers, err := m.transaction(ctx, c, filled)
	if err != nil {
		return module.Result{}, err
	}
	results, last, status, count := []any{}, any(nil), "", 0
	r := module.Result{}
	for _, a := range answers {
		last, status = a.rows, a.status
		if a.rows == nil {
			last = value.NewDict()
		}
		results, count = append(results, last), count+a.count
		r.Changed = r.Changed || a.changed
	}
	r.Data = value.NewDict("query", filled[len(filled)-1], "query_list", value.Of(given), "statusmessage", status,
		"query_result", last, "query_all_results", results, "rowcount", count)
	return r, nil
}

// undoable reports whether a rollback undoes everything that a statement does. This is not certain for statements
// that end the transaction themselves, and for several statements in one text.
func undoable(statement string) bool {
	words := []string{"WITH", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT",
		"GRANT", "REVOKE"}
	return !strings.ContainsAny(statement, `;\`) &&
		(reads(statement) || slices.Contains(words, strings.ToUpper(firstWord.FindString(statement))))
}

// pgAnswer is the result of one statement.
type pgAnswer struct {
	rows    []any // nil if there are no rows
	status  string
	count   int
	changed bool
}

// transaction sends statements in one session. In check mode they are rolled back, and their results are those that
// they would have.
func (m *PostgresqlQuery) transaction(ctx context.Context, c *module.Call, statements []string) ([]pgAnswer, error) {
	mark := rand.Text()
	var b strings.Builder
	fmt.Fprintf(&b, "\\pset null %s\n", mark)
	if !m.Autocommit {
		b.WriteString("BEGIN;\n")
	}
	for _, q := range statements {
		fmt.Fprintf(&b, "\\echo %s\n", mark)
		if reads(q) && !strings.Contains(q, ";") { // otherwise it would not be described separately
			fmt.Fprintf(&b, "%s\n\\gdesc\n", q)
		}
		fmt.Fprintf(&b, "\\echo %s\n%s;\n", mark, q)
	}
	fmt.Fprintf(&b, "\\echo %s\n", mark)
	switch {
	case m.Autocommit:
	case c.Check:
		b.WriteString("ROLLBACK;\n")
	default:
		b.WriteString("COMMIT;\n")
	}
	s := hostscript.New(sqlScript, "sql_postgresql")
	s.Large = true
	s.Probe = !slices.ContainsFunc(statements, func(q string) bool { return !reads(q) })
	said, err := m.answer(ctx, c, s, m.DB, b.String())
	if err != nil {
		return nil, err
	}
	parts := strings.Split(said.Get("answer"), mark+"\n")
	if len(parts) != 2*len(statements)+2 {
		return nil, fmt.Errorf("psql answered %d statements in %d parts", len(statements), len(parts))
	}
	answers := make([]pgAnswer, len(statements))
	for i, q := range statements {
		if answers[i], err = pgAnswerOf(q, parts[2*i+1], parts[2*i+2], mark); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// pgStatus matches the last line that psql prints for a statement that is not a query: its command tag, for some
// with the number of rows.
var pgStatus = regexp.MustCompile(`(?:^|\n)((?:INSERT \d+|UPDATE|DELETE|MERGE|COPY|SELECT) (\d+)|[A-Z]+(?: [A-Z]+)*)\n$`)

func pgAnswerOf(statement, described, text, null string) (pgAnswer, error) {
	var a pgAnswer
	at := pgStatus.FindStringSubmatchIndex(text)
	if reads(statement) || at == nil {
		rows, err := readRows(text)
		types, bad := readRows(described)
		a.rows = pgDicts(rows, types, null)
		a.count, a.status = len(a.rows), fmt.Sprintf("SELECT %d", len(a.rows))
		return a, errors.Join(err, bad)
	}
	a.status, a.changed = text[at[2]:at[3]], true
	if at[4] >= 0 {
		a.count, _ = strconv.Atoi(text[at[4]:at[5]])
		a.changed = a.count > 0
	}
	if returned := text[:at[2]]; returned != "" {
		rows, err := readRows(returned)
		a.rows = pgDicts(rows, nil, null)
		return a, err
	}
	return a, nil
}

// pgDicts converts rows to dictionaries. types are the rows of column names and types that describe them.
func pgDicts(rows, types pgRows, null string) []any {
	out := []any{}
	for _, row := range rows.body() {
		d := value.NewDict()
		for i, name := range rows[0] {
			if i >= len(row) {
				continue
			}
			kind := ""
			if described := types.body(); i < len(described) && len(described[i]) == 2 {
				kind = described[i][1]
			}
			d.Set(name, pgValue(row[i], kind, null))
		}
		out = append(out, d)
	}
	return out
}

// pgValue converts a field of a row according to the type of its column.
func pgValue(text, kind, null string) any {
	kind, _, _ = strings.Cut(kind, "(")
	switch {
	case text == null:
		return nil
	case kind == "boolean":
		return text == "t"
	case slices.Contains([]string{"smallint", "integer", "bigint", "oid"}, kind):
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
	case slices.Contains([]string{"real", "double precision", "numeric"}, kind):
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
	case strings.HasPrefix(kind, "timestamp"):
		return isoTime(text)
	case kind == "json", kind == "jsonb":
		if v, err := value.FromJSON([]byte(text)); err == nil {
			return v
		}
	}
	return text
}

// isoTime formats a time as ISO 8601, with microseconds if it has fractional seconds.
func isoTime(text string) string {
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05-07", "2006-01-02 15:04:05-07:00"} {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		form := "2006-01-02T15:04:05"
		if t.Nanosecond() > 0 {
			form += ".000000"
		}
		if layout != "2006-01-02 15:04:05" {
			form += "-07:00"
		}
		return t.Format(form)
	}
	return text
}
