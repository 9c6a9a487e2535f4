package sql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// MysqlQuery is the module mysql_query.
type MysqlQuery struct {
	Query      any         `kk:"query,required" doc:"a statement, or a list of them"`
	Positional []any       `kk:"positional_args" doc:"values for %s, quoted"`
	Named      *value.Dict `kk:"named_args" doc:"values for %(NAME)s, quoted"`
	DB         string      `kk:"login_db" doc:"the database"`
	mysqlLogin
}

func mysqlQuerySpec() module.Spec {
	return module.Spec{
		Name: "mysql_query", Collection: mysqlCollection,
		Summary: "Runs SQL statements on MySQL or MariaDB, with the client on the host.",
		Notes: []string{"Statements that do not begin with SELECT, SHOW, EXPLAIN or DESCRIBE count as a change, but " +
			"INSERT, UPDATE, DELETE and REPLACE only if they are about any row. In check mode none is sent, and a change " +
			"is assumed.", "All statements run in one session.", "Values are returned as strings, NULL as null."},
		Examples: []string{"- mysql_query:\n    login_db: shop\n    query: SELECT id FROM dishes WHERE name = %s\n" +
			"    positional_args: [soup]"},
		Returns: []module.Return{
			{Key: "query_result", Type: "list", Doc: "for each statement the rows, as dictionaries"},
			{Key: "rowcount", Type: "list", Doc: "for each statement the number of returned or changed rows"},
			{Key: "executed_queries", Type: "list", Doc: "the statements as they were sent"},
		},
		New: func() module.Runner { return new(MysqlQuery) },
	}
}

// Run implements module.Runner.
func (m *MysqlQuery) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	all, err := queries(m.Query)
	if err != nil {
		return module.Result{}, err
	}
	for i, q := range all {
		if all[i], err = fill(q, m.Positional, m.Named, literal(mysqlText)); err != nil {
			return module.Result{}, err
		}
	}
	changes := slices.ContainsFunc(all, func(q string) bool { return !reads(q) })
	r := module.Result{Data: value.NewDict("executed_queries", value.Of(all))}
	if changes && c.Check {
		r.Changed = true
		return r, nil
	}
	mark := rand.Text()
	var statements []string
	for _, q := range all {
		statements = append(statements, q, fmt.Sprintf("SELECT '%s', ROW_COUNT()", mark))
	}
	rows, err := m.send(ctx, c, !changes, m.DB, statements)
	if err != nil {
		return module.Result{}, err
	}
	results, counts := []any{}, []any{}
	for _, q := range all {
		end := slices.IndexFunc(rows, func(row []string) bool { return row[0] == mark })
		if end < 0 || end+1 >= len(rows) || len(rows[end+1]) != 2 {
			return r, errors.New("the client did not answer every statement")
		}
		count, _ := strconv.Atoi(rows[end+1][1])
		if count < 0 {
			count = len(rows[:end].body())
		}
		r.Changed = r.Changed || altered(q, count)
		results, counts = append(results, mysqlDicts(rows[:end])), append(counts, count)
		rows = rows[end+2:]
	}
	r.Data.Set("query_result", results)
	r.Data.Set("rowcount", counts)
	return r, nil
}

// altered reports whether a statement changed anything, given the number of its rows.
func altered(statement string, rows int) bool {
	switch strings.ToUpper(firstWord.FindString(statement)) {
	case "INSERT", "UPDATE", "DELETE", "REPLACE":
		return rows > 0
	}
	return !reads(statement)
}

// mysqlDicts converts rows to dictionaries.
func mysqlDicts(rows mysqlRows) []any {
	out := []any{}
	for _, row := range rows.body() {
		d := value.NewDict()
		for i, name := range rows[0] {
			switch {
			case i >= len(row):
			case row[i] == "NULL":
				d.Set(name, nil)
			default:
				d.Set(name, row[i])
			}
		}
		out = append(out, d)
	}
	return out
}
