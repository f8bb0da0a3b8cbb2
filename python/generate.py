#!/usr/bin/env python3
"""Writes the classes of results for the Python package, from the schemas that the program prints.

    generate.py PROGRAM RESULTS.py

An object of a schema becomes a dataclass, whose fields are the object's keys.
"""

import json
import keyword
import pathlib
import re
import subprocess
import sys
import textwrap

WIDTH = 100
# The list of a result that is its table; a result without one is a table of one row.
ROWS = {"accuracy": "rows", "advice": "changes", "collectives": "rows", "comparison": "kinds", "elastic": "policies",
        "findings": "findings", "graph_search": "best", "operators": "operators", "reshard": "alternatives",
        "schedules": "schedules", "search": "best", "side_by_side": "terms", "sweep": "results",
        "sweep_comparison": "pairs", "topology": "links"}
RESERVED = ("Any", "ClassVar", "Literal", "Picture", "Result", "Study", "Warning")
METHODS = ("code", "frame", "json", "messages", "picture")  # of Result
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

HEAD = '''"""Results of foreshard, one class for each object of their JSON.

Quantities have their unit at the end of their name: `_s` seconds, `_bytes`, `_usd`. What is not
known is None. Written by python/generate.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ._result import Result
'''


def camel(name):
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))


class Classes:
    def __init__(self):
        self.names = {}  # of a class: the canonical schema that it is of
        self.texts = {}

    def expanded(self, schema, definitions, seen=()):
        """The schema without references, to tell whether two of one name are the same."""
        if isinstance(schema, list):
            return [self.expanded(one, definitions, seen) for one in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            name = schema["$ref"].split("/")[-1]
            return name if name in seen else self.expanded(definitions[name], definitions, seen + (name,))
        return {key: self.expanded(value, definitions, seen) for key, value in schema.items()
                if key != "definitions"}

    def type_of(self, schema, definitions, result, path):
        """The annotation of a value; adds the classes that it needs."""
        again = lambda one, place=path: self.type_of(one, definitions, result, place)
        if "$ref" in schema:
            name = schema["$ref"].split("/")[-1]
            return self.add(definitions[name], definitions, result, [name])
        if "allOf" in schema and len(schema["allOf"]) == 1:
            return again(schema["allOf"][0])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                kinds = list(dict.fromkeys(again(one) for one in schema[key] if one))
                others = [kind for kind in kinds if kind != "None"]
                if not others:
                    return "Any"
                return " | ".join(others + ["None"] * ("None" in kinds))
        if "const" in schema or "enum" in schema:
            return f"Literal[{', '.join(repr(word) for word in schema.get('enum', [schema.get('const')]))}]"
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join([again({**schema, "type": one}) for one in kind if one != "null"] +
                              ["None"] * ("null" in kind))
        if kind == "array":
            of = schema.get("items", {})
            return f"list[{again(of) if isinstance(of, dict) else 'Any'}]"
        if kind == "object" and schema.get("properties"):
            return self.add(schema, definitions, result, path)
        if kind == "object":
            of = schema.get("additionalProperties", {})
            return f"dict[str, {again(of) if isinstance(of, dict) else 'Any'}]"
        return SIMPLE.get(kind, "Any")

    def add(self, schema, definitions, result, path):
        if not schema.get("properties"):
            return self.type_of(schema, definitions, result, path)
        canonical = json.dumps(self.expanded(schema, definitions), sort_keys=True)
        root = len(path) == 1 and path[0] == result
        for name in (camel(path[-1]), camel("_".join(path[-2:])), camel("_".join([result] + path))):
            if name in RESERVED:
                continue
            if self.names.get(name) == canonical:
                return name
            if name not in self.names:
                break
            if root:
                raise SystemExit(f"two results are called {name}")
        self.names[name] = canonical
        self.texts[name] = None  # Its place, in the order of first use.
        fields, docs = [], []
        required = schema.get("required", [])
        for key, one in schema["properties"].items():
            if root and key == "schema":
                continue
            attribute = re.sub(r"\W", "_", key)
            attribute += "_" if keyword.iskeyword(attribute) or attribute in METHODS and root else ""
            kind = self.type_of(one, definitions, result, path + [key])
            optional = key not in required
            if optional:
                kind = kind if kind == "Any" or kind.endswith("None") else f"{kind} | None"
            default = "None" if optional else ""
            if attribute != key:
                given = "default=None, " if optional else ""
                default = f'field({given}metadata={{"key": "{key}"}})'
            fields.append((optional, f"    {attribute}: {kind}{' = ' if default else ''}{default}"))
            if one.get("description"):
                docs.append(f"{attribute}: {one['description'].replace('Null', 'None')}")
        head = schema.get("description") or f"The part `{path[-1]}` of a result."
        lines = textwrap.wrap(head.replace("\\", "\\\\"), WIDTH - 8)
        text = f'@dataclass(frozen=True)\nclass {name}{"(Result)" if root else ""}:\n    """' + "\n    ".join(lines)
        if docs:
            text += "\n\n    Attributes:\n"
            for doc in docs:
                text += "\n".join(textwrap.wrap(doc.replace("\\", "\\\\"), WIDTH - 8, initial_indent=" " * 8,
                                                subsequent_indent=" " * 12)) + "\n"
            text += "    "
        text += '"""\n\n'
        if root:
            text += f'    SCHEMA: ClassVar[str] = "{schema["title"]}"\n'
            rows = ROWS.get(result)
            text += f"    ROWS: ClassVar[str | None] = {json.dumps(rows) if rows else None}\n"
        self.texts[name] = text + "\n".join(line for _, line in sorted(fields, key=lambda one: one[0])) + "\n"
        return name


def main(program, place):
    run = lambda *words: subprocess.run([program, "schema", *words], check=True, capture_output=True,
                                        text=True).stdout
    told = re.search(r"foreshard\.search/1:([^.]*)\.", run("--help"))[1]
    classes = Classes()
    results = {name: json.loads(run(f"foreshard.{name}/1")) for name in re.findall(r"\w+", told)}
    for name, schema in results.items():  # The names of results are theirs.
        classes.names[camel(name)] = json.dumps(
            classes.expanded(schema, schema.get("definitions", {})), sort_keys=True)
    roots = {}
    for name, schema in results.items():
        del classes.names[camel(name)]
        roots[schema["title"]] = classes.add(schema, schema.get("definitions", {}), name, [name])
    for result, rows in ROWS.items():
        if rows and rows not in results[result]["properties"]:
            raise SystemExit(f"{result} has no list {rows}")
    text = HEAD + "".join("\n\n" + one for one in classes.texts.values())
    text += "\n\nOF_SCHEMA: dict[str, type[Result]] = {\n"
    text += "".join(f'    "{title}": {name},\n' for title, name in roots.items()) + "}\n"
    pathlib.Path(place).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
