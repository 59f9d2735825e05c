"""Steps as operators: one function `emit_<kind>` per kind, in the file of its family. Other kinds have no ONNX form."""
