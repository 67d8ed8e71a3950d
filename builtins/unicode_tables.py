#!/usr/bin/env python3
"""Writes builtins/unicode_tables.cc from the files of Debian's package unicode-data: builtins/unicode_tables.py [FOLDER].

All numbers are varints: seven bits a byte, the low ones first, the highest bit set if more follow. Categories and
scripts are runs of characters in order, from 0 on: (length - 1) * number of names + place of the name, so that short
runs take a byte. Foldings are runs of (distance from the last run's first character, twice the count of characters plus
1 if only every second is meant, distance to the folded character: twice it, or for negative ones minus twice it minus 1).
"""
import pathlib
import re
import sys

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode")
COUNT = 0x110000


def rows(name):
    """Returns the fields of the lines of a file, without comments."""
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    return [[field.strip() for field in line.split("#")[0].split(";")] for line in lines if line.split("#")[0].strip()]


def varint(value):
    result = []
    while value >= 128:
        result.append(value % 128 + 128)
        value //= 128
    return result + [value]


def packed_runs(kinds, names):
    """Returns the bytes of a list that has a name for each character."""
    data, first = [], 0
    for at in range(1, COUNT + 1):
        if at == COUNT or kinds[at] != kinds[first]:
            data += varint((at - first - 1) * len(names) + names.index(kinds[first]))
            first = at
    return data


def categories():
    kinds, begin = ["Cn"] * COUNT, 0
    for fields in rows("UnicodeData.txt"):
        code, name, kind = int(fields[0], 16), fields[1], fields[2]
        first = begin if name.endswith(", Last>") else code
        kinds[first:code + 1] = [kind] * (code + 1 - first)
        begin = code
    names = sorted(set(kinds))
    return names, packed_runs(kinds, names)


def scripts():
    kinds = [""] * COUNT
    for place, script in rows("Scripts.txt"):
        first, last = (int(code, 16) for code in (place.split("..") * 2)[:2])
        kinds[first:last + 1] = [script] * (last + 1 - first)
    common = ["", "Common", "Latin", "Inherited"]  # what short runs have first, so that they take a byte
    names = common + sorted(set(kinds) - set(common))
    return names, packed_runs(kinds, names)


def foldings():
    pairs = [(int(fields[0], 16), int(fields[2], 16)) for fields in rows("CaseFolding.txt") if fields[1] in "CS"]
    data, last = [], 0
    while pairs:
        first, to = pairs[0]
        stride = 2 if len(pairs) > 1 and pairs[1] == (first + 2, to + 2) else 1
        count = 1
        while count < len(pairs) and pairs[count] == (first + stride * count, to + stride * count):
            count += 1
        distance = to - first
        data += varint(first - last) + varint(2 * count + stride - 1)
        data += varint(2 * distance if distance >= 0 else -2 * distance - 1)
        last, pairs = first, pairs[count:]
    return data


def wrapped(items, joint, width=120):
    """Returns the items in lines of at most so many characters."""
    lines = ["   "]
    for item in items:
        if len(lines[-1]) + len(joint) + len(item) > width:
            lines.append("   ")
        lines[-1] += " " + item + joint.rstrip()
    return "\n".join(lines)


def array(name, data):
    return f"const uint8_t {name}[] = {{\n{wrapped(map(str, data), ', ')}\n}};\n"


def text(name, names):
    pieces = re.findall(r".{1,110}(?:,|$)", ",".join(names))
    return f"const std::string_view {name} =\n" + "\n".join(f'    "{piece}"' for piece in pieces) + ";\n"


def main():
    version = re.search(r"Scripts-(\S+)\.txt", (FOLDER / "Scripts.txt").read_text("utf-8"))[1]
    (category_names, category_runs), (script_names, script_runs) = categories(), scripts()
    parts = [
        f"// Categories, scripts and case foldings of Unicode {version}. Written by builtins/unicode_tables.py, which says what the\n"
        "// numbers mean. A table is one file, however long.\n",
        '#include "builtins/unicode_tables.h"\n\nnamespace relaxc::vm::unicode_tables {\n\n// clang-format off',
        text("kCategoryNames", category_names),
        text("kScriptNames", script_names),
        array("kCategoryBytes", category_runs) + "const std::span<const uint8_t> kCategories = kCategoryBytes;\n",
        array("kScriptBytes", script_runs) + "const std::span<const uint8_t> kScripts = kScriptBytes;\n",
        array("kFoldingBytes", foldings()) + "const std::span<const uint8_t> kFoldings = kFoldingBytes;",
        "// clang-format on\n\n}  // namespace relaxc::vm::unicode_tables\n",
    ]
    (pathlib.Path(__file__).parent / "unicode_tables.cc").write_text("\n".join(parts))
    print(len(category_runs), len(script_runs), len(foldings()))


main()
