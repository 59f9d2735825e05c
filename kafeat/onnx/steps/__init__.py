"""One file a kind: its steps as operators. A kind without a file has no ONNX form."""
