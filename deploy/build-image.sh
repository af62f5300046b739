#!/usr/bin/env bash
# Builds the image with buildah and starts it once, without a registry and without a daemon.
#
#   deploy/build-image.sh [NAME] [ARGUMENTS OF BUILDAH BUILD...]
#
# BASE names the base image, any with Python 3.11.5 or later as python3. Without it, one is made of
# Debian's packages with debootstrap and of the Python that .venv was made with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=${1:-localhost/lpcfg}
[ $# -eq 0 ] || shift
base=${BASE:-}
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
export STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}

if [ -z "$base" ]; then
  base=localhost/python-base
  if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
    debootstrap --variant=minbase \
      --include=ca-certificates,libbz2-1.0,libffi8,liblzma5,libreadline8,libsqlite3-0,libssl3,zlib1g \
      bookworm "$root"
    prefix=$(.venv/bin/python -c 'import sys; print(sys.base_prefix)')
    cp -R "$prefix/." "$root/usr/local/"
    # what else is installed for that Python is nobody's business in an image, nor are its tests
    rm -rf "$root"/usr/local/lib/python3.*/{site-packages,test}/*
    chroot "$root" ldconfig
    container=$(buildah from scratch)
    buildah copy --quiet "$container" "$root" /
    buildah commit --quiet --rm "$container" "$base"
  fi
fi

buildah build --build-arg BASE="$base" \
  --build-arg REVISION="$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
  --build-arg CREATED="$(date --utc +%Y-%m-%dT%H:%M:%SZ)" --tag "$name" "$@" .

container=$(buildah from "$name")
trap 'buildah rm "$container" >/dev/null' EXIT
# No file belongs to the one who runs it, so the root is as good as read-only to it.
buildah run --user 10001:10001 "$container" -- timeout 120 sh -euc '
  /opt/lpcfg/bin/start --host 127.0.0.1 --port 8765 & service=$!
  until python -c "
import json, urllib.request
asked = urllib.request.Request(
    \"http://127.0.0.1:8765/v1/parse\",
    json.dumps({\"text\": \"It works.\"}).encode(),
    {\"content-type\": \"application/json\"},
)
print(urllib.request.urlopen(asked, timeout=5).read().decode())
" 2>/dev/null; do sleep 1; done
  kill "$service"
  wait "$service"
'
echo "$name is built, answers, and ends when it is told to"
