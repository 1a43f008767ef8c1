// SPDX-License-Identifier: Apache-2.0

// Package upstreams tests lull with real upstreams: `lull bridge` with a real RabbitMQ and a real
// PostgreSQL, and `lull dev` with a real Debezium, PostgreSQL and Kafka.
//
// `make e2e-upstreams` runs the tests. They need the build tag e2eupstreams and run one after the
// other, because they kill servers.
package upstreams
