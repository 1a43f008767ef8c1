module example.org/cms

go 1.26.8

require github.com/ncruces/go-sqlite3 v0.30.5

require (
	github.com/ncruces/julianday v1.0.0 // indirect
	github.com/tetratelabs/wazero v1.11.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
)
