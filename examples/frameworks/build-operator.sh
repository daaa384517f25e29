#!/usr/bin/env bash
# Builds an operator from its Go module: build-operator.sh NAME MODULE@VERSION PACKAGE PROGRAM
# Afterwards $FRAMEWORKS/NAME/root is a folder with the program, as the operator's image has it, for a row with `root`
# in a file for --images; $FRAMEWORKS/NAME/module has the module's files, and with them the operator's manifests.
set -euo pipefail
name=$1 module=$2 package=$3 program=$4
folder=${FRAMEWORKS:-$HOME/.cache/volcano/frameworks}/$name
mkdir -p "$folder/root$(dirname "$program")"
source=$(cd / && go mod download -json "$module" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
rm -rf "$folder/module"
cp -r "$source" "$folder/module"
chmod -R u+w "$folder/module"
cd "$folder/module"
CGO_ENABLED=0 nice go build -buildvcs=false -ldflags '-s -w' -o "$folder/root$program" "$package"
