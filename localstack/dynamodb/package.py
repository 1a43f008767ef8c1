# SPDX-License-Identifier: Apache-2.0

"""Makes the two jars that LocalStack starts DynamoDB Local from. usage: package.py FOLDER CLASSES

FOLDER/DynamoDBLocal.jar        LoopbackServer, with every jar of FOLDER/DynamoDBLocal_lib on its class path
FOLDER/ddb-local-loader-0.1.jar the same class as the Java agent that LocalStack asks for by this name
"""

import pathlib
import sys
import zipfile

LOGGING = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders><Console name="Console" target="SYSTEM_OUT"><PatternLayout pattern="%d{HH:mm:ss.SSS} %-5level %logger{36} %msg%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="Console"/></Root></Loggers>
</Configuration>
"""


def header(name: str, value: str) -> bytes:
    """A manifest header, folded: no line is longer than 72 bytes and continuations begin with a space."""
    rest = f"{name}: {value}".encode()
    lines = [rest[:70]]
    rest = rest[70:]
    while rest:
        lines.append(b" " + rest[:69])
        rest = rest[69:]
    return b"\r\n".join(lines) + b"\r\n"


def write(path: pathlib.Path, headers: dict[str, str], files: dict[str, bytes]) -> None:
    manifest = b"".join(header(name, value) for name, value in {"Manifest-Version": "1.0", **headers}.items())
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", manifest + b"\r\n")
        for name, content in files.items():
            jar.writestr(name, content)


def main() -> None:
    folder, classes = map(pathlib.Path, sys.argv[1:])
    libraries = sorted(path.name for path in (folder / "DynamoDBLocal_lib").glob("*.jar"))
    if not any(name.startswith("DynamoDBLocal-") for name in libraries):
        sys.exit("DynamoDBLocal_lib does not hold DynamoDB Local")
    program = {"LoopbackServer.class": (classes / "LoopbackServer.class").read_bytes()}
    class_path = " ".join(f"DynamoDBLocal_lib/{name}" for name in libraries)
    write(
        folder / "DynamoDBLocal.jar",
        {"Main-Class": "LoopbackServer", "Class-Path": class_path},
        program | {"log4j2.xml": LOGGING.encode()},
    )
    write(
        folder / "ddb-local-loader-0.1.jar",
        {"Premain-Class": "LoopbackServer", "Class-Path": class_path},
        program,
    )


main()
