// Package sql contains the modules for the content of database servers: users, privileges and databases of MySQL,
// MariaDB and PostgreSQL. They use the server's own client on the host and need no Python library.
package sql

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		mysqlDBSpec(), mysqlUserSpec(), mysqlQuerySpec(),
		postgresqlDBSpec(), postgresqlUserSpec(), postgresqlPrivsSpec(), postgresqlExtSpec(), postgresqlQuerySpec(),
	}
}

const (
	mysqlCollection      = "community.mysql"
	postgresqlCollection = "community.postgresql"
)
