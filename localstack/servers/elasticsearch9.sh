# SPDX-License-Identifier: Apache-2.0

# Elasticsearch 9, which needs Java 21 or later. Sourced by start.sh.

. "$here/servers/elasticsearch.sh"
port=9209
