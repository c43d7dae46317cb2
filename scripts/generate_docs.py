#!/usr/bin/env python3
"""Writes docs/prim.md, the reference of the prim dialect, from the dialect's ODS definitions.

`--check` writes nothing and exits with 1 where the page is not what the definitions give.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "prim.md"
GROUPS = {
    "ElementwiseOps.td": "Elementwise ops",
    "ShapeOps.td": "Ops that make or rearrange elements",
    "ReductionOps.td": "Reductions and contractions",
}


def read_records() -> dict:
    """All TableGen records of dialects/Prim/PrimOps.td, as `llvm-tblgen -dump-json` gives them."""
    locations = importlib.util.find_spec("mlir.lib").submodule_search_locations
    mlir = pathlib.Path(next(iter(locations))).parent
    llvm = pathlib.Path(importlib.util.find_spec("llvm").origin).parent
    command = [
        str(llvm / "bin" / "llvm-tblgen"),
        "-dump-json",
        "-I",
        str(mlir / "include"),
        "-I",
        str(ROOT),
        str(ROOT / "dialects/Prim/PrimOps.td"),
    ]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def clean(text: str) -> str:
    """A description without its indentation."""
    first, _, rest = text.strip("\n").partition("\n")
    return (
        (textwrap.dedent(first) + "\n" + textwrap.dedent(rest)).strip()
        if first.strip()
        else textwrap.dedent(rest).strip()
    )


def describe_constraint(records: dict, name: str) -> str:
    record = records[name]
    if "elementTypes" in record:
        return f"tensor of {record['elementTypes']}"
    if record.get("baseType"):
        return f"any number of: {describe_constraint(records, record['baseType']['def'])}"
    if "baseAttr" in record and record.get("isOptional"):
        if record["baseAttr"] is None:
            return "there or not"
        return f"{describe_constraint(records, record['baseAttr']['def'])}, optional"
    if "enum" in record and isinstance(record["enum"], dict):
        cases = records[record["enum"]["def"]]["enumerants"]
        return "one of " + ", ".join(f"`{records[case['def']]['str']}`" for case in cases)
    if "AffineMapAttr" in record["!superclasses"] or name == "AffineMapAttr":
        return "list of size expressions"
    summary = record.get("summary") or name
    return summary.removesuffix(" attribute").replace("BuiltinAttributes", "")


def describe_values(records: dict, record: dict, field: str) -> list[str]:
    return [f"- `{name}`: {describe_constraint(records, value['def'])}" for value, name in record[field]["args"]]


def describe_op(records: dict, record: dict) -> list[str]:
    name = f"prim.{record['opName']}"
    syntax = re.sub(r"\s+", " ", record["assemblyFormat"].strip())
    lines = [f"### `{name}`", "", f"*{record['summary']}*", "", clean(record["description"]), ""]
    arguments = describe_values(records, record, "arguments")
    if arguments:
        lines += ["Arguments:", "", *arguments, ""]
    lines += ["Results:", "", *describe_values(records, record, "results"), ""]
    lines += ["Syntax:", "", "```", f"{name} {syntax}", "```", ""]
    return lines


def generate() -> str:
    """The text of the page."""
    records = read_records()
    ops: dict[str, list[dict]] = {group: [] for group in GROUPS}
    for name in records["!instanceof"]["Op"]:
        record = records[name]
        if record["opDialect"]["def"] == "Prim_Dialect":
            ops[pathlib.Path(record["!locs"][0].split(":")[0]).name].append(record)
    for group in ops.values():
        group.sort(key=lambda op: op["opName"])
    dialect = records["Prim_Dialect"]
    lines = [
        "# The prim dialect",
        "",
        "<!-- Made by scripts/generate_docs.py from dialects/Prim/*.td; change those. -->",
        "",
        dialect["summary"],
        "",
        clean(dialect["description"]),
        "",
        "## Contents",
        "",
    ]
    for group, title in GROUPS.items():
        links = ", ".join(f"[{op['opName']}](#prim{op['opName']})" for op in ops[group])
        lines += [f"- {title}: {links}"]
    for group, title in GROUPS.items():
        lines += ["", f"## {title}", ""]
        for op in ops[group]:
            lines += describe_op(records, op)
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    text = generate()
    if arguments.check:
        if not PAGE.exists() or PAGE.read_text() != text:
            print(f"error: {PAGE} is out of date; run scripts/generate_docs.py", file=sys.stderr)
            return 1
        return 0
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
