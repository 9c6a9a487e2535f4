// Package database holds the modules for what is in database servers: users,
// privileges and databases of MySQL, MariaDB and PostgreSQL. They work with the
// server's own client on the host, which needs no Python library.
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
