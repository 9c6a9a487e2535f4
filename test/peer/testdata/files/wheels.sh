#!/bin/sh
# wheels.sh FOLDER: make a few small packages of Python.
set -eu
mkdir -p "$1"
cd "$1"
python3 - <<'END'
import zipfile
for name, version, needs in ("peer_a", "1.0", ""), ("peer_a", "2.0", ""), ("peer_b", "1.0", "Requires-Dist: peer-a\n"):
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", f"version = {version!r}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: peer\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "".join(f"{f},,\n" for f in (f"{name}.py", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD")))
END
echo peer_b >requirements.txt
