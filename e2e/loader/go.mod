module example.org/loader

go 1.26.8

require (
	github.com/jackc/pgx/v5 v5.9.2
	github.com/opensearch-project/opensearch-go/v4 v4.8.1
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/text v0.29.0 // indirect
)
