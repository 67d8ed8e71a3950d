#!/usr/bin/env python3
"""Writes the hostile and broken models of this folder: models/, secret.bin. Needs Debian's python3-onnx.

cases.txt says what `relaxc run` must answer to each. None may crash, hang, read out of bounds or allocate without
bound. A model is one function of graphs.py, operators.py, weights.py or values.py, named like its file; onnx.checker would
refuse most of them, so it is not asked.
"""
import builders
import graphs
import operators
import values
import weights
from builders import HERE, MODELS, makers


def main():
    values.add(builders)
    MODELS.mkdir(exist_ok=True)
    for name, make in makers.items():
        made = make()
        data = made if isinstance(made, bytes) else made.SerializeToString()
        (MODELS / f"{name}.onnx").write_bytes(data)
    listed = {line.split("|")[0].strip() for line in (HERE / "cases.txt").read_text().splitlines() if "|" in line}
    listed = {name for name in listed if not name.startswith("#")}
    if listed != {f"{name}.onnx" for name in makers}:
        raise SystemExit(f"cases.txt and the models differ: {sorted(listed ^ {f'{name}.onnx' for name in makers})}")


if __name__ == "__main__":
    main()
