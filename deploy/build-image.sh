#!/usr/bin/env bash
# Builds the image with buildah and starts it once, without a registry and without a daemon.
#
#   deploy/build-image.sh [NAME] [ARGUMENTS OF BUILDAH BUILD...]
#
# BASE names the base image, any with Python 3.11 as python3. Without it, one is made of Debian's
# packages with debootstrap.
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
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$root"
    container=$(buildah from scratch)
    buildah copy --quiet "$container" "$root" /
    buildah commit --quiet --rm "$container" "$base"
  fi
fi

buildah build --build-arg BASE="$base" --tag "$name" "$@" .

container=$(buildah from "$name")
trap 'buildah rm "$container" >/dev/null' EXIT
# No file belongs to the one who runs it, so the root is as good as read-only to it.
buildah run --user 10001:10001 "$container" -- /opt/lpcfg/bin/start --check
echo "$name is built; its models load, and its kernels are compiled"
