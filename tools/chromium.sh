#!/usr/bin/env bash
# Makes Chromium present for the browser tests: Debian's package, where there is none and this user
# may install it. Otherwise it says how, and ends well: those tests are then skipped, and say so.
set -u
how="browser tests are skipped without Chromium: apt-get install chromium, or set PLANNER_TEST_CHROMIUM"

for name in "${PLANNER_TEST_CHROMIUM:-}" chromium chromium-browser google-chrome; do
	if [ -n "$name" ] && command -v "$name" >/dev/null; then
		exit 0
	fi
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "$how (needs root and apt-get)"
	exit 0
fi
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -q && apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core; } \
	>/dev/null 2>&1; then
	echo "$how (apt-get did not install it)"
fi
exit 0
