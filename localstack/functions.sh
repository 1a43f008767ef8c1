#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the pids of a function's running execution environments on LocalStack in host mode, one a line.
# Tests use it to kill a function in the middle of its work.
#
#   functions.sh FUNCTION_NAME
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# = 1 ] || die "usage: functions.sh FUNCTION_NAME"
for pid in $(owned_by localstack); do
  if grep -qzFx -- "AWS_LAMBDA_FUNCTION_NAME=$1" "/proc/$pid/environ" 2>/dev/null; then
    echo "$pid"
  fi
done
