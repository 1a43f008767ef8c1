// Package upstreams runs lull behind real upstreams: `lull bridge` behind a real RabbitMQ, and
// `lull dev` behind a real Debezium that reads a real PostgreSQL through a real Kafka.
//
// `make e2e-upstreams` runs it. The tests need the build tag e2eupstreams and run one after the
// other, because they kill servers.
package upstreams
