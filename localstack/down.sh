#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ends what up.sh started, and removes what it wrote. What does not run is not an error.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
local=$LULL_E2E/local
case $(cat "$local/how" 2>/dev/null || true) in
  docker) docker compose -f "$here/compose.yml" down --volumes ;;
  servers) LULL_E2E=$LULL_E2E LULL_E2E_RUN=$local/run "$here/stop.sh" localstack opensearch ;;
esac
rm -rf "$local"
